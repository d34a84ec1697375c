#include "server/volume/volume_log.h"

#include <utility>

#include "proto/check.h"

namespace mariner::volume {

using logging::LogWriter;
using logging::Record;
using logging::RecordType;
using replication::WriteKind;

Record record_of(const replication::WriteMessage& message) {
  const replication::WriteRequest& write = message.write;
  Record record;
  switch (write.kind) {
    case WriteKind::kData: record.type = RecordType::kWrite; break;
    case WriteKind::kRepeated:
      record.type = RecordType::kWrite;
      record.flags = logging::kRepeats;
      break;
    case WriteKind::kZero: record.type = RecordType::kZero; break;
    case WriteKind::kRollback: record.type = RecordType::kRollback; break;
  }
  if (write.has_head) record.flags |= logging::kHasHead;
  if (write.has_tail) record.flags |= logging::kHasTail;
  record.volume = message.volume;
  record.epoch = message.stamp.epoch;
  record.sequence = message.stamp.sequence;
  record.time = message.stamp.time;
  record.extent = write.extent;
  record.payload_blocks = static_cast<std::uint32_t>(write.payload.length >> kBlockShift);
  record.target_sequence = write.target;
  record.target_time = write.target_time;
  record.settled = message.settled;
  record.frontier = message.frontier;
  return record;
}

void VolumeLog::append(const Record& record, PayloadSlice payload, LogWriter::Urgency urgency,
                       UniqueFunction<void(Result<void>)> done) {
  ++in_flight_;
  writer_.append(
      record, std::move(payload), urgency,
      [this, record, done = std::move(done)](Result<logging::LogLocation> location) mutable {
        --in_flight_;
        if (!location) return done(location.error());
        index_.insert(record, *location);
        done({});
      });
}

void VolumeLog::log(const replication::WriteMessage& message,
                    UniqueFunction<void(Result<void>)> done) {
  CHECK(message.volume == volume_);
  const auto urgency = message.write.kind == WriteKind::kRollback ? LogWriter::Urgency::kEssential
                                                                  : LogWriter::Urgency::kOrdinary;
  append(record_of(message), message.write.payload, urgency, std::move(done));
}

void VolumeLog::log_void(const replication::VoidMessage& message,
                         UniqueFunction<void(Result<void>)> done) {
  Record record;
  record.type = RecordType::kVoid;
  record.volume = volume_;
  record.epoch = message.epoch;
  record.sequence = message.first;
  record.target_sequence = message.last;
  append(record, {}, LogWriter::Urgency::kEssential, std::move(done));
}

void VolumeLog::log_before_image(BlockRange range, PayloadSlice bytes, bool replaces,
                                 UniqueFunction<void(Result<void>)> done) {
  CHECK(range.count.value <= logging::kRecordPayloadBlocksMax);
  Record record;
  record.type = RecordType::kBeforeImage;
  if (replaces) record.flags = logging::kReplaces;
  record.volume = volume_;
  record.epoch = epoch_;
  record.extent = range;
  record.payload_blocks = static_cast<std::uint32_t>(range.count.value);
  append(record, std::move(bytes), LogWriter::Urgency::kEssential, std::move(done));
}

void VolumeLog::log_rebase(BlockRange range, UniqueFunction<void(Result<void>)> done) {
  Record record;
  record.type = RecordType::kRebase;
  record.volume = volume_;
  record.epoch = epoch_;
  record.extent = range;
  append(record, {}, LogWriter::Urgency::kEssential, std::move(done));
}

}  // namespace mariner::volume

#include "server/volume/volume_log.h"

#include <utility>

#include "proto/check.h"
#include "server/volume/history.h"

namespace mariner::volume {

using logging::Record;
using logging::RecordType;
using logging::Urgency;
using replication::WriteKind;

namespace {

// Of so many blocks of the base, in before-images of the greatest length: each is a batch by
// itself at worst, with a block of header.
std::uint64_t room_of(std::uint64_t blocks, Images images) {
  constexpr std::uint64_t kMost = History::kBeforeImageBlocksMax;
  static_assert((kMost + 1) * kBlockBytes <= logging::LogWriter::kSetsAsideInPieces);
  const std::uint64_t room = (blocks + (blocks + kMost - 1) / kMost) * kBlockBytes;
  return images == Images::kElsewhere ? 2 * room : room;
}

}  // namespace

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

VolumeLog::Entry& VolumeLog::finish(Queue& queue, std::uint64_t number,
                                    Result<logging::LoggedAt> result) {
  CHECK(number >= queue.first && number - queue.first < queue.entries.size());
  Entry& entry = queue.entries[number - queue.first];
  CHECK(!entry.finished);
  entry.finished = true;
  entry.result = std::move(result);
  return entry;
}

bool VolumeLog::may_replace_base(const Record& record) const {
  if (images_ == Images::kNone) return false;
  return record.type == RecordType::kWrite ||
         (record.type == RecordType::kZero && images_ == Images::kElsewhere);
}

std::uint64_t VolumeLog::room_for_before_images(const Record& record) const {
  if (!may_replace_base(record) || base_.empty()) return 0;
  std::uint64_t blocks = 0;
  base_.visit(record.extent, [&](BlockRange part, bool in_image) {
    if (in_image) blocks += part.count.value;
  });
  return room_of(blocks, images_);
}

void VolumeLog::applied(SequenceNumber through) {
  applied_ = std::max(applied_, through);
  writer_.give_back(set_aside_.applied(applied_));
}

// (Which of their blocks have their base in the image is not known of them.)
void VolumeLog::found(const UnappliedBytes& unapplied) {
  if (images_ == Images::kNone || base_.empty()) return;
  unapplied.visit([this](SequenceNumber last, std::uint64_t bytes) {
    const std::uint64_t room = room_of(bytes >> kBlockShift, images_);
    writer_.set_aside(room);
    set_aside_.add(last, room);
  });
}

void VolumeLog::index(Entry& entry) {
  if (!entry.result) return;
  entry.record.ordinal = entry.result->ordinal;
  index_.insert(entry.record, entry.result->location);
  payload_bytes_ += std::uint64_t{entry.record.payload_blocks} * kBlockBytes;
  if (entry.set_aside == 0) return;
  const std::uint64_t needed = room_for_before_images(entry.record);
  writer_.give_back(entry.set_aside - needed);
  set_aside_.add(entry.record.sequence, needed);
  writer_.give_back(set_aside_.applied(closed_ ? entry.record.sequence : applied_));
}

void VolumeLog::append_write(const Record& record, PayloadSlice payload, Urgency urgency,
                             Done done) {
  ++in_flight_;
  const std::uint64_t number = writes_.first + writes_.entries.size();
  // While it waits the log may be given up further, and any of its blocks get its base into the
  // image; not any more when the index has it.
  const std::uint64_t set_aside =
      may_replace_base(record) ? room_of(record.extent.count.value, images_) : 0;
  writes_.entries.push_back({.record = record, .set_aside = set_aside, .done = std::move(done)});
  writer_.append(
      record, std::move(payload), urgency,
      [this, number](const Result<logging::LoggedAt>& logged) {
        Entry& entry = finish(writes_, number, logged);
        Done answer = std::move(entry.done);
        while (!writes_.entries.empty() && writes_.entries.front().finished) {
          index(writes_.entries.front());
          writes_.entries.pop_front();
          ++writes_.first;
        }
        --in_flight_;
        answer(logged ? Result<void>{} : logged.error());
      },
      set_aside);
}

void VolumeLog::append_base(const Record& record, PayloadSlice payload, Urgency urgency,
                            Done done) {
  ++in_flight_;
  const std::uint64_t number = bases_.first + bases_.entries.size();
  bases_.entries.push_back({.record = record, .done = std::move(done)});
  writer_.append(record, std::move(payload), urgency,
                 [this, number](const Result<logging::LoggedAt>& logged) {
                   finish(bases_, number, logged);
                   while (!bases_.entries.empty() && bases_.entries.front().finished) {
                     Entry front = std::move(bases_.entries.front());
                     bases_.entries.pop_front();
                     ++bases_.first;
                     --in_flight_;
                     index(front);
                     front.done(front.result ? Result<void>{} : front.result.error());
                   }
                 });
}

void VolumeLog::log(const replication::WriteMessage& message,
                    UniqueFunction<void(Result<void>)> done) {
  CHECK(message.volume == volume_);
  const bool first = held_.empty();
  if (first && index_.store().has_room()) {
    const auto urgency =
        message.write.kind == WriteKind::kRollback ? Urgency::kEssential : Urgency::kOrdinary;
    return append_write(record_of(message), message.write.payload, urgency, std::move(done));
  }
  if (closed_) {
    return index_.store().executor().post(
        [done = std::move(done), error = *closed_]() mutable { done(error); });
  }
  ++in_flight_;
  held_.push_back({message, std::move(done)});
  if (first) {
    index_.store().when_room([this, alive = alive_] {
      if (*alive) append_held();
    });
  }
}

// All of them: they are few, and the room that the index keeps is far more than they need.
void VolumeLog::append_held() {
  for (Held& held : std::exchange(held_, {})) {
    --in_flight_;
    log(held.message, std::move(held.done));
  }
}

void VolumeLog::close(const Error& error) {
  closed_ = error;
  writer_.give_back(std::exchange(set_aside_, {}).bytes());
  for (Held& held : std::exchange(held_, {})) {
    --in_flight_;
    held.done(error);
  }
}

void VolumeLog::log_void(const replication::VoidMessage& message,
                         UniqueFunction<void(Result<void>)> done) {
  Record record;
  record.type = RecordType::kVoid;
  record.volume = volume_;
  record.epoch = message.epoch;
  record.sequence = message.first;
  record.target_sequence = message.last;
  append_base(record, {}, Urgency::kEssential, std::move(done));
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
  // What replaces earlier ones gives their track back.
  append_base(record, std::move(bytes), replaces ? Urgency::kEssential : Urgency::kBeforeImage,
              std::move(done));
}

void VolumeLog::log_kept(const KeptShown& shown, PayloadSlice bytes,
                         UniqueFunction<void(Result<void>)> done) {
  CHECK(shown.zeros ? bytes.length == 0 : bytes.length == shown.range.count.bytes());
  Record record;
  record.type = RecordType::kRelocated;
  record.volume = volume_;
  record.epoch = epoch_;
  record.extent = shown.range;
  record.payload_blocks = static_cast<std::uint32_t>(bytes.length >> kBlockShift);
  record.target_sequence = shown.from;
  record.target_time = {shown.through.value};
  // It gives the track back where that stood.
  append_base(record, std::move(bytes), Urgency::kEssential, std::move(done));
}

void VolumeLog::log_rebase(BlockRange range, UniqueFunction<void(Result<void>)> done) {
  Record record;
  record.type = RecordType::kRebase;
  record.volume = volume_;
  record.epoch = epoch_;
  record.extent = range;
  append_base(record, {}, Urgency::kEssential, std::move(done));
}

}  // namespace mariner::volume

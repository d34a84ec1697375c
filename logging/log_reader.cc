#include "logging/log_reader.h"

#include <utility>

#include "proto/bytes.h"
#include "proto/check.h"
#include "proto/crc32c.h"

namespace mariner::logging {
namespace {

Error damage(const LogRead& read, const char* what) {
  return Error{ErrorCode::kCorrupt, std::string("log disk ") + std::to_string(read.location.disk) +
                                        ", block " + std::to_string(read.location.batch_block) +
                                        ", record " + std::to_string(read.location.slot) + ": " +
                                        what + " (volume " + std::to_string(read.volume.value) +
                                        ", write " + std::to_string(read.sequence.value) +
                                        " was expected)"};
}

}  // namespace

Result<void> verify_log_read(const LogRead& read, std::span<const std::byte> area,
                             const LogId& log) {
  const std::optional<ParsedBatch> batch = parse_batch(area, log, read.location.batch_block);
  if (!batch) return damage(read, "the batch header is damaged, torn or of another batch");
  if (read.location.slot >= batch->records.size()) {
    return damage(read, "the batch has fewer records");
  }
  const UnpackedRecord& unpacked = batch->records[read.location.slot];
  const Record& record = unpacked.record;
  if (record.volume != read.volume || record.sequence != read.sequence ||
      record.payload_offset != read.location.payload_offset) {
    return damage(read, "another record stands there");
  }
  const std::size_t count = read.to.size() / kBlockBytes;
  if (read.first_block + count > record.payload_blocks) {
    return damage(read, "the record's payload is shorter");
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto expected =
        load_le<std::uint32_t>(unpacked.block_crcs.data() + 4 * (read.first_block + i));
    if (crc32c(read.to.subspan(i * kBlockBytes, kBlockBytes)) != expected) {
      return damage(read, "a payload block fails its checksum");
    }
  }
  return {};
}

Result<void> read_log_blocking(Disk& disk, const LogId& log, const LogRead& read) {
  CHECK(read.location.valid());
  Payload area = Payload::allocate(std::size_t{read.location.header_blocks} * kBlockBytes);
  if (Result<void> r = disk.read(read.location.batch_block * kBlockBytes, area.bytes()); !r) {
    return r;
  }
  const std::uint64_t block = read.location.payload_block() + read.first_block;
  if (Result<void> r = disk.read(block * kBlockBytes, read.to); !r) return r;
  return verify_log_read(read, area.bytes(), log);
}

// Header area and payload are read at the same time; the check runs when both are there.
struct LogReader::InFlight {
  LogReader* reader = nullptr;
  LogRead read;
  Payload area;
  Disk::Completion done;
  Result<void> result;
  int waiting = 0;
  bool area_was_cached = false;

  static void finished(const std::shared_ptr<InFlight>& self, const Result<void>& result) {
    if (!result && self->result) self->result = result;
    if (--self->waiting > 0) return;
    LogReader& reader = *self->reader;
    CHECK(reader.in_flight_ > 0);
    if (self->result) {
      self->result = verify_log_read(self->read, self->area.bytes(), reader.log_);
      if (!self->result && self->area_was_cached) return retry(self);
      if (self->result && !self->area_was_cached) {
        reader.cache(self->read.location.batch_block, self->area);
      }
    }
    --reader.in_flight_;
    self->done(std::move(self->result));
  }

  // The cached area may be of the track's earlier use: once more with what stands there now.
  static void retry(const std::shared_ptr<InFlight>& self) {
    LogReader& reader = *self->reader;
    reader.forget(self->read.location.batch_block);
    self->result = {};
    self->area_was_cached = false;
    self->area = Payload::allocate(self->area.size());
    self->waiting = 1;
    reader.disk_.async_read(self->read.location.batch_block * kBlockBytes, self->area.bytes(),
                            [self](Result<void> r) { finished(self, r); });
  }
};

LogReader::~LogReader() { CHECK_MSG(in_flight_ == 0, "a log reader is destroyed in use"); }

void LogReader::read(const LogRead& read, Disk::Completion done) {
  CHECK(read.location.valid());
  auto op = std::make_shared<InFlight>();
  op->reader = this;
  op->read = read;
  op->done = std::move(done);
  ++in_flight_;
  const auto cached = by_block_.find(read.location.batch_block);
  if (cached != by_block_.end() &&
      cached->second->area.size() == std::size_t{read.location.header_blocks} * kBlockBytes) {
    recent_.splice(recent_.begin(), recent_, cached->second);
    op->area = cached->second->area;
    op->area_was_cached = true;
    op->waiting = 1;
  } else {
    op->area = Payload::allocate(std::size_t{read.location.header_blocks} * kBlockBytes);
    op->waiting = 2;
    disk_.async_read(read.location.batch_block * kBlockBytes, op->area.bytes(),
                     [op](Result<void> r) { InFlight::finished(op, r); });
  }
  const std::uint64_t block = read.location.payload_block() + read.first_block;
  disk_.async_read(block * kBlockBytes, read.to,
                   [op](Result<void> r) { InFlight::finished(op, r); });
}

void LogReader::forget(std::uint64_t block) {
  const auto cached = by_block_.find(block);
  if (cached == by_block_.end()) return;
  recent_.erase(cached->second);
  by_block_.erase(cached);
}

void LogReader::cache(std::uint64_t block, Payload area) {
  if (by_block_.contains(block)) return;
  recent_.push_front({block, std::move(area)});
  by_block_[block] = recent_.begin();
  if (recent_.size() > kCachedAreasMax) {
    by_block_.erase(recent_.back().block);
    recent_.pop_back();
  }
}

}  // namespace mariner::logging

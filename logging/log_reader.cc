#include "logging/log_reader.h"

#include <utility>

#include "proto/bytes.h"
#include "proto/check.h"
#include "proto/crc32c.h"

namespace mariner::logging {
namespace {

Error damage(const LogRead& read, const char* what) {
  return Error{ErrorCode::kCorrupt, std::string("log disk ") + std::to_string(read.location.disk) +
                                        ", sector " + std::to_string(read.location.batch_sector) +
                                        ", record " + std::to_string(read.location.slot) + ": " +
                                        what + " (volume " + std::to_string(read.volume.value) +
                                        ", write " + std::to_string(read.sequence.value) +
                                        " was expected)"};
}

std::size_t area_bytes(const LogRead& read, const BatchFormat& format) {
  return std::size_t{read.location.header_sectors} * format.sector_bytes;
}

std::uint64_t area_offset(const LogRead& read, const BatchFormat& format) {
  return read.location.batch_sector * format.sector_bytes;
}

std::uint64_t payload_offset(const LogRead& read, const BatchFormat& format) {
  return read.location.payload_sector() * format.sector_bytes +
         std::uint64_t{read.first_block} * kBlockBytes;
}

}  // namespace

Result<void> verify_log_read(const LogRead& read, std::span<const std::byte> area,
                             const BatchFormat& format) {
  const std::optional<ParsedBatch> batch = parse_batch(area, format, read.location.batch_sector);
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

Result<void> read_log_blocking(const LogDisks& disks, const LogRead& read) {
  CHECK(read.location.valid());
  const Result<LogDisks::Entry> entry = disks.find(read.location.disk);
  if (!entry) return entry.error();
  const BatchFormat& format = entry->format;
  Payload area = Payload::allocate(area_bytes(read, format));
  if (Result<void> r = entry->disk->read(area_offset(read, format), area.bytes()); !r) return r;
  if (Result<void> r = entry->disk->read(payload_offset(read, format), read.to); !r) return r;
  return verify_log_read(read, area.bytes(), format);
}

// Header area and payload are read at the same time; the check runs when both are there.
struct LogReader::InFlight {
  LogReader* reader = nullptr;
  LogDisks::Entry disk;  // held open
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
      self->result = verify_log_read(self->read, self->area.bytes(), self->disk.format);
      if (!self->result && self->area_was_cached) return retry(self);
      if (self->result && !self->area_was_cached) {
        reader.cache(place_of(self->read.location), self->area);
      }
    }
    --reader.in_flight_;
    self->done(std::move(self->result));
  }

  // The cached area may be of the track's earlier use: once more with what stands there now.
  static void retry(const std::shared_ptr<InFlight>& self) {
    LogReader& reader = *self->reader;
    reader.forget(place_of(self->read.location));
    self->result = {};
    self->area_was_cached = false;
    self->area = Payload::allocate(self->area.size());
    self->waiting = 1;
    self->disk.disk->async_read(area_offset(self->read, self->disk.format), self->area.bytes(),
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
  Result<LogDisks::Entry> entry = disks_.find(read.location.disk);
  if (!entry) {
    --in_flight_;
    return op->done(entry.error());
  }
  op->disk = *std::move(entry);
  const BatchFormat& format = op->disk.format;
  const auto cached = by_place_.find(place_of(read.location));
  if (cached != by_place_.end() && cached->second->area.size() == area_bytes(read, format)) {
    recent_.splice(recent_.begin(), recent_, cached->second);
    op->area = cached->second->area;
    op->area_was_cached = true;
    op->waiting = 1;
  } else {
    op->area = Payload::allocate(area_bytes(read, format));
    op->waiting = 2;
    op->disk.disk->async_read(area_offset(read, format), op->area.bytes(),
                              [op](Result<void> r) { InFlight::finished(op, r); });
  }
  op->disk.disk->async_read(payload_offset(read, format), read.to,
                            [op](Result<void> r) { InFlight::finished(op, r); });
}

void LogReader::forget(Place place) {
  const auto cached = by_place_.find(place);
  if (cached == by_place_.end()) return;
  recent_.erase(cached->second);
  by_place_.erase(cached);
}

void LogReader::cache(Place place, Payload area) {
  if (by_place_.contains(place)) return;
  recent_.push_front({place, std::move(area)});
  by_place_[place] = recent_.begin();
  if (recent_.size() > kCachedAreasMax) {
    by_place_.erase(recent_.back().place);
    recent_.pop_back();
  }
}

}  // namespace mariner::logging

#include "logging/log_reader.h"

#include <algorithm>
#include <cstring>
#include <tuple>
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
      record.payload_offset != read.location.payload_offset ||
      (read.ordinal != 0 && record.ordinal != read.ordinal)) {
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

// Reads under way, and the pieces of disks that they are found in.
struct LogReader::Several {
  // A header area or a payload.
  struct Extent {
    std::uint8_t disk = 0;
    ByteRange bytes;
    std::size_t read = 0;  // whose it is
    bool area = false;
  };
  struct Piece {
    std::uint8_t disk = 0;
    ByteRange bytes;
    std::span<const Extent> extents;
  };
  struct One {
    LogDisks::Entry disk;  // held open
    Payload cached;        // its header area, if it was known
    PayloadSlice area;     // ... or has been read
    int waiting = 0;       // extents
    bool failed = false;   // a piece could not be read
  };
  std::vector<LogRead> reads;
  EachDone done;
  std::vector<Result<void>> results;
  std::vector<One> ones;
  std::vector<Extent> extents;
  std::vector<Piece> pieces;
  std::size_t next = 0;       // of pieces
  std::size_t under_way = 0;  // pieces, and reads that are tried again

  void plan() {
    std::ranges::sort(extents, {}, [](const Extent& each) {
      return std::tuple(each.disk, each.bytes.offset, each.bytes.length);
    });
    for (std::size_t first = 0; first < extents.size();) {
      ByteRange bytes = extents[first].bytes;
      std::size_t end = first + 1;
      for (; end < extents.size() && extents[end].disk == extents[first].disk; ++end) {
        const ByteRange& more = extents[end].bytes;
        const std::uint64_t last = std::max(bytes.end(), more.end());
        if (more.offset > bytes.end() + kGapBytesMax || last - bytes.offset > kPieceBytesMax) break;
        bytes.length = last - bytes.offset;
      }
      pieces.push_back(
          {extents[first].disk, bytes, std::span(extents).subspan(first, end - first)});
      first = end;
    }
  }
};

void LogReader::read_each(std::vector<LogRead> reads, EachDone done) {
  const auto several = std::make_shared<Several>();
  several->results.resize(reads.size());
  several->ones.resize(reads.size());
  several->reads = std::move(reads);
  several->done = std::move(done);
  for (std::size_t i = 0; i < several->reads.size(); ++i) {
    const LogRead& read = several->reads[i];
    CHECK(read.location.valid());
    Result<LogDisks::Entry> entry = disks_.find(read.location.disk);
    if (!entry) {
      several->results[i] = entry.error();
      continue;
    }
    Several::One& one = several->ones[i];
    one.disk = *std::move(entry);
    const BatchFormat& format = one.disk.format;
    const std::uint8_t disk = read.location.disk;
    const ByteRange area{area_offset(read, format), area_bytes(read, format)};
    const auto cached = by_place_.find(place_of(read.location));
    if (cached != by_place_.end() && cached->second->area.size() == area.length) {
      one.cached = cached->second->area;
    } else {
      several->extents.push_back({disk, area, i, true});
    }
    several->extents.push_back({disk, {payload_offset(read, format), read.to.size()}, i, false});
    one.waiting = (one.cached.size() == 0) ? 2 : 1;
  }
  several->plan();
  ++in_flight_;
  if (several->pieces.empty()) return finish(several);
  waiting_.push_back(several);
  begin_pieces();
}

void LogReader::begin_pieces() {
  if (std::exchange(beginning_, true)) return;
  while (!waiting_.empty()) {
    const std::shared_ptr<Several> several = waiting_.front();
    if (!has_room(several->pieces[several->next].bytes.length)) break;
    if (several->next + 1 == several->pieces.size()) waiting_.pop_front();
    begin_piece(several);
  }
  beginning_ = false;
}

void LogReader::begin_piece(const std::shared_ptr<Several>& several) {
  const Several::Piece& piece = several->pieces[several->next++];
  ++several->under_way;
  ++pieces_under_way_;
  bytes_under_way_ += piece.bytes.length;
  const Several::Extent& first = piece.extents.front();
  const bool alone = piece.extents.size() == 1 && !first.area;
  Payload bytes = alone ? Payload() : Payload::allocate(piece.bytes.length);
  const std::span<std::byte> to = alone ? several->reads[first.read].to : bytes.bytes();
  several->ones[first.read].disk.disk->async_read(
      piece.bytes.offset, to, [this, several, &piece, bytes, alone](const Result<void>& done) {
        for (const Several::Extent& each : piece.extents) {
          Several::One& one = several->ones[each.read];
          const std::size_t within = each.bytes.offset - piece.bytes.offset;
          if (!done) {
            one.failed = true;
          } else if (each.area) {
            one.area = {bytes, within, each.bytes.length};
          } else if (!alone) {
            std::memcpy(several->reads[each.read].to.data(), bytes.data() + within,
                        each.bytes.length);
          }
          if (--one.waiting == 0) finish_one(several, each.read);
        }
        --pieces_under_way_;
        bytes_under_way_ -= piece.bytes.length;
        begin_pieces();
        --several->under_way;
        finish(several);
      });
}

// If it is.
void LogReader::finish(const std::shared_ptr<Several>& several) {
  if (several->under_way > 0 || several->next < several->pieces.size()) return;
  CHECK(in_flight_ > 0);
  --in_flight_;
  several->done(std::move(several->results));
}

// Who cannot be believed is read once more, by itself: only one of a piece may be damaged, or what
// was known of its batch be of the track's earlier use.
void LogReader::finish_one(const std::shared_ptr<Several>& several, std::size_t i) {
  Several::One& one = several->ones[i];
  if (!one.failed) {
    const auto area =
        (one.cached.size() == 0) ? one.area.bytes() : std::as_const(one.cached).bytes();
    several->results[i] = verify_log_read(several->reads[i], area, one.disk.format);
    one.area = {};
    if (several->results[i] || (one.cached.size() == 0)) return;
  }
  ++several->under_way;
  read(several->reads[i], [this, several, i](Result<void> result) {
    several->results[i] = std::move(result);
    --several->under_way;
    finish(several);
  });
}

void LogReader::forget(Place place) {
  const auto cached = by_place_.find(place);
  if (cached == by_place_.end()) return;
  cached_bytes_ -= cached->second->area.size();
  recent_.erase(cached->second);
  by_place_.erase(cached);
}

void LogReader::cache(Place place, Payload area) {
  if (by_place_.contains(place)) return;
  cached_bytes_ += area.size();
  recent_.push_front({place, std::move(area)});
  by_place_[place] = recent_.begin();
  while (cached_bytes_ > cached_bytes_max_) {
    cached_bytes_ -= recent_.back().area.size();
    by_place_.erase(recent_.back().place);
    recent_.pop_back();
  }
}

}  // namespace mariner::logging

#include "logging/track_scan.h"

#include <algorithm>
#include <optional>
#include <span>

#include "logging/damaged_read.h"
#include "proto/bytes.h"
#include "proto/check.h"
#include "proto/crc32c.h"
#include "proto/payload.h"

namespace mariner::logging {
namespace {

// A window over the track that moves forward. It grows while what is wanted stands close together,
// so that small batches cost one read for many, and reads no payloads where they are large: a gap
// of kGapBlocks takes longer to read than a read takes to begin. So there is at most one read for
// each batch, and one for each MiB.
class Window {
 public:
  static constexpr std::uint64_t kBytes = kScanReadBytesMax;
  static constexpr std::uint64_t kGapBytes = 64u << 10;
  static constexpr std::uint64_t kFirstBytes = 64u << 10;

  Window(Disk& disk, std::uint32_t sector_bytes, std::uint64_t end_sector,
         std::uint64_t read_bytes_max)
      : disk_(disk),
        sector_bytes_(sector_bytes),
        end_sector_(end_sector),
        read_bytes_max_(read_bytes_max),
        buffer_(Payload::allocate(kBytes)) {}

  // The next areas are probably as long as this.
  void expect(std::uint64_t count) { least_sectors_ = count; }

  // Sectors [sector, sector + count), count of at most kBytes, within the track. The bytes stay
  // valid until the next call.
  Result<std::span<const std::byte>> sectors(std::uint64_t sector, std::uint64_t count) {
    if (sector < first_ || sector + count > first_ + held_) {
      const bool far =
          held_ > 0 && (sector < first_ || sector >= first_ + held_ + kGapBytes / sector_bytes_);
      read_bytes_ = far ? sector_bytes_ : std::min(read_bytes_max_, 2 * read_bytes_);
      const std::uint64_t want = std::min(
          std::max({count, least_sectors_, read_bytes_ / sector_bytes_}), end_sector_ - sector);
      if (Result<void> r = read_with_damage(disk_, sector * sector_bytes_,
                                            buffer_.bytes().first(want * sector_bytes_));
          !r) {
        held_ = 0;
        return r.error();
      }
      first_ = sector;
      held_ = want;
    }
    return std::span<const std::byte>(buffer_.bytes())
        .subspan((sector - first_) * sector_bytes_, count * sector_bytes_);
  }

 private:
  Disk& disk_;
  const std::uint64_t sector_bytes_;
  const std::uint64_t end_sector_;
  const std::uint64_t read_bytes_max_;
  Payload buffer_;
  std::uint64_t first_ = 0;
  std::uint64_t held_ = 0;
  std::uint64_t read_bytes_ = kFirstBytes / 2;  // of the last read, but for what was necessary
  std::uint64_t least_sectors_ = 1;
};

class Scanner {
 public:
  Scanner(Disk& disk, const Superblock& superblock, const TrackScanRequest& request)
      : superblock_(superblock),
        format_(superblock.batch_format()),
        request_(request),
        first_sector_(superblock.track_first_sector(request.track.track)),
        end_sector_(first_sector_ + superblock.track_sectors),
        window_(disk, superblock.sector_bytes, end_sector_, request.read_bytes_max) {}

  Result<TrackScan> run() {
    Result<void> scanned = superblock_.rotates() ? scan_scattered() : scan_sequence();
    if (!scanned) return scanned.error();
    if (request_.is_last) {
      if (Result<void> r = check_tail(); !r) return r.error();
    }
    return std::move(scan_);
  }

  // The next whole batch of this track after number `after`, at or behind `sector`: tells damage in
  // the middle from the end of what was written.
  Result<std::optional<BatchHeader>> search(std::uint64_t sector, std::uint64_t after) {
    for (; sector < end_sector_; ++sector) {
      Result<std::optional<ParsedBatch>> found = parse_at(sector);
      if (!found) return found.error();
      if (*found && (*found)->header.batch_number > after) return std::optional((*found)->header);
    }
    return std::optional<BatchHeader>{};
  }

 private:
  Result<void> scan_sequence() {
    std::uint64_t sector = first_sector_ + 1;
    std::uint64_t number = request_.track.first_batch;
    while (request_.is_last || number != request_.end_batch) {
      Result<std::optional<ParsedBatch>> found = parse_at(sector);
      if (!found) return found.error();
      if (*found && (*found)->header.batch_number == number) {
        take(**found);
        sector += (*found)->header.total_sectors;
        ++number;
        continue;
      }
      Result<std::optional<BatchHeader>> next = search(sector + 1, number);
      if (!next) return next.error();
      if (!*next) break;
      damaged(number, (*next)->batch_number - 1, "batches before a readable one are damaged");
      sector = (*next)->sector;
      number = (*next)->batch_number;
    }
    end_at(number);
    if (request_.is_last && sector < end_sector_) scan_.next_sector = sector;
    return {};
  }

  // Batches stand anywhere, in any order, with arbitrary remains between them.
  Result<void> scan_scattered() {
    struct Found {
      BatchHeader header;
      std::vector<std::byte> area;
    };
    std::vector<Found> batches;
    for (std::uint64_t sector = first_sector_; sector < end_sector_;) {
      Result<std::optional<ParsedBatch>> found = parse_at(sector);
      if (!found) return found.error();
      if (!*found) {
        ++sector;
        continue;
      }
      const BatchHeader& header = (*found)->header;
      const auto area = window_.sectors(sector, header.header_sectors);
      batches.push_back({header, {area->begin(), area->end()}});
      sector += header.total_sectors;
    }
    std::ranges::sort(batches, {}, [](const Found& f) { return f.header.batch_number; });
    std::uint64_t number = request_.track.first_batch;
    for (const Found& found : batches) {
      const std::uint64_t found_number = found.header.batch_number;
      // What a failed write has left has the number of the next track's first.
      if (!request_.is_last && found_number >= request_.end_batch) {
        scan_.left_behind.push_back(found.header.sector);
        continue;
      }
      if (found_number < number) continue;
      if (found_number > number) {
        damaged(number, found_number - 1, "batches before a readable one are damaged");
      }
      take(*parse_batch(found.area, format_, found.header.sector));
      number = found_number + 1;
    }
    end_at(number);
    return {};
  }

  void damaged(std::uint64_t first, std::uint64_t last, const char* what) {
    scan_.damage.push_back({superblock_.disk, request_.track.track, first, last, what});
  }

  // `number`: of the batch that was not found any more.
  void end_at(std::uint64_t number) {
    if (!request_.is_last && number < request_.end_batch) {
      damaged(number, request_.end_batch - 1, "the end of the track is damaged");
      number = request_.end_batch;
    }
    scan_.next_batch = number;
  }

  // The whole batch of this track that stands at `sector`, if there is one. Its records point into
  // the window.
  Result<std::optional<ParsedBatch>> parse_at(std::uint64_t sector) {
    std::optional<ParsedBatch> none;
    if (sector >= end_sector_) return none;
    Result<std::span<const std::byte>> first = window_.sectors(sector, 1);
    if (!first) return first.error();
    const std::optional<BatchHeader> peeked = peek_batch(*first, format_);
    const std::uint64_t allocation = request_.track.allocation;
    if (!peeked || peeked->sector != sector ||
        (allocation != 0 && peeked->allocation != allocation) ||
        peeked->total_sectors > end_sector_ - sector) {
      return none;
    }
    Result<std::span<const std::byte>> area = window_.sectors(sector, peeked->header_sectors);
    if (!area) return area.error();
    return parse_batch(*area, format_, sector);
  }

  void take(const ParsedBatch& batch) {
    const BatchHeader& header = batch.header;
    window_.expect(header.header_sectors);
    last_first_record_ = scan_.records.size();
    scan_.last_batch_sector = header.sector;
    scan_.ordinal_frontier = header.ordinal_frontier;
    ++scan_.batches;
    std::uint16_t slot = 0;
    for (const UnpackedRecord& unpacked : batch.records) {
      scan_.records.push_back(
          {unpacked.record,
           {header.sector, unpacked.record.payload_offset, slot++,
            static_cast<std::uint8_t>(header.header_sectors), superblock_.disk}});
    }
  }

  // Verifies the payloads of the last batch. If one block is not whole, the batch was in flight and
  // nobody was told of it: it is cut, and the next batch takes its number.
  Result<void> check_tail() {
    if (scan_.last_batch_sector == 0) return {};
    Result<std::optional<ParsedBatch>> last = parse_at(scan_.last_batch_sector);
    if (!last) return last.error();
    if (!*last) {
      return Error{ErrorCode::kIo,
                   "log disk " + std::to_string(superblock_.disk) + ": sector " +
                       std::to_string(scan_.last_batch_sector) +
                       " held a batch and does not when it is read again; replace the "
                       "disk"};
    }
    const BatchHeader header = (*last)->header;
    struct Block {
      std::uint64_t sector;
      std::uint32_t crc;
    };
    std::vector<Block> blocks;  // of their own: the window moves on
    for (const UnpackedRecord& unpacked : (*last)->records) {
      for (std::uint32_t i = 0; i < unpacked.record.payload_blocks; ++i) {
        blocks.push_back({header.sector + unpacked.record.payload_offset +
                              std::uint64_t{i} * format_.sectors_per_block(),
                          load_le<std::uint32_t>(unpacked.block_crcs.data() + 4 * i)});
      }
    }
    for (const Block& block : blocks) {
      const auto bytes = window_.sectors(block.sector, format_.sectors_per_block());
      if (!bytes) return bytes.error();
      if (crc32c(*bytes) != block.crc) {
        cut_last(header);
        return {};
      }
    }
    return {};
  }

  void cut_last(const BatchHeader& header) {
    scan_.records_cut = header.record_count;
    scan_.records.resize(last_first_record_);
    scan_.next_sector = superblock_.rotates() ? 0 : header.sector;
    scan_.cut_sector = header.sector;
    scan_.next_batch = header.batch_number;
    scan_.last_batch_sector = header.previous_sector;
    --scan_.batches;
  }

  const Superblock& superblock_;
  const BatchFormat format_;
  const TrackScanRequest request_;
  const std::uint64_t first_sector_;
  const std::uint64_t end_sector_;
  Window window_;
  TrackScan scan_;
  std::size_t last_first_record_ = 0;
};

}  // namespace

Result<TrackScan> scan_track(Disk& disk, const Superblock& superblock,
                             const TrackScanRequest& request) {
  return Scanner(disk, superblock, request).run();
}

Result<std::optional<BatchHeader>> find_batch(Disk& disk, const Superblock& superblock,
                                              const TrackHeader& track, std::uint64_t sector,
                                              std::uint64_t after) {
  return Scanner(disk, superblock, {.track = track}).search(sector, after);
}

}  // namespace mariner::logging

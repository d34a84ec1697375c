#include "logging/track_scan.h"

#include <algorithm>
#include <optional>
#include <span>

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
  static constexpr std::uint64_t kBlocks = 256;  // 1 MiB
  static constexpr std::uint64_t kGapBlocks = 16;
  static constexpr std::uint64_t kFirstBlocks = 16;

  Window(Disk& disk, std::uint64_t end_block)
      : disk_(disk), end_block_(end_block), buffer_(Payload::allocate(kBlocks * kBlockBytes)) {}

  // The next areas are probably as long as this.
  void expect(std::uint64_t count) { least_blocks_ = count; }

  // Blocks [block, block + count), count <= kBlocks, block + count <= the track's end. The bytes
  // stay valid until the next call.
  Result<std::span<const std::byte>> blocks(std::uint64_t block, std::uint64_t count) {
    if (block < first_ || block + count > first_ + held_) {
      const bool far = held_ > 0 && (block < first_ || block >= first_ + held_ + kGapBlocks);
      read_blocks_ = far ? 1 : std::min(kBlocks, 2 * read_blocks_);
      const std::uint64_t want =
          std::min(std::max({count, least_blocks_, read_blocks_}), end_block_ - block);
      if (Result<void> r =
              disk_.read(block * kBlockBytes, buffer_.bytes().first(want * kBlockBytes));
          !r) {
        held_ = 0;
        return r.error();
      }
      first_ = block;
      held_ = want;
    }
    return std::span<const std::byte>(buffer_.bytes())
        .subspan((block - first_) * kBlockBytes, count * kBlockBytes);
  }

 private:
  Disk& disk_;
  const std::uint64_t end_block_;
  Payload buffer_;
  std::uint64_t first_ = 0;
  std::uint64_t held_ = 0;
  std::uint64_t read_blocks_ = kFirstBlocks / 2;  // of the last read, but for what was necessary
  std::uint64_t least_blocks_ = 1;
};

static_assert(kBatchHeaderBlocksMax <= Window::kBlocks);

class Scanner {
 public:
  Scanner(Disk& disk, const Superblock& superblock, const TrackScanRequest& request)
      : superblock_(superblock),
        request_(request),
        end_block_(superblock.track_first_block(request.track.track) + superblock.track_blocks),
        window_(disk, end_block_) {}

  Result<TrackScan> run() {
    std::uint64_t block = superblock_.track_first_block(request_.track.track) + 1;
    std::uint64_t number = request_.track.first_batch;
    for (;;) {
      if (!request_.is_last && number == request_.end_batch) break;
      Result<bool> found = take(block, number);
      if (!found) return found.error();
      if (*found) {
        block += last_total_blocks_;
        ++number;
        continue;
      }
      Result<std::optional<BatchHeader>> next = search(block + 1, number);
      if (!next) return next.error();
      if (*next) {
        scan_.damage.push_back({request_.track.track, number, (*next)->batch_number - 1,
                                "batches before a readable one are damaged"});
        block = (*next)->block;
        number = (*next)->batch_number;
        continue;
      }
      if (!request_.is_last) {
        scan_.damage.push_back({request_.track.track, number, request_.end_batch - 1,
                                "the end of the track is damaged"});
        number = request_.end_batch;
      }
      break;
    }
    scan_.next_batch = number;
    scan_.next_block = request_.is_last && block < end_block_ ? block : 0;
    if (request_.is_last) {
      if (Result<void> r = check_tail(); !r) return r.error();
    }
    return std::move(scan_);
  }

  // The next whole batch of this track after number `after`, at or behind `block`: tells damage in
  // the middle from the end of what was written.
  Result<std::optional<BatchHeader>> search(std::uint64_t block, std::uint64_t after) {
    for (; block < end_block_; ++block) {
      Result<std::span<const std::byte>> first = window_.blocks(block, 1);
      if (!first) return first.error();
      const std::optional<BatchHeader> peeked = peek_batch(*first, superblock_.log);
      if (!peeked || peeked->block != block || peeked->batch_number <= after ||
          peeked->allocation != request_.track.allocation ||
          peeked->total_blocks > end_block_ - block) {
        continue;
      }
      Result<std::span<const std::byte>> area = window_.blocks(block, peeked->header_blocks);
      if (!area) return area.error();
      if (parse_batch(*area, superblock_.log, block)) return peeked;
    }
    return std::optional<BatchHeader>{};
  }

 private:
  // Reads batch `number` at `block`; false if none that is whole stands there.
  Result<bool> take(std::uint64_t block, std::uint64_t number) {
    if (block >= end_block_) return false;
    Result<std::span<const std::byte>> first = window_.blocks(block, 1);
    if (!first) return first.error();
    const std::optional<BatchHeader> peeked = peek_batch(*first, superblock_.log);
    if (!peeked || peeked->batch_number != number ||
        peeked->allocation != request_.track.allocation ||
        peeked->total_blocks > end_block_ - block) {
      return false;
    }
    Result<std::span<const std::byte>> area = window_.blocks(block, peeked->header_blocks);
    if (!area) return area.error();
    const std::optional<ParsedBatch> batch = parse_batch(*area, superblock_.log, block);
    if (!batch) return false;
    last_total_blocks_ = batch->header.total_blocks;
    window_.expect(batch->header.header_blocks);
    last_first_record_ = scan_.records.size();
    scan_.last_batch_block = block;
    ++scan_.batches;
    if (request_.is_last) last_area_.assign(area->begin(), area->end());
    std::uint16_t slot = 0;
    for (const UnpackedRecord& unpacked : batch->records) {
      scan_.records.push_back(
          {unpacked.record,
           {block, unpacked.record.payload_offset, slot++,
            static_cast<std::uint8_t>(batch->header.header_blocks), superblock_.disk}});
    }
    return true;
  }

  // Verifies the payloads of the last batch. If one block is not whole, the batch was in flight and
  // nobody was told of it: it is cut, and the next batch takes its place and number.
  Result<void> check_tail() {
    if (scan_.last_batch_block == 0) return {};
    const std::uint64_t block = scan_.last_batch_block;
    const std::optional<ParsedBatch> batch = parse_batch(last_area_, superblock_.log, block);
    CHECK(batch.has_value());
    for (const UnpackedRecord& unpacked : batch->records) {
      for (std::uint32_t i = 0; i < unpacked.record.payload_blocks; ++i) {
        Result<std::span<const std::byte>> bytes =
            window_.blocks(block + unpacked.record.payload_offset + i, 1);
        if (!bytes) return bytes.error();
        if (crc32c(*bytes) == load_le<std::uint32_t>(unpacked.block_crcs.data() + 4 * i)) continue;
        scan_.records_cut = batch->records.size();
        scan_.records.resize(last_first_record_);
        scan_.next_block = block;
        scan_.next_batch = batch->header.batch_number;
        scan_.last_batch_block = batch->header.previous_block;
        --scan_.batches;
        return {};
      }
    }
    return {};
  }

  const Superblock& superblock_;
  const TrackScanRequest request_;
  const std::uint64_t end_block_;
  Window window_;
  TrackScan scan_;
  std::uint64_t last_total_blocks_ = 0;
  std::size_t last_first_record_ = 0;
  std::vector<std::byte> last_area_;
};

}  // namespace

Result<TrackScan> scan_track(Disk& disk, const Superblock& superblock,
                             const TrackScanRequest& request) {
  return Scanner(disk, superblock, request).run();
}

Result<std::optional<BatchHeader>> find_batch(Disk& disk, const Superblock& superblock,
                                              const TrackHeader& track, std::uint64_t block,
                                              std::uint64_t after) {
  return Scanner(disk, superblock, {.track = track}).search(block, after);
}

}  // namespace mariner::logging

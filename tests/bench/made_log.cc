#include "tests/bench/made_log.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "logging/batch.h"
#include "logging/record.h"
#include "logging/recovery.h"
#include "proto/check.h"
#include "proto/crc32c.h"
#include "proto/payload.h"

namespace mariner::bench {
namespace {

using logging::BatchHeader;
using logging::ConstBytes;
using logging::Durability;
using logging::Record;
using logging::Superblock;

constexpr logging::LogId kLog{std::byte{0x4d}, std::byte{0x61}, std::byte{0x64}, std::byte{0x65}};
constexpr std::uint64_t kVolumeBlocks = std::uint64_t{1} << 28;
constexpr std::uint64_t kWriteBytes = 8u << 20;
constexpr std::uint64_t kSpareTracks = 4;

std::uint32_t batch_blocks(const MadeLog& log, std::uint32_t records) {
  Record record;
  record.payload_blocks = log.record_blocks;
  return logging::header_sectors_for(std::uint64_t{records} * record.packed_bytes()) +
         records * log.record_blocks;
}

// Fills one track after another, and writes what it has in large pieces.
class Maker {
 public:
  Maker(logging::Disk& disk, const Superblock& superblock, const MadeLog& log)
      : disk_(disk),
        superblock_(superblock),
        log_(log),
        sequence_(log.first - 1),
        payload_(Payload::zeroed(std::size_t{log.record_blocks} * kBlockBytes)),
        buffer_(Payload::allocate(kWriteBytes)) {
    std::memset(payload_.data(), 0x6b, payload_.size());
    crcs_.assign(log.record_blocks, crc32c(payload_.bytes().first(kBlockBytes)));
  }

  Result<void> run() {
    const std::uint64_t last = log_.first + log_.records - 1;
    while (sequence_ < last) {
      const auto records = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(log_.records_per_batch, last - sequence_));
      const std::uint32_t blocks = batch_blocks(log_, records);
      if (next_block_ + blocks > end_block_) {
        if (Result<void> r = flush(); !r) return r;
        if (allocation_ == superblock_.track_count) {
          return Error{ErrorCode::kNoSpace, "the disk has no room for the log"};
        }
        const std::uint64_t track = allocation_++;
        track_first_batch_ = number_;
        next_block_ = written_to_ = superblock_.track_first_sector(track);
        end_block_ = next_block_ + superblock_.track_sectors;
        std::byte* to = room(1);
        logging::pack_track_header({track, allocation_, number_}, superblock_.log,
                                   std::span<std::byte, kBlockBytes>(to, kBlockBytes));
      }
      if ((next_block_ - written_to_ + blocks) * kBlockBytes > kWriteBytes) {
        if (Result<void> r = flush(); !r) return r;
      }
      put_batch(records, blocks);
    }
    if (Result<void> r = flush(); !r) return r;
    return disk_.flush();
  }

 private:
  std::byte* room(std::uint32_t blocks) {
    std::byte* to = buffer_.data() + (next_block_ - written_to_) * kBlockBytes;
    next_block_ += blocks;
    return to;
  }

  void put_batch(std::uint32_t records, std::uint32_t blocks) {
    BatchHeader header;
    header.record_count = static_cast<std::uint16_t>(records);
    header.header_sectors = static_cast<std::uint16_t>(blocks - records * log_.record_blocks);
    header.total_sectors = blocks;
    header.batch_number = number_++;
    header.allocation = allocation_;
    header.sector = next_block_;
    header.previous_sector = previous_block_;
    header.ordinal_frontier = sequence_ + 1;  // the batch before was durable
    header.track_first_batch = track_first_batch_;
    std::byte* const area = room(blocks);
    const std::size_t area_bytes = std::size_t{header.header_sectors} * kBlockBytes;
    std::memset(area, 0, area_bytes);
    std::byte* to = area + logging::kBatchHeaderBytes;
    for (std::uint32_t slot = 0; slot < records; ++slot) {
      const Record record = next_record(header, slot);
      logging::pack_record(record, crcs_, to);
      to += record.packed_bytes();
      std::memcpy(area + std::size_t{record.payload_offset} * kBlockBytes, payload_.data(),
                  payload_.size());
      previous_slot_ = static_cast<std::uint16_t>(slot);
      previous_block_ = header.sector;
    }
    logging::seal_batch(header, superblock_.log, {area, area_bytes});
  }

  Record next_record(const BatchHeader& header, std::uint32_t slot) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;  // Knuth's, MMIX
    Record record;
    record.volume = VolumeId{1};
    record.epoch = Epoch{1};
    record.sequence = SequenceNumber{++sequence_};
    record.time = VersionTime{sequence_ * 1000};
    record.extent = {Lbn{(random_ >> 33) % (kVolumeBlocks - log_.record_blocks)},
                     BlockCount{log_.record_blocks}};
    record.payload_blocks = log_.record_blocks;
    record.payload_offset = header.header_sectors + slot * log_.record_blocks;
    record.previous_sector = previous_block_;
    record.previous_slot = previous_slot_;
    record.ordinal = sequence_;
    return record;
  }

  Result<void> flush() {
    if (next_block_ == written_to_) return {};
    const ConstBytes part(buffer_.data(), (next_block_ - written_to_) * kBlockBytes);
    const std::uint64_t at = written_to_ * kBlockBytes;
    written_to_ = next_block_;
    return disk_.write(at, {&part, 1}, Durability::kVolatile);
  }

  logging::Disk& disk_;
  const Superblock& superblock_;
  const MadeLog& log_;
  std::uint64_t sequence_;  // of the last record
  Payload payload_;
  std::vector<std::uint32_t> crcs_;
  Payload buffer_;  // blocks [written_to_, next_block_)
  std::uint64_t written_to_ = 0;
  std::uint64_t next_block_ = 0;
  std::uint64_t end_block_ = 0;
  std::uint64_t allocation_ = 0;
  std::uint64_t number_ = 1;
  std::uint64_t track_first_batch_ = 1;
  std::uint64_t previous_block_ = 0;
  std::uint16_t previous_slot_ = 0;
  std::uint64_t random_ = 1;
};

}  // namespace

std::uint64_t MadeLog::disk_bytes() const {
  const std::uint64_t batches = (records + records_per_batch - 1) / records_per_batch;
  const std::uint64_t per_track =
      (track_bytes / kBlockBytes - 1) / batch_blocks(*this, records_per_batch);
  const std::uint64_t tracks = (batches + per_track - 1) / per_track + kSpareTracks;
  return logging::reserved_blocks_for(logging::list_blocks_for(tracks)) * kBlockBytes +
         tracks * track_bytes;
}

Result<Superblock> make_log(logging::Disk& disk, const MadeLog& log) {
  CHECK(batch_blocks(log, log.records_per_batch) * std::uint64_t{kBlockBytes} <= kWriteBytes / 2);
  Result<Superblock> superblock = logging::format_log(disk, kLog, 0, log.track_bytes, 1);
  if (!superblock) return superblock;
  if (Result<void> r = Maker(disk, *superblock, log).run(); !r) return r.error();
  return superblock;
}

Result<void> HeaderDisk::read(std::uint64_t offset, std::span<std::byte> to) {
  std::fill(to.begin(), to.end(), std::byte{0});
  const std::uint64_t first = superblock_.track_first_sector(0) * kBlockBytes;
  const std::uint64_t track_bytes = std::uint64_t{superblock_.track_sectors} * kBlockBytes;
  if (offset < first || (offset - first) % track_bytes != 0 || to.size() < kBlockBytes) return {};
  const std::uint64_t track = (offset - first) / track_bytes;
  if (track >= taken_) return {};
  logging::pack_track_header({track, track + 1, track + 1}, superblock_.log,
                             std::span<std::byte, kBlockBytes>(to.data(), kBlockBytes));
  return {};
}

Result<void> HeaderDisk::write(std::uint64_t, std::span<const ConstBytes>, Durability) {
  return Error{ErrorCode::kIo, "it cannot be written to"};
}

Result<void> HeaderDisk::discard(ByteRange) {
  return Error{ErrorCode::kIo, "it cannot be written to"};
}

void HeaderDisk::async_read(std::uint64_t, std::span<std::byte>, Completion) {
  CHECK_MSG(false, "recovery makes blocking calls");
}

void HeaderDisk::async_write(std::uint64_t, std::vector<ConstBytes>, Durability, Completion) {
  CHECK_MSG(false, "recovery makes blocking calls");
}

Superblock superblock_of(std::uint64_t tracks) {
  Superblock superblock;
  superblock.log = kLog;
  superblock.track_sectors = logging::kTrackBytesMin / kBlockBytes;
  superblock.track_count = tracks;
  superblock.list_blocks = logging::list_blocks_for(tracks);
  superblock.first_sector = logging::reserved_blocks_for(superblock.list_blocks);
  return superblock;
}

}  // namespace mariner::bench

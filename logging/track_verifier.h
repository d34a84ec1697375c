// Verifies every byte of one complete track that stands for something: its header, the header areas
// of its batches, their records' identities and each block of their payloads. FORMAT.md sections 2
// to 5.
//
// Pure bookkeeping, without I/O: it says which blocks it wants next, in ascending order, and is
// given them or told that they cannot be read. Behind damage it searches for the next whole batch
// of the track and goes on there. Nothing that a disk may hold stops it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "logging/batch.h"
#include "logging/record.h"
#include "logging/track.h"

namespace mariner::logging {

// A range of a track that is not what was written.
struct TrackDamage {
  enum class Kind {
    kTrackHeader,  // of the track; what it held can be read all the same, but for other damage
    kBatches,      // [first_batch, last_batch] are lost with all their records
    kPayload,      // blocks of one record's payload
    kMore,         // from here on there is more than is listed; the range ends at the last of it
  };
  Kind kind = Kind::kPayload;
  bool unreadable = false;  // the disk gives errors; otherwise it gives other bytes
  std::uint64_t track = 0;
  std::uint64_t allocation = 0;
  std::uint64_t first_block = 0;  // of the log disk
  std::uint64_t block_count = 0;  // of batches that are lost at most so many
  // Of kBatches, and of a track header behind which nothing was found (first_batch 0: not known).
  std::uint64_t first_batch = 0;
  std::uint64_t last_batch = 0;
  // Of kBatches: times of the last write before them and of the first behind them; 0: not known.
  VersionTime after;
  VersionTime before;
  // Of kPayload: the record and the blocks of its volume that these bytes are of.
  RecordType type = RecordType::kWrite;
  VolumeId volume;
  SequenceNumber sequence;
  VersionTime time;
  BlockRange extent;

  friend bool operator==(const TrackDamage&, const TrackDamage&) = default;
};

class TrackVerifier {
 public:
  // Of one read; a header area is no longer.
  static constexpr std::uint32_t kPieceBlocks = 64;
  static constexpr std::size_t kDamageMax = 64;

  struct Request {
    std::uint64_t track = 0;
    std::uint64_t allocation = 0;
    // The batch that the tracks before it lead to; 0: not known.
    std::uint64_t expected_batch = 0;
    // The first batch of the next track that has a header: what follows it here is none of the log.
    std::uint64_t end_batch = 0;
    // That is the very next track. Otherwise batches below `end_batch` may stand in one between.
    bool ends_here = true;
    VersionTime last_time;  // of the tracks before it; 0: not known
  };

  // Of disks that rotate, or have small sectors, tracks are not verified: batches stand anywhere.
  [[nodiscard]] static bool can_verify(const Superblock& superblock) {
    return !superblock.rotates() && superblock.sector_bytes == kBlockBytes &&
           superblock.batch_format().header_sectors_max() <= kPieceBlocks;
  }

  // `superblock` outlives it. Requires can_verify().
  TrackVerifier(const Superblock& superblock, const Request& request);

  // What to read next: at most kPieceBlocks, within the track. None when all is verified.
  struct Piece {
    std::uint64_t block = 0;
    std::uint32_t count = 0;
  };
  [[nodiscard]] Piece next() const;
  // The bytes of next(), whole.
  void take(std::span<const std::byte> bytes);
  // next() could not be read: it becomes smaller until the block that cannot be is alone.
  void unreadable();

  [[nodiscard]] std::uint64_t track() const { return request_.track; }
  [[nodiscard]] std::uint64_t allocation() const { return request_.allocation; }
  // In ascending order; the last may still grow as long as next() has something.
  [[nodiscard]] const std::vector<TrackDamage>& damage() const { return damage_; }
  [[nodiscard]] std::uint64_t damaged_blocks() const { return damaged_blocks_; }
  // For the track behind it, when all is verified.
  [[nodiscard]] std::uint64_t next_batch() const { return expected_; }
  [[nodiscard]] VersionTime last_time() const { return last_time_; }

 private:
  enum class State { kTrackHeader, kBatch, kSearch, kArea, kPayload, kDone };
  struct Stored {
    Record record;
    std::size_t first_crc = 0;
  };

  // `bytes` of one block; none when it cannot be read.
  void consume(std::uint64_t block, std::span<const std::byte> bytes);
  void take_track_header(std::span<const std::byte> bytes);
  void begin_batch(std::uint64_t block, std::span<const std::byte> bytes);
  void take_area(std::uint64_t block, std::span<const std::byte> bytes);
  void finish_area();
  void area_failed();
  void found(const ParsedBatch& batch);
  void take_payload(std::uint64_t block, std::span<const std::byte> bytes);
  void next_record();
  void lose(std::uint64_t block);
  void end_of_track();
  void add(const TrackDamage& damage);
  void add_payload(std::uint64_t block, std::uint32_t payload_block, bool unreadable);
  void add_lost(std::uint64_t last_batch, std::uint64_t end_block, VersionTime before);
  [[nodiscard]] TrackDamage here(TrackDamage::Kind kind, std::uint64_t block) const;

  const Superblock& superblock_;
  const Request request_;
  const std::uint64_t first_block_;
  const std::uint64_t end_block_;
  std::uint64_t at_;  // the next block
  std::uint32_t piece_blocks_ = kPieceBlocks;
  State state_ = State::kTrackHeader;
  std::uint64_t expected_;  // number of the next batch; 0: not known
  bool header_missing_ = false;
  bool header_unreadable_ = false;
  // kSearch: since which block, and the least number that is looked for.
  std::uint64_t lost_from_ = 0;
  std::uint64_t search_min_ = 0;
  bool lost_unreadable_ = false;
  // kArea: a header area that is being gathered, and what comes next if it is none.
  std::vector<std::byte> area_;
  std::uint64_t area_block_ = 0;
  std::size_t area_bytes_ = 0;
  bool area_was_searched_ = false;
  // kPayload: what the batch holds, and where in it `at_` is.
  std::vector<Stored> records_;
  std::vector<std::uint32_t> crcs_;
  std::size_t record_ = 0;
  std::uint32_t payload_block_ = 0;

  VersionTime last_time_;
  std::vector<TrackDamage> damage_;
  std::uint64_t damaged_blocks_ = 0;
};

}  // namespace mariner::logging

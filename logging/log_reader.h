// Reads payload blocks back from the log and verifies them.
//
// Every read checks the batch's header area (CRC, log, address), the record's identity (volume,
// sequence, and the ordinal where it is known) and each block's CRC32C, so that torn, stale,
// misdirected and flipped data is an error (kCorrupt), never wrong bytes. Header areas read
// recently are kept (bounded), and read again when they do not fit: a track may have been used anew
// since.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "logging/batch.h"
#include "logging/disk.h"
#include "logging/log_disks.h"
#include "logging/log_location.h"
#include "proto/payload.h"
#include "proto/unique_function.h"

namespace mariner::logging {

// What to read: payload blocks [first_block, first_block + to.size()/4096) of the record at
// `location`, which must be `sequence` of `volume`, and `ordinal` in the order of the log if that
// is not 0: what is logged again, a before-image or for a kept moment, has no sequence number, and
// what stood at its place in an earlier use of the track may look the same but for that.
struct LogRead {
  LogLocation location;
  VolumeId volume;
  SequenceNumber sequence;
  std::uint32_t first_block = 0;
  std::span<std::byte> to;  // aligned as the disk demands
  std::uint64_t ordinal = 0;
};

// Checks one record's payload blocks against the header area that was read with them. The
// building brick of both readers below.
Result<void> verify_log_read(const LogRead& read, std::span<const std::byte> area,
                             const BatchFormat& format);

// Reads and verifies, blocking. Any thread. kUnavailable when the disk is not there.
Result<void> read_log_blocking(const LogDisks& disks, const LogRead& read);

// Reads asynchronously on the Executor's thread that owns the disks.
class LogReader {
 public:
  // Of header areas that are kept: those of about 8 GiB that were written in pieces of 64 KiB. Who
  // reads at random, as hosts do what is not restored yet, reads half as often with them.
  static constexpr std::size_t kCachedBytesMax = 32u << 20;

  // `disks` outlives it.
  explicit LogReader(const LogDisks& disks, std::size_t cached_bytes_max = kCachedBytesMax)
      : disks_(disks), cached_bytes_max_(cached_bytes_max) {}
  ~LogReader();  // nothing may be in flight

  void read(const LogRead& read, Disk::Completion done);

  // Several at once. What stands close together on a disk is read in one piece, and copied from
  // there: the log is written in one go, and so is much that is read together. So much at a time,
  // of all that is asked, that whoever writes to the disk does not wait long behind it.
  static constexpr std::size_t kPieceBytesMax = 256u << 10;  // or one payload, however long
  static constexpr std::size_t kGapBytesMax = 32u << 10;     // that is read for nothing
  static constexpr std::size_t kBytesAtATime = 8 * kPieceBytesMax;
  static constexpr std::size_t kPiecesAtATime = 64;
  // A result for each, in the order of `reads`.
  using EachDone = UniqueFunction<void(std::vector<Result<void>>)>;
  void read_each(std::vector<LogRead> reads, EachDone done);

 private:
  struct InFlight;
  struct Several;
  // Where a header area stands: its first sector, and in the lowest byte its disk.
  using Place = std::uint64_t;
  static Place place_of(const LogLocation& location) {
    return (location.batch_sector << 8) | location.disk;
  }
  [[nodiscard]] bool has_room(std::size_t bytes) const {
    return bytes_under_way_ == 0 ||
           (pieces_under_way_ < kPiecesAtATime && bytes_under_way_ + bytes <= kBytesAtATime);
  }
  // Of those that wait, in their order, as many pieces as there is room for.
  void begin_pieces();
  void begin_piece(const std::shared_ptr<Several>& several);
  void finish_one(const std::shared_ptr<Several>& several, std::size_t i);
  void finish(const std::shared_ptr<Several>& several);
  void cache(Place place, Payload area);
  void forget(Place place);

  const LogDisks& disks_;
  std::size_t in_flight_ = 0;
  std::deque<std::shared_ptr<Several>> waiting_;  // with pieces that were not begun
  std::size_t pieces_under_way_ = 0;
  std::size_t bytes_under_way_ = 0;
  bool beginning_ = false;
  struct Cached {
    Place place = 0;
    Payload area;
  };
  const std::size_t cached_bytes_max_;
  std::size_t cached_bytes_ = 0;
  std::list<Cached> recent_;  // most recent first
  std::unordered_map<Place, std::list<Cached>::iterator> by_place_;
};

}  // namespace mariner::logging

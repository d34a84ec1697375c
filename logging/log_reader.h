// Reads payload blocks back from the log and verifies them.
//
// Every read checks the batch's header area (CRC, log, address), the record's identity (volume,
// sequence) and each block's CRC32C, so that torn, stale, misdirected and flipped data is an error
// (kCorrupt), never wrong bytes. Header areas read recently are kept
// (bounded), and read again when they do not fit: a track may have been used anew since.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>

#include "logging/batch.h"
#include "logging/disk.h"
#include "logging/log_location.h"
#include "proto/payload.h"

namespace mariner::logging {

// What to read: payload blocks [first_block, first_block + to.size()/4096) of the record at
// `location`, which must be `sequence` of `volume`.
struct LogRead {
  LogLocation location;
  VolumeId volume;
  SequenceNumber sequence;
  std::uint32_t first_block = 0;
  std::span<std::byte> to;  // aligned as the disk demands
};

// Checks one record's payload blocks against the header area that was read with them. The
// building brick of both readers below.
Result<void> verify_log_read(const LogRead& read, std::span<const std::byte> area,
                             const LogId& log);

// Reads and verifies, blocking. Any thread.
Result<void> read_log_blocking(Disk& disk, const LogId& log, const LogRead& read);

// Reads asynchronously on the Executor's thread that owns the disk.
class LogReader {
 public:
  static constexpr std::size_t kCachedAreasMax = 256;

  LogReader(Disk& disk, const LogId& log) : disk_(disk), log_(log) {}
  ~LogReader();  // nothing may be in flight

  void read(const LogRead& read, Disk::Completion done);

 private:
  struct InFlight;
  void cache(std::uint64_t block, Payload area);
  void forget(std::uint64_t block);

  Disk& disk_;
  const LogId log_;
  std::size_t in_flight_ = 0;
  struct Cached {
    std::uint64_t block = 0;
    Payload area;
  };
  std::list<Cached> recent_;  // most recent first
  std::unordered_map<std::uint64_t, std::list<Cached>::iterator> by_block_;
};

}  // namespace mariner::logging

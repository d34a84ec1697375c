// Logs for measuring how fast one is found again: made in bulk, not by a writer.
//
// make_log() writes what a writer would have, in large volatile writes. HeaderDisk answers as a log
// of any number of tracks would whose first ones have been taken, without holding it.
#pragma once

#include <cstdint>
#include <vector>

#include "logging/disk.h"
#include "logging/track.h"
#include "proto/error.h"

namespace mariner::bench {

struct MadeLog {
  std::uint64_t records = 0;
  std::uint64_t first = 1;  // sequence number and ordinal of the first
  std::uint32_t records_per_batch = 32;
  std::uint32_t record_blocks = 1;  // of payload
  std::uint64_t track_bytes = std::uint64_t{64} << 20;

  // Room for it, and a few tracks more.
  [[nodiscard]] std::uint64_t disk_bytes() const;
};

// Formats `disk` and writes the log, as of volume 1, at random blocks, with times that go up.
// Durable on return. kNoSpace when the disk has no room.
Result<logging::Superblock> make_log(logging::Disk& disk, const MadeLog& log);

// Reads as zeros but for the headers of the tracks of allocations 1 to `taken`, each in its own.
class HeaderDisk final : public logging::Disk {
 public:
  HeaderDisk(const logging::Superblock& superblock, std::uint64_t taken)
      : superblock_(superblock), taken_(taken) {}

  [[nodiscard]] std::uint64_t size_bytes() const override {
    return superblock_.end_sector() * kBlockBytes;
  }
  [[nodiscard]] std::uint32_t alignment() const override { return kBlockBytes; }
  Result<void> read(std::uint64_t offset, std::span<std::byte> to) override;
  Result<void> write(std::uint64_t offset, std::span<const logging::ConstBytes> parts,
                     logging::Durability durability) override;
  Result<void> flush() override { return {}; }
  Result<void> discard(ByteRange range) override;
  void async_read(std::uint64_t offset, std::span<std::byte> to, Completion done) override;
  void async_write(std::uint64_t offset, std::vector<logging::ConstBytes> parts,
                   logging::Durability durability, Completion done) override;

 private:
  const logging::Superblock superblock_;
  const std::uint64_t taken_;
};

// Of a log of so many tracks of the smallest size.
[[nodiscard]] logging::Superblock superblock_of(std::uint64_t tracks);

}  // namespace mariner::bench

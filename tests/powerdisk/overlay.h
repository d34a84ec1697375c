// What a disk's volatile write cache holds of one file: the writes that no flush has covered.
//
// A write is kept in sectors of 512 bytes, and several versions of a sector are kept side by side,
// because a disk that loses power may have destaged any of them. Reads see the newest. Whoever
// flushes moves sectors out through a sink; whoever cuts the power asks for the survivors.
// Not thread-safe: PowerFile's mutex guards it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "proto/units.h"

namespace mariner::powerdisk {

inline constexpr std::uint32_t kSectorBytes = 512;
inline constexpr std::uint32_t kPageBytes = 4096;
inline constexpr std::uint32_t kPageSectors = kPageBytes / kSectorBytes;
static_assert(kPageSectors == 8, "a page's sectors are the bits of one byte");

// The order of writes over all files of the disk.
using WriteId = Ordinal<struct PowerWriteTag>;

// Receives sectors that reach the medium: `offset` and the size of `data` are whole sectors.
using SectorSink = std::function<void(std::uint64_t offset, std::span<const std::byte> data)>;

// What becomes of an unflushed write when the power goes.
enum class Fate : std::uint8_t { kLost, kKept, kTorn };

// Decides by seed. One seed has one mood (from "nearly all is lost" to "nearly all is kept"), so
// that a series of seeds covers both ends.
class Fates {
 public:
  explicit Fates(std::uint64_t seed);
  // Every unflushed write is lost.
  static Fates nothing_kept();
  [[nodiscard]] Fate of(WriteId write) const;
  // Of a torn write: whether this sector of it reached the medium.
  [[nodiscard]] bool sector_kept(WriteId write, std::uint64_t offset) const;

 private:
  std::uint64_t seed_;
  std::uint32_t kept_percent_;
  std::uint32_t torn_percent_;
};

class Overlay {
 public:
  // At most this many versions of a page; the two oldest are then folded into one.
  static constexpr std::size_t kVersionsMax = 4;

  // Adds a write of whole sectors. Ids ascend from call to call.
  void write(std::uint64_t offset, std::span<const std::byte> data, WriteId id);
  // Adds a write of zeros over whole sectors, which takes little memory.
  void write_zeros(ByteRange sectors, WriteId id);

  // Lays the newest unflushed bytes over `bytes`, which hold the medium's contents at `offset`.
  void read_over(std::uint64_t offset, std::span<std::byte> bytes) const;

  // Moves the newest version of every sector to the sink and forgets the rest.
  void flush(const SectorSink& sink);
  // Moves write `id`, which covered `sectors`, to the sink; what it replaced is forgotten, what
  // came later stays.
  void flush_write(ByteRange sectors, WriteId id, const SectorSink& sink);
  // The power is gone: the surviving sectors go to the sink, the others are lost.
  void cut(const Fates& fates, const SectorSink& sink);
  // Forgets whole pages from the one that holds `size`'s byte on, and the sectors past `size`.
  void truncate(std::uint64_t size);

  [[nodiscard]] bool empty() const { return pages_.empty(); }
  [[nodiscard]] std::size_t page_versions() const { return page_versions_; }

 private:
  using Page = std::array<std::byte, kPageBytes>;
  struct Version {
    WriteId id;
    std::uint8_t mask = 0;        // the sectors that it has
    std::unique_ptr<Page> bytes;  // null: zeros
    [[nodiscard]] std::span<const std::byte> sector(std::uint32_t index) const;
  };
  using Versions = std::vector<Version>;

  void add(std::uint64_t page, std::uint8_t mask, std::unique_ptr<Page> bytes, WriteId id);
  static void fold_oldest(Versions& versions);
  void drop_empty(Versions& versions);

  std::map<std::uint64_t, Versions> pages_;  // by page number; oldest version first
  std::size_t page_versions_ = 0;
};

}  // namespace mariner::powerdisk

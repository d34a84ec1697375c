// The partition table of a PC's disk (MBR), with its chains of logical partitions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ifsck/view.h"
#include "proto/error.h"
#include "uvfs/parts/partition_table.h"

namespace mariner::uvfs {

// The four entries of a sector.
struct Mbr {
  static constexpr std::size_t kBytes = 512;  // whatever a sector has
  struct Entry {
    std::uint8_t active = 0;
    std::uint8_t type = 0;
    std::uint32_t first = 0;
    std::uint32_t sectors = 0;
    [[nodiscard]] bool is_used() const { return sectors != 0; }
    [[nodiscard]] bool is_extended() const { return type == 0x05 || type == 0x0f || type == 0x85; }
    [[nodiscard]] bool protects_gpt() const { return type == 0xee; }
  };
  std::array<Entry, 4> entries;

  // Nothing: the signature is not there.
  [[nodiscard]] static std::optional<Mbr> parse(std::span<const std::byte> bytes);
  // Whether it is a table at all: boot sectors of file systems have the signature, too.
  [[nodiscard]] bool is_table() const;
  // Nothing: there is none.
  [[nodiscard]] const Entry* protective() const;
};

// Of sectors with `sector_bytes`, with the logical partitions; what is wrong with their chains is
// noted. Errors: as the past says.
[[nodiscard]] Result<PartitionTable> read_mbr(ifsck::View& view, const Mbr& mbr,
                                              std::uint32_t sector_bytes);
// The table does not say how large sectors are: those (512 or 4096 bytes) with which more begins
// where it says that something does. Errors: as the past says.
[[nodiscard]] Result<std::uint32_t> guess_sector_bytes(ifsck::View& view, const Mbr& mbr);

}  // namespace mariner::uvfs

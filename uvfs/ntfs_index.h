// The names in a directory of NTFS, as its index ($I30) has them.
//
// libtsk lists them, too, but beside what was deleted, which it looks for in all of the $MFT: this
// reads the index alone, as a driver does. Pure: bytes in. What is no index ends it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "uvfs/object_number.h"

namespace mariner::uvfs {

struct NtfsName {
  std::string name;
  ObjectNumber reference = 0;
  bool directory = false;
  friend bool operator==(const NtfsName&, const NtfsName&) = default;
};

// Of $INDEX_ROOT: bytes of a block of $INDEX_ALLOCATION. Nothing: it is none that can be.
[[nodiscard]] std::optional<std::uint32_t> ntfs_index_block_bytes(std::span<const std::byte> root);
// The names in it, and in a block of $INDEX_ALLOCATION (which is changed: the ends of its sectors
// are put back). Without those that are another, short one of a name, and those of metadata files.
// False: it is damaged, and names may be missing.
bool add_names_of_index_root(std::span<const std::byte> root, std::vector<NtfsName>& to);
bool add_names_of_index_block(std::span<std::byte> block, std::vector<NtfsName>& to);

}  // namespace mariner::uvfs

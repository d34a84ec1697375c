// Group descriptors as libext2fs holds them: one behind the other.
#pragma once

#include <ext2fs/ext2fs.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::ifsck {

// Valid as long as `fs`.
[[nodiscard]] inline std::span<const std::byte> descriptors_of(ext2_filsys fs) {
  return {reinterpret_cast<const std::byte*>(fs->group_desc),
          std::size_t{fs->group_desc_count} * EXT2_DESC_SIZE(fs->super)};
}

// Where a group has what, as its descriptor says.
struct GroupPlaces {
  blk64_t block_bitmap = 0;
  blk64_t inode_bitmap = 0;
  blk64_t inode_table = 0;
  friend bool operator==(const GroupPlaces&, const GroupPlaces&) = default;
};

// `wide`: numbers of blocks have 64 bits. (libext2fs' ways to each of them take ten times as long.)
[[nodiscard]] inline GroupPlaces places_in(std::span<const std::byte> descriptors, dgrp_t group,
                                           std::size_t each_bytes, bool wide) {
  const std::byte* const at = descriptors.data() + group * each_bytes;
  const auto number = [&](std::size_t low, std::size_t high) {
    const auto below = load_le<std::uint32_t>(at + low);
    return wide ? blk64_t{load_le<std::uint32_t>(at + high)} << 32 | below : blk64_t{below};
  };
  using Descriptor = ext4_group_desc;
  return {number(offsetof(Descriptor, bg_block_bitmap), offsetof(Descriptor, bg_block_bitmap_hi)),
          number(offsetof(Descriptor, bg_inode_bitmap), offsetof(Descriptor, bg_inode_bitmap_hi)),
          number(offsetof(Descriptor, bg_inode_table), offsetof(Descriptor, bg_inode_table_hi))};
}

// The groups whose descriptors of `each_bytes` bytes are not the same, ascending: it hardly matters
// how many others there are.
template <typename Visit>
void for_each_other_descriptor(std::span<const std::byte> one, std::span<const std::byte> other,
                               std::size_t each_bytes, Visit visit) {
  constexpr std::size_t kAtOnce = 64;
  CHECK(one.size() == other.size());
  const auto same = [&](std::size_t from, std::size_t end) {
    return std::memcmp(one.data() + from, other.data() + from, end - from) == 0;
  };
  for (std::size_t from = 0; from < one.size(); from += kAtOnce * each_bytes) {
    const std::size_t end = std::min(from + kAtOnce * each_bytes, one.size());
    if (same(from, end)) continue;
    for (std::size_t at = from; at < end; at += each_bytes) {
      if (!same(at, at + each_bytes)) visit(static_cast<dgrp_t>(at / each_bytes));
    }
  }
}

}  // namespace mariner::ifsck

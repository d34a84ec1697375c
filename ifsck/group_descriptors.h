// Group descriptors as libext2fs holds them: one behind the other.
#pragma once

#include <ext2fs/ext2fs.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "proto/check.h"

namespace mariner::ifsck {

// Valid as long as `fs`.
[[nodiscard]] inline std::span<const std::byte> descriptors_of(ext2_filsys fs) {
  return {reinterpret_cast<const std::byte*>(fs->group_desc),
          std::size_t{fs->group_desc_count} * EXT2_DESC_SIZE(fs->super)};
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

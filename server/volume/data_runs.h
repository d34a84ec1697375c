// Which blocks of some memory are not zeros: what a copy has to write where there are zeros.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include "proto/error.h"
#include "proto/units.h"

namespace mariner::volume {

// Not empty.
[[nodiscard]] inline bool is_zero(std::span<const std::byte> bytes) {
  return bytes[0] == std::byte{0} &&
         std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

// Calls visit(offset, bytes) for each run of blocks that are not zeros, in order; `offset` is in
// `bytes`, whose last block may be short. The first error ends it.
template <typename Visit>
[[nodiscard]] Result<void> for_each_data_run(std::span<const std::byte> bytes, Visit visit) {
  const auto block_at = [&](std::size_t at) {
    return bytes.subspan(at, std::min<std::size_t>(kBlockBytes, bytes.size() - at));
  };
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t from = at;
    while (at < bytes.size() && !is_zero(block_at(at))) at += block_at(at).size();
    if (at > from) {
      if (Result<void> r = visit(from, bytes.subspan(from, at - from)); !r) return r;
    }
    while (at < bytes.size() && is_zero(block_at(at))) at += block_at(at).size();
  }
  return {};
}

}  // namespace mariner::volume

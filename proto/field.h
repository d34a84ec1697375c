// A number within bytes of somebody else's format.
#pragma once

#include <cstddef>
#include <span>

#include "proto/bytes.h"

namespace mariner {

// Little endian, at any alignment. The caller guarantees that the bytes exist.
template <typename T>
[[nodiscard]] inline T field(std::span<const std::byte> bytes, std::size_t at) {
  return load_le<T>(bytes.data() + at);
}

}  // namespace mariner

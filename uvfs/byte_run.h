// Where bytes of a file lie in the volume.
#pragma once

#include <cstdint>
#include <vector>

namespace mariner::uvfs {

// [logical, logical + bytes) of the file.
struct ByteRun {
  std::uint64_t logical = 0;
  std::uint64_t place = 0;  // byte of the volume
  std::uint64_t bytes = 0;
  friend bool operator==(const ByteRun&, const ByteRun&) = default;
};

// Ascending; what is in none of them is zeros.
using ByteRuns = std::vector<ByteRun>;

}  // namespace mariner::uvfs

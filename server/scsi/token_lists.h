// The parameter lists of the commands POPULATE TOKEN and WRITE USING TOKEN (SBC-4 5.12 and 5.59).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "server/scsi/cdb.h"
#include "server/scsi/rod_token.h"
#include "server/scsi/sense.h"

namespace mariner::scsi {

// The third-party copy page tells these. A range may have as many blocks as a transfer
// (MAXIMUM TRANSFER LENGTH).
inline constexpr std::size_t kTokenRangesMax = 256;
inline constexpr std::uint64_t kTokenBytesMax = 256 << 20;
inline constexpr std::uint64_t kTokenBytesOptimal = 64 << 20;

struct PopulateList {
  bool immediate = false;
  std::chrono::seconds inactivity{0};
  std::vector<Extent> extents;  // in the list's order, none empty, no block twice
};

struct WriteList {
  bool immediate = false;
  bool delete_token = false;
  std::uint64_t offset_blocks = 0;  // into what the token stands for
  RodTokenBytes token{};
  std::vector<Extent> extents;
};

// What is wrong with the list, or its contents: within the disk and the limits.
[[nodiscard]] std::variant<Sense, PopulateList> parse_populate_list(std::span<const std::byte> list,
                                                                    const Geometry& geometry);
[[nodiscard]] std::variant<Sense, WriteList> parse_write_list(std::span<const std::byte> list,
                                                              const Geometry& geometry);

}  // namespace mariner::scsi

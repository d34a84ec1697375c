#include "server/volume/data_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace mariner::volume {
namespace {

using Piece = std::pair<std::size_t, std::size_t>;  // offset, length

// Blocks that are zeros ('.'), have one byte that is not at their end ('x') or their beginning
// ('o'); then `tail` bytes that are zeros but for the last, if there are any.
std::vector<Piece> runs_of(const std::string& blocks, std::size_t tail = 0) {
  std::vector<std::byte> bytes(blocks.size() * kBlockBytes + tail);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i] == 'x') bytes[(i + 1) * kBlockBytes - 1] = std::byte{1};
    if (blocks[i] == 'o') bytes[i * kBlockBytes] = std::byte{0x80};
  }
  if (tail > 0) bytes.back() = std::byte{1};
  std::vector<Piece> out;
  EXPECT_TRUE(for_each_data_run(bytes, [&](std::size_t at, std::span<const std::byte> run) {
    EXPECT_EQ(run.data(), bytes.data() + at);
    out.emplace_back(at, run.size());
    return Result<void>{};
  }));
  return out;
}

TEST(DataRuns, AreTheBlocksThatAreNotZeros) {
  constexpr std::size_t kB = kBlockBytes;
  EXPECT_TRUE(runs_of("").empty());
  EXPECT_TRUE(runs_of("...").empty());
  EXPECT_EQ(runs_of("xox"), (std::vector<Piece>{{0, 3 * kB}}));
  EXPECT_EQ(runs_of(".x..oo."), (std::vector<Piece>{{kB, kB}, {4 * kB, 2 * kB}}));
  EXPECT_EQ(runs_of("x.", 512), (std::vector<Piece>{{0, kB}, {2 * kB, 512}}));
}

TEST(DataRuns, AnErrorEndsIt) {
  std::vector<std::byte> bytes(3 * kBlockBytes);
  bytes.front() = bytes.back() = std::byte{1};
  int visits = 0;
  const Result<void> result =
      for_each_data_run(bytes, [&](std::size_t, std::span<const std::byte>) -> Result<void> {
        ++visits;
        return Error{ErrorCode::kNoSpace, "full"};
      });
  EXPECT_EQ(result.error().code, ErrorCode::kNoSpace);
  EXPECT_EQ(visits, 1);
}

}  // namespace
}  // namespace mariner::volume

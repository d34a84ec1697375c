#include "tests/hammer/content.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace mariner::hammer {
namespace {

using CellBytes = std::array<std::byte, kCellBytes>;

TEST(Content, a_cell_is_recognised_only_as_itself) {
  const Write write{.id = 7, .first_cell = 10, .cells = 4};
  const Write other{.id = 8, .first_cell = 10, .cells = 4};
  CellBytes bytes;
  fill_cell(bytes, &write, 11);
  EXPECT_TRUE(cell_holds(bytes, &write, 11));
  EXPECT_FALSE(cell_holds(bytes, &write, 12)) << "misdirected";
  EXPECT_FALSE(cell_holds(bytes, &other, 11)) << "stale";
  EXPECT_FALSE(cell_holds(bytes, nullptr, 11));
  EXPECT_EQ(describe_cell(bytes), "write 7 of cell 11");
  bytes[300] ^= std::byte{1};
  EXPECT_FALSE(cell_holds(bytes, &write, 11)) << "flipped";
  EXPECT_EQ(describe_cell(bytes), "damaged write 7 of cell 11");
}

TEST(Content, every_other_write_has_little_noise) {
  for (const std::uint64_t id : {7, 8}) {
    const Write write{.id = id, .first_cell = 10, .cells = 4};
    CellBytes bytes;
    fill_cell(bytes, &write, 11);
    const auto zeros = std::count(bytes.begin() + 32, bytes.end(), std::byte{0});
    EXPECT_EQ(zeros >= static_cast<long>(kCellBytes - 32) / 8 * 7, id == 7) << id;
    EXPECT_TRUE(cell_holds(bytes, &write, 11));
    bytes[kCellBytes - 1] ^= std::byte{1};
    EXPECT_FALSE(cell_holds(bytes, &write, 11)) << "flipped";
  }
}

TEST(Content, zero_kinds_and_the_unwritten_are_zeros) {
  const Write unmap{.id = 7, .kind = Kind::kUnmap, .cells = 8};
  const Write zeroes{.id = 8, .kind = Kind::kZeroes, .cells = 8};
  const CellBytes zeros{};
  EXPECT_TRUE(cell_holds(zeros, &unmap, 3));
  EXPECT_TRUE(cell_holds(zeros, &zeroes, 3));
  EXPECT_TRUE(cell_holds(zeros, nullptr, 3));
  EXPECT_EQ(describe_cell(zeros), "zeros");
}

TEST(Content, write_same_is_one_cell_everywhere) {
  const Write same{.id = 9, .kind = Kind::kSame, .first_cell = 16, .cells = 8};
  CellBytes bytes;
  fill_cell(bytes, &same, 16);
  EXPECT_TRUE(cell_holds(bytes, &same, 20));
  EXPECT_EQ(describe_cell(bytes), "write 9 of cell any");
}

TEST(Content, a_payload_is_its_cells_in_order) {
  const Write write{.id = 7, .first_cell = 10, .cells = 3};
  std::vector<std::byte> payload(3 * kCellBytes);
  fill_payload(payload, write);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(
        cell_holds(std::span(payload).subspan(i * kCellBytes).first<kCellBytes>(), &write, 10 + i));
  }
}

}  // namespace
}  // namespace mariner::hammer

#include "proto/huge_pages.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace mariner {
namespace {

TEST(HugePages, AreAlignedAndDoNotOverlap) {
  std::vector<std::pair<std::byte*, std::size_t>> held;
  for (std::size_t bytes = 4096; bytes <= kHugePageBytes; bytes *= 2) {
    for (int i = 0; i < 5; ++i) {
      std::byte* const memory = allocate_huge(bytes);
      ASSERT_NE(memory, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % bytes, 0u);
      std::memset(memory, static_cast<int>(held.size()), bytes);
      held.emplace_back(memory, bytes);
    }
  }
  for (std::size_t i = 0; i < held.size(); ++i) {
    const auto [memory, bytes] = held[i];
    EXPECT_EQ(memory[0], std::byte(i));
    EXPECT_EQ(memory[bytes - 1], std::byte(i));
    free_huge(memory, bytes);
  }
}

TEST(HugePages, InARowLieInARow) {
  constexpr std::size_t kBytes = std::size_t{128} << 10;
  std::vector<std::byte*> held;
  for (std::size_t i = 0; i < 2 * kHugePageBytes / kBytes; ++i) {
    held.push_back(allocate_huge(kBytes));
  }
  std::size_t neighbours = 0;
  for (std::size_t i = 1; i < held.size(); ++i) {
    if (held[i] == held[i - 1] + kBytes) ++neighbours;
  }
  EXPECT_GE(neighbours, held.size() / 2);
  for (std::byte* memory : held) free_huge(memory, kBytes);
}

TEST(HugePages, GoBackToTheSystem) {
  const std::size_t before = huge_bytes();
  constexpr std::size_t kSlabs = 100;
  std::vector<std::byte*> held;
  for (std::size_t i = 0; i < 2 * kSlabs; ++i) held.push_back(allocate_huge(kHugePageBytes / 2));
  EXPECT_GE(huge_bytes(), kSlabs * kHugePageBytes);
  for (std::byte* memory : held) free_huge(memory, kHugePageBytes / 2);
  EXPECT_LE(huge_bytes(), before + 64 * kHugePageBytes) << "128 MiB are kept at first";
  keep_huge(0);
  EXPECT_LE(huge_bytes(), before + 8 * kHugePageBytes);
}

class HugePagesKept : public ::testing::Test {
 protected:
  static constexpr std::size_t kSlabs = 200;
  void SetUp() override { keep_huge(kSlabs * kHugePageBytes); }
  void TearDown() override { keep_huge(0); }
  // Takes and frees so many slabs' worth of pieces of this size.
  static void use(std::size_t slabs, std::size_t bytes) {
    std::vector<std::byte*> held;
    for (std::size_t i = 0; i < slabs * (kHugePageBytes / bytes); ++i) {
      held.push_back(allocate_huge(bytes));
    }
    for (std::byte* memory : held) free_huge(memory, bytes);
  }
};

TEST_F(HugePagesKept, AreUsedAgainForPiecesOfAnySize) {
  use(kSlabs, kHugePageBytes / 2);
  const std::size_t held = huge_bytes();
  EXPECT_GE(held, kSlabs * kHugePageBytes);
  use(kSlabs, std::size_t{256} << 10);
  EXPECT_EQ(huge_bytes(), held);
  use(2 * kSlabs, kHugePageBytes);
  EXPECT_LE(huge_bytes(), held) << "more are not kept";
}

TEST_F(HugePagesKept, GoWhenTheyAreNotNeeded) {
  use(kSlabs, kHugePageBytes);
  const std::size_t held = huge_bytes();
  for (int i = 0; i < 200; ++i) {
    use(kSlabs, kHugePageBytes);
    trim_huge();
  }
  EXPECT_EQ(huge_bytes(), held) << "as long as they are in use";
  trim_huge();
  EXPECT_GE(huge_bytes(), held / 10 * 9) << "slowly";
  for (int i = 0; i < 200; ++i) trim_huge();
  EXPECT_LE(huge_bytes(), 65 * kHugePageBytes);
  EXPECT_GE(huge_bytes(), 64 * kHugePageBytes);
}

TEST_F(HugePagesKept, NeverManyAtATime) {
  constexpr std::size_t kMany = 400;  // address space: none of it is touched
  keep_huge(kMany * kHugePageBytes);
  use(kMany, kHugePageBytes);
  trim_huge();
  const std::size_t held = huge_bytes();
  trim_huge();
  EXPECT_EQ(huge_bytes(), held - 16 * kHugePageBytes);
}

TEST(HugePages, ServeManyThreads) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      std::mt19937 random(t);
      std::vector<std::pair<std::byte*, std::size_t>> held;
      for (int i = 0; i < 2000; ++i) {
        if (held.size() > 20) {
          const auto at = random() % held.size();
          const auto [memory, bytes] = held[at];
          ASSERT_EQ(memory[0], std::byte(t));
          free_huge(memory, bytes);
          held[at] = held.back();
          held.pop_back();
        }
        const std::size_t bytes = std::size_t{4096} << (random() % 10);
        held.emplace_back(allocate_huge(bytes), bytes);
        held.back().first[0] = std::byte(t);
      }
      for (const auto& [memory, bytes] : held) free_huge(memory, bytes);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace mariner

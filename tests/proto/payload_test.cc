#include "proto/payload.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdint>
#include <optional>
#include <semaphore>
#include <thread>
#include <vector>

#include "proto/huge_pages.h"

namespace mariner {
namespace {

TEST(Payload, EmptyHoldsNothing) {
  Payload empty;
  EXPECT_FALSE(empty);
  EXPECT_EQ(empty.size(), 0u);
  EXPECT_EQ(empty.data(), nullptr);
  EXPECT_TRUE(empty.bytes().empty());
  const Payload copy = empty;
  EXPECT_FALSE(copy);
}

TEST(Payload, AlignedForADiskAndAsLongAsAskedFor) {
  for (const std::size_t size :
       {0u, 1u, 4095u, 4096u, 4097u, 65537u, 1048576u, 1048577u, 5000000u}) {
    const Payload payload = Payload::allocate(size);
    EXPECT_TRUE(payload);
    EXPECT_EQ(payload.size(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(payload.data()) % kBlockBytes, 0u);
  }
}

#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // they have allocators of their own
TEST(Payload, SizesOutOfUseMakeRoomInTheCache) {
  std::thread([] {
    {
      std::vector<Payload> large;
      for (int i = 0; i < 4096; ++i) large.push_back(Payload::allocate(32u << 10));
    }
    std::vector<Payload> small;
    const auto allocate_small = [&small] {
      for (int i = 0; i < 4096; ++i) small.push_back(Payload::allocate(kBlockBytes));
    };
    allocate_small();
    small.clear();
    const std::size_t in_use = mallinfo2().uordblks;
    allocate_small();
    EXPECT_LT(mallinfo2().uordblks, in_use + 4096 * kBlockBytes / 2) << "they were kept";
  }).join();
}
#endif

TEST(Payload, LargeOnesLetGoOnAnotherThreadAreUsedAgain) {
  std::vector<Payload> large;
  std::binary_semaphore filled{0};
  std::binary_semaphore gone{0};
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) {
      filled.acquire();
      large.clear();
      gone.release();
    }
  });
  std::size_t held = 0;
  for (int i = 0; i < 100; ++i) {
    for (int j = 0; j < 8; ++j) large.push_back(Payload::allocate(512u << 10));
    if (i == 0) held = huge_bytes();
    filled.release();
    gone.acquire();
  }
  other.join();
  EXPECT_EQ(huge_bytes(), held);
}

TEST(Payload, ZeroedAlsoWhenTheMemoryWasUsedBefore) {
  for (int i = 0; i < 3; ++i) {
    Payload used = Payload::allocate(8192);
    for (std::byte& b : used.bytes()) b = std::byte{0xee};
    used = Payload();
    const Payload zeroed = Payload::zeroed(8192);
    for (const std::byte b : zeroed.bytes()) ASSERT_EQ(b, std::byte{0});
  }
}

TEST(Payload, CopiesShareAndTheLastOneFrees) {
  const std::uint64_t before = Payload::total_bytes();
  Payload first = Payload::copy_of(as_bytes(std::span("payload", 8)));
  EXPECT_EQ(Payload::total_bytes(), before + kBlockBytes);
  Payload second = first;
  EXPECT_EQ(second.data(), first.data());
  Payload third = std::move(first);
  EXPECT_EQ(third.data(), second.data());
  EXPECT_EQ(Payload::total_bytes(), before + kBlockBytes);
  third = Payload();
  EXPECT_EQ(second.bytes()[0], std::byte{'p'});
  second = Payload();
  EXPECT_EQ(Payload::total_bytes(), before);
}

TEST(Payload, AssignedToItselfStays) {
  Payload payload = Payload::zeroed(1);
  Payload& same = payload;
  payload = same;
  EXPECT_TRUE(payload);
  EXPECT_EQ(payload.size(), 1u);
}

TEST(Payload, CountsWhatItTakesRoundedUp) {
  const std::uint64_t before = Payload::total_bytes();
  const Payload three = Payload::allocate(3 * kBlockBytes);
  EXPECT_EQ(Payload::total_bytes() - before, 4 * kBlockBytes) << "a size class up to 2 MiB";
  const Payload large = Payload::allocate((2u << 20) + 1);
  EXPECT_EQ(Payload::total_bytes() - before, 4 * kBlockBytes + (2u << 20) + kBlockBytes);
}

TEST(Payload, KnowsTheCrcsThatItWasGiven) {
  Payload payload = Payload::zeroed(3 * kBlockBytes + 100);
  EXPECT_EQ(payload.block_crc(1), std::nullopt);
  payload.set_block_crc(1, 0);
  const Payload shared = payload;
  EXPECT_EQ(shared.block_crc(0), std::nullopt);
  EXPECT_EQ(shared.block_crc(1), 0u) << "a CRC like any other";
  EXPECT_EQ(shared.block_crc(3), std::nullopt) << "no whole block";
  EXPECT_EQ(Payload::copy_of(payload.bytes()).block_crc(1), std::nullopt);
  EXPECT_EQ(Payload().block_crc(0), std::nullopt);
}

TEST(Payload, ForgetsTheCrcsOfBlocksThatAreFilledAnew) {
  Payload payload = Payload::zeroed(4 * kBlockBytes);
  payload.forget_block_crcs(0, 4);
  EXPECT_EQ(payload.block_crc(0), std::nullopt) << "there were none";
  for (std::uint32_t i = 0; i < 4; ++i) payload.set_block_crc(i, 10 + i);
  payload.forget_block_crcs(1, 3);
  EXPECT_EQ(payload.block_crc(0), 10u);
  EXPECT_EQ(payload.block_crc(1), std::nullopt);
  EXPECT_EQ(payload.block_crc(2), std::nullopt);
  EXPECT_EQ(payload.block_crc(3), 13u);
  payload.set_block_crc(1, 21);
  EXPECT_EQ(payload.block_crc(1), 21u);
  payload.forget_block_crcs(3, 9);
  EXPECT_EQ(payload.block_crc(3), std::nullopt);
  Payload().forget_block_crcs(0, 1);
}

TEST(PayloadDeath, ACrcOfAPartOfABlockIsABug) {
  Payload payload = Payload::zeroed(kBlockBytes + 100);
  EXPECT_DEATH(payload.set_block_crc(1, 7), "CHECK failed");
}

TEST(Payload, MayBeDroppedOnAnyThread) {
  const std::uint64_t before = Payload::total_bytes();
  for (int round = 0; round < 50; ++round) {
    const Payload payload = Payload::zeroed(4096);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([copy = payload] {
        for (int j = 0; j < 100; ++j) const Payload another = copy;
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(Payload::total_bytes(), before);
}

TEST(PayloadSlice, IsAWindowThatKeepsTheWhole) {
  PayloadSlice slice;
  {
    Payload payload = Payload::zeroed(100);
    payload.data()[50] = std::byte{7};
    slice = {payload, 50, 10};
  }
  EXPECT_EQ(slice.bytes().size(), 10u);
  EXPECT_EQ(slice.bytes()[0], std::byte{7});
}

TEST(PayloadSlice, KnowsTheCrcsOfBlocksThatAreWholeInBoth) {
  Payload payload = Payload::zeroed(4 * kBlockBytes);
  for (std::uint32_t i = 0; i < 4; ++i) payload.set_block_crc(i, 10 + i);
  const PayloadSlice aligned{payload, kBlockBytes, 2 * kBlockBytes};
  EXPECT_EQ(aligned.block_crc(0), 11u);
  EXPECT_EQ(aligned.block_crc(kBlockBytes), 12u);
  EXPECT_EQ(aligned.block_crc(2 * kBlockBytes), std::nullopt);
  EXPECT_EQ(aligned.block_crc(512), std::nullopt);
  const PayloadSlice across{payload, 512, 2 * kBlockBytes};
  EXPECT_EQ(across.block_crc(0), std::nullopt);
  EXPECT_EQ(across.block_crc(kBlockBytes - 512), 11u);
  EXPECT_EQ(across.block_crc(2 * kBlockBytes - 512), std::nullopt) << "ends within it";
}

TEST(PayloadSliceDeath, OutsideIsABug) {
  const PayloadSlice slice{Payload::zeroed(100), 95, 10};
  EXPECT_DEATH(static_cast<void>(slice.bytes()), "CHECK failed");
}

}  // namespace
}  // namespace mariner

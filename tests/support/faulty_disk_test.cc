#include "tests/support/faulty_disk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "proto/payload.h"
#include "tests/support/manual_executor.h"

namespace mariner::test {
namespace {

using logging::ConstBytes;
using logging::Durability;
using Remains = FaultyDisk::Remains;

constexpr std::uint64_t kSize = 1u << 20;

Payload filled(char with, std::size_t blocks = 1) {
  Payload payload = Payload::allocate(blocks * kBlockBytes);
  std::ranges::fill(payload.bytes(), static_cast<std::byte>(with));
  return payload;
}

class FaultyDiskTest : public ::testing::Test {
 protected:
  Result<void> write(std::uint64_t offset, char with, Durability durability,
                     std::size_t blocks = 1) {
    const Payload payload = filled(with, blocks);
    const ConstBytes part = payload.bytes();
    return disk_.write(offset, {&part, 1}, durability);
  }
  void async_write(std::uint64_t offset, char with, std::size_t blocks = 1) {
    Payload payload = filled(with, blocks);
    const ConstBytes part = payload.bytes();
    disk_.async_write(offset, {part}, Durability::kDurable,
                      [this, payload](const Result<void>& result) {
                        results_ += result.has_value() ? 'y' : 'n';
                      });
  }
  void async_flush() {
    disk_.async_flush(
        [this](const Result<void>& result) { results_ += result.has_value() ? 'y' : 'n'; });
  }
  // One character for each sector of the block at `offset`; '#' for a sector of several values.
  std::string sectors(std::uint64_t offset, std::size_t blocks = 1) const {
    std::string text;
    const std::vector<std::byte> bytes = disk_.bytes({offset, blocks * kBlockBytes});
    for (std::size_t at = 0; at < bytes.size(); at += FaultyDisk::kSectorBytes) {
      const auto sector = std::span(bytes).subspan(at, FaultyDisk::kSectorBytes);
      const bool same = std::ranges::all_of(sector, [&](std::byte b) { return b == sector[0]; });
      const char value = sector[0] == std::byte{0} ? '.' : static_cast<char>(sector[0]);
      text += same ? value : '#';
    }
    return text;
  }
  bool readable(std::uint64_t offset) {
    Payload to = Payload::allocate(kBlockBytes);
    return disk_.read(offset, to.bytes()).has_value();
  }

  ManualExecutor executor_;
  FaultyDisk disk_{executor_, {.size_bytes = kSize, .seed = 7}};
  std::string results_;
};

TEST_F(FaultyDiskTest, KeepsWhatIsWritten) {
  ASSERT_TRUE(write(4096, 'a', Durability::kVolatile).has_value());
  EXPECT_EQ(sectors(0, 3), "........aaaaaaaa........");
}

TEST_F(FaultyDiskTest, CompletesInALaterTurn) {
  async_write(0, 'a');
  EXPECT_EQ(results_, "");
  EXPECT_EQ(sectors(0), "........");
  executor_.run_until_idle();
  EXPECT_EQ(results_, "y");
  EXPECT_EQ(sectors(0), "aaaaaaaa");
}

TEST_F(FaultyDiskTest, APowerCutKeepsWhatIsDurable) {
  ASSERT_TRUE(write(0, 'a', Durability::kDurable).has_value());
  ASSERT_TRUE(write(4096, 'b', Durability::kVolatile).has_value());
  ASSERT_TRUE(disk_.flush().has_value());
  disk_.cut_power();
  EXPECT_FALSE(readable(0));
  disk_.restore_power();
  EXPECT_EQ(sectors(0, 2), "aaaaaaaabbbbbbbb");
}

TEST_F(FaultyDiskTest, AnAsynchronousFlushMakesDurableWhatWasWrittenBeforeIt) {
  ASSERT_TRUE(write(0, 'a', Durability::kVolatile).has_value());
  async_flush();
  EXPECT_EQ(results_, "");
  executor_.run_until_idle();
  EXPECT_EQ(results_, "y");
  disk_.cut_power();
  EXPECT_EQ(sectors(0), "aaaaaaaa");
}

// What each sector may hold after a power cut that follows `script`, over many seeds.
template <typename Script>
std::set<char> survivors(Script script) {
  std::set<char> seen;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    ManualExecutor executor;
    FaultyDisk disk(executor, {.size_bytes = kSize, .seed = seed});
    script(disk, executor);
    disk.cut_power();
    executor.run_until_idle();
    for (const std::byte b : disk.bytes({0, kBlockBytes})) seen.insert(static_cast<char>(b));
  }
  return seen;
}

void write_now(FaultyDisk& disk, char with, Durability durability) {
  const Payload payload = filled(with);
  const ConstBytes part = payload.bytes();
  ASSERT_TRUE(disk.write(0, {&part, 1}, durability).has_value());
}

TEST_F(FaultyDiskTest, WhatIsWrittenBehindAnAsynchronousFlushIsNotDurable) {
  const std::set<char> seen = survivors([](FaultyDisk& disk, ManualExecutor& executor) {
    write_now(disk, 'a', Durability::kVolatile);
    disk.async_flush([](const Result<void>&) {});
    write_now(disk, 'b', Durability::kVolatile);
    executor.run_until_idle();
  });
  EXPECT_EQ(seen, (std::set<char>{'a', 'b'}));
}

TEST_F(FaultyDiskTest, AnAsynchronousFlushDuringAPowerCutPromisesNothing) {
  bool failed = false;
  const std::set<char> seen = survivors([&](FaultyDisk& disk, ManualExecutor&) {
    write_now(disk, 'a', Durability::kVolatile);
    disk.async_flush([&](const Result<void>& r) { failed = !r; });
  });
  EXPECT_TRUE(failed);
  EXPECT_EQ(seen, (std::set<char>{'\0', 'a'}));
}

TEST_F(FaultyDiskTest, AnAsynchronousFlushTakesNothingBackThatIsDurableSince) {
  const std::set<char> seen = survivors([](FaultyDisk& disk, ManualExecutor& executor) {
    write_now(disk, 'a', Durability::kVolatile);
    disk.async_flush([](const Result<void>&) {});
    write_now(disk, 'b', Durability::kDurable);
    write_now(disk, 'c', Durability::kVolatile);
    executor.run_until_idle();
  });
  EXPECT_EQ(seen, (std::set<char>{'b', 'c'}));
  const std::set<char> flushed = survivors([](FaultyDisk& disk, ManualExecutor& executor) {
    write_now(disk, 'a', Durability::kVolatile);
    disk.async_flush([](const Result<void>&) {});
    write_now(disk, 'b', Durability::kVolatile);
    CHECK(disk.flush());
    write_now(disk, 'c', Durability::kVolatile);
    executor.run_until_idle();
  });
  EXPECT_EQ(flushed, (std::set<char>{'b', 'c'}));
}

TEST_F(FaultyDiskTest, AnEarlierFlushThatEndsLaterTakesNothingBack) {
  std::size_t overtaken = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    ManualExecutor executor;
    FaultyDisk disk(executor,
                    {.size_bytes = kSize, .seed = seed, .delay_max = std::chrono::milliseconds(9)});
    bool first = false;
    bool second = false;
    write_now(disk, 'a', Durability::kVolatile);
    disk.async_flush([&](const Result<void>&) { first = true; });
    write_now(disk, 'b', Durability::kVolatile);
    disk.async_flush([&](const Result<void>&) { second = true; });
    while (!second) executor.advance(std::chrono::microseconds(1));
    overtaken += first ? 0 : 1;
    write_now(disk, 'c', Durability::kVolatile);
    executor.run_until_idle();
    disk.cut_power();
    for (const std::byte b : disk.bytes({0, kBlockBytes})) ASSERT_NE(b, std::byte{'a'}) << seed;
  }
  EXPECT_GT(overtaken, 10u);
}

TEST_F(FaultyDiskTest, APowerCutLeavesOldOrNewSectorsOfWhatIsNot) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    FaultyDisk disk(executor_, {.size_bytes = kSize, .seed = seed});
    const Payload old = filled('o');
    const Payload fresh = filled('n');
    ConstBytes part = old.bytes();
    ASSERT_TRUE(disk.write(0, {&part, 1}, Durability::kDurable).has_value());
    part = fresh.bytes();
    ASSERT_TRUE(disk.write(0, {&part, 1}, Durability::kVolatile).has_value());
    disk.cut_power();
    const auto bytes = disk.bytes({0, kBlockBytes});
    std::string text;
    for (std::size_t at = 0; at < bytes.size(); at += 512) text += static_cast<char>(bytes[at]);
    EXPECT_EQ(text.find_first_not_of("on"), std::string::npos);
    seen.insert(text);
  }
  EXPECT_TRUE(seen.contains("oooooooo"));
  EXPECT_TRUE(seen.contains("nnnnnnnn"));
  EXPECT_GT(seen.size(), 10u);
}

TEST_F(FaultyDiskTest, AWriteInFlightAtAPowerCutFailsAndMayBeTorn) {
  ASSERT_TRUE(write(0, 'o', Durability::kDurable).has_value());
  async_write(0, 'n');
  disk_.cut_power();
  executor_.run_until_idle();
  EXPECT_EQ(results_, "n");
  EXPECT_EQ(sectors(0).find_first_not_of("on"), std::string::npos);
}

TEST_F(FaultyDiskTest, TheSameSeedTearsTheSame) {
  const auto torn = [this] {
    FaultyDisk disk(executor_, {.size_bytes = kSize, .seed = 42});
    const Payload payload = filled('x', 16);
    const ConstBytes part = payload.bytes();
    EXPECT_TRUE(disk.write(0, {&part, 1}, Durability::kVolatile).has_value());
    disk.cut_power();
    return disk.bytes({0, 16 * kBlockBytes});
  };
  EXPECT_EQ(torn(), torn());
}

TEST_F(FaultyDiskTest, FailsWritesAndSaysWhatRemains) {
  disk_.fail_writes(1, Remains::kNothing);
  EXPECT_FALSE(write(0, 'a', Durability::kDurable).has_value());
  EXPECT_EQ(sectors(0), "........");
  disk_.fail_writes(1, Remains::kEverything);
  EXPECT_FALSE(write(0, 'b', Durability::kDurable).has_value());
  EXPECT_EQ(sectors(0), "bbbbbbbb");
  EXPECT_TRUE(write(0, 'c', Durability::kDurable).has_value());
}

TEST_F(FaultyDiskTest, FailsReadsOfARange) {
  disk_.fail_reads({4096, 512});
  EXPECT_TRUE(readable(0));
  EXPECT_FALSE(readable(4096));
  disk_.fail_reads({});
  EXPECT_TRUE(readable(4096));
}

TEST_F(FaultyDiskTest, MisdirectsDropsAndFlips) {
  disk_.misdirect_next_write(8192);
  EXPECT_TRUE(write(0, 'a', Durability::kDurable).has_value());
  EXPECT_EQ(sectors(0, 3), "................aaaaaaaa");
  disk_.drop_next_write();
  EXPECT_TRUE(write(0, 'b', Durability::kDurable).has_value());
  EXPECT_EQ(sectors(0), "........");
  disk_.flip_bit(8192 + 513, 1);
  EXPECT_EQ(sectors(8192), "a#aaaaaa");
}

TEST_F(FaultyDiskTest, LosesPowerInTheMiddleOfAWrite) {
  disk_.cut_power_after(1);
  EXPECT_TRUE(write(0, 'a', Durability::kDurable).has_value());
  EXPECT_TRUE(disk_.powered());
  EXPECT_FALSE(write(4096, 'b', Durability::kDurable).has_value());
  EXPECT_FALSE(disk_.powered());
  disk_.restore_power();
  EXPECT_EQ(sectors(0), "aaaaaaaa");
  EXPECT_TRUE(write(0, 'c', Durability::kDurable).has_value());
}

TEST_F(FaultyDiskTest, TellsWhereItLied) {
  disk_.drop_next_write();
  EXPECT_TRUE(write(0, 'a', Durability::kDurable).has_value());
  disk_.misdirect_next_write(kSize - 4096);
  EXPECT_TRUE(write(4096, 'b', Durability::kDurable, 2).has_value());
  // A write that would end behind the disk ends with it.
  const std::vector<ByteRange> lies = {{0, 4096}, {4096, 8192}, {kSize - 8192, 8192}};
  EXPECT_EQ(disk_.lies(), lies);
  EXPECT_EQ(sectors(kSize - 8192, 2), "bbbbbbbbbbbbbbbb");
}

TEST_F(FaultyDiskTest, TakesSectorsIfItIsMadeOfThem) {
  FaultyDisk disk(executor_, {.size_bytes = kSize, .alignment = 512});
  const Payload payload = filled('a');
  const ConstBytes part = payload.bytes().first(512);
  EXPECT_TRUE(disk.write(512, {&part, 1}, Durability::kDurable).has_value());
  EXPECT_EQ(disk.bytes({511, 2})[0], std::byte{0});
  EXPECT_EQ(disk.bytes({511, 2})[1], std::byte{'a'});
}

TEST_F(FaultyDiskTest, RunsFullForFreshPagesOnly) {
  disk_.set_capacity(8192);
  EXPECT_TRUE(write(0, 'a', Durability::kDurable, 2).has_value());
  const Result<void> full = write(8192, 'b', Durability::kDurable);
  ASSERT_FALSE(full.has_value());
  EXPECT_EQ(full.error().code, ErrorCode::kNoSpace);
  EXPECT_TRUE(write(0, 'c', Durability::kDurable).has_value());
}

TEST_F(FaultyDiskTest, HangsUntilReleased) {
  disk_.hold();
  async_write(0, 'a');
  executor_.run_until_idle();
  EXPECT_EQ(results_, "");
  EXPECT_EQ(disk_.in_flight(), 1u);
  disk_.release();
  EXPECT_EQ(results_, "y");
}

TEST_F(FaultyDiskTest, DelaysWithinItsBound) {
  FaultyDisk disk(executor_,
                  {.size_bytes = kSize, .seed = 3, .delay_max = std::chrono::milliseconds(5)});
  const Payload payload = filled('a');
  int done = 0;
  for (int i = 0; i < 8; ++i) {
    disk.async_write(0, {payload.bytes()}, Durability::kDurable,
                     [&](const Result<void>&) { ++done; });
  }
  executor_.run_ready();
  EXPECT_LT(done, 8);
  executor_.advance(std::chrono::milliseconds(5));
  EXPECT_EQ(done, 8);
}

TEST_F(FaultyDiskTest, DiscardedBlocksReadAsZeros) {
  ASSERT_TRUE(write(0, 'a', Durability::kDurable, 2).has_value());
  ASSERT_TRUE(disk_.discard({0, 4096}).has_value());
  EXPECT_EQ(sectors(0, 2), "........aaaaaaaa");
}

}  // namespace
}  // namespace mariner::test

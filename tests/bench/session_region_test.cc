#include "tests/bench/session_region.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace mariner::bench {
namespace {

using std::chrono::seconds;

class SessionRegionTest : public testing::Test {
 protected:
  using Bytes = std::array<std::byte, kBlockBytes>;
  using Command = SessionRegion::Command;
  using Kind = SessionRegion::Finding::Kind;

  // A store that is never wrong.
  void write(const Command& command) { region_.fill(store_[command.block], command); }
  void fill_all() {
    while (const auto command = region_.next_to_fill()) {
      write(*command);
      region_.written(*command);
    }
  }
  void succeed(const Command& command) {
    if (!command.write) {
      EXPECT_EQ(read(command).kind, Kind::kRight);
      return;
    }
    write(command);
    region_.written(command);
  }
  // The next command at random that is of this kind; others succeed.
  Command next(bool write_wanted) {
    for (;;) {
      const Command command = region_.next(now_).value();
      if (command.write == write_wanted) return command;
      succeed(command);
    }
  }
  SessionRegion::Finding read(const Command& command) {
    return region_.read(command, store_[command.block]);
  }
  // The next command to this block if it is of this kind. Those to other blocks succeed; those of
  // the other kind to this one are lost.
  Command next_to(std::uint64_t block, bool write_wanted) {
    for (;;) {
      const Command command = region_.next(now_).value();
      if (command.block != block) {
        succeed(command);
      } else if (command.write == write_wanted) {
        return command;
      } else {
        region_.lost(command, {.until = now_, .why = "cut"});
      }
    }
  }
  // Reads the whole region; what was not right.
  std::vector<SessionRegion::Finding> verify() {
    std::vector<SessionRegion::Finding> wrong;
    while (const auto command = region_.next_to_verify(now_)) {
      if (auto found = read(*command); found.kind != Kind::kRight) wrong.push_back(found);
    }
    return wrong;
  }

  const StampedContents contents_{1};
  SessionRegion region_{{.session = 5, .blocks = 128, .reads = 50, .seed = 1}, contents_};
  std::map<std::uint64_t, Bytes> store_;
  SessionRegion::Time now_{seconds(1000)};
};

TEST_F(SessionRegionTest, FillingWritesEachBlockOnce) {
  std::set<std::uint64_t> written;
  while (const auto command = region_.next_to_fill()) {
    EXPECT_TRUE(command->write);
    EXPECT_TRUE(written.insert(command->block).second);
    region_.written(*command);
  }
  EXPECT_EQ(written.size(), 128u);
}

TEST_F(SessionRegionTest, AStoreThatIsRightIsFoundRight) {
  fill_all();
  for (int i = 0; i < 2000; ++i) {
    const Command command = next(true);
    write(command);
    region_.written(command);
  }
  EXPECT_TRUE(verify().empty());
  EXPECT_TRUE(region_.all_verified());
}

TEST_F(SessionRegionTest, ABlockHasOneCommandAtATime) {
  fill_all();
  std::set<std::uint64_t> busy;
  while (const auto command = region_.next(now_)) {
    EXPECT_TRUE(busy.insert(command->block).second);
  }
  EXPECT_GT(busy.size(), 64u);
}

TEST_F(SessionRegionTest, AnAcknowledgedWriteThatIsNotThereIsAMismatch) {
  fill_all();
  const Command lost = next(true);
  region_.written(lost);  // the store did nothing
  const auto wrong = verify();
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_EQ(wrong[0].kind, Kind::kWrong);
  const std::string block = std::to_string(lost.block);
  EXPECT_EQ(wrong[0].text, "session 5, block " + block + ": expected generation " +
                               std::to_string(lost.generation) + ", found at byte 0 generation " +
                               std::to_string(lost.generation - 1) + " of block " + block +
                               " of session 5");
}

TEST_F(SessionRegionTest, ACutWriteMayBeThereOrNot) {
  fill_all();
  const Command there = next(true);
  const Command not_there = next(true);
  write(there);
  region_.lost(there, {.until = now_});
  region_.lost(not_there, {.until = now_});
  EXPECT_EQ(region_.uncertain(), 2u);
  EXPECT_TRUE(verify().empty());
  EXPECT_EQ(region_.uncertain(), 0u);
}

TEST_F(SessionRegionTest, ACutBlockIsLeftAloneForAWhileAndThenRead) {
  fill_all();
  const Command cut = next(true);
  region_.lost(cut, {.until = now_ + seconds(2)});
  for (int i = 0; i < 2000; ++i) {
    const Command command = region_.next(now_).value();
    ASSERT_NE(command.block, cut.block);
    region_.lost(command, {.until = now_});
  }
  EXPECT_TRUE(verify().empty() && !region_.all_verified());
  now_ += seconds(2);
  EXPECT_TRUE(verify().empty() && region_.all_verified());
}

TEST_F(SessionRegionTest, ACutWriteThatComesThoughAReadDidNotShowItIsLateOnce) {
  fill_all();
  const Command cut = next(true);
  region_.lost(cut, {.until = now_, .why = "cut"});
  // Not there: an older generation is found, and stays.
  EXPECT_EQ(read(next_to(cut.block, false)).kind, Kind::kRight);
  write(cut);
  const auto found = verify();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, Kind::kLate);
  EXPECT_EQ(found[0].text, "session 5, block " + std::to_string(cut.block) + ": generation " +
                               std::to_string(cut.generation) + " (cut) where " +
                               std::to_string(cut.generation - 1) + " was read before");
}

TEST_F(SessionRegionTest, ACutWriteThatComesBehindALaterOneIsWrong) {
  fill_all();
  const Command cut = next(true);
  region_.lost(cut, {.until = now_});
  succeed(next_to(cut.block, true));  // as a host does that has no answer
  EXPECT_EQ(region_.uncertain(), 0u);
  write(cut);
  const auto found = verify();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, Kind::kWrong);
}

TEST_F(SessionRegionTest, OfSeveralCutWritesAnyMayBeThere) {
  fill_all();
  const Command first = next(true);
  region_.lost(first, {.until = now_});
  region_.lost(next_to(first.block, true), {.until = now_});
  EXPECT_EQ(region_.uncertain(), 1u);
  write(first);
  EXPECT_TRUE(verify().empty());
}

TEST_F(SessionRegionTest, ACutWriteMayNotBringAThirdValue) {
  fill_all();
  const Command cut = next(true);
  region_.lost(cut, {.until = now_});
  region_.fill(store_[cut.block],
               {.block = cut.block, .write = true, .generation = cut.generation + 1});
  const auto found = verify();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, Kind::kWrong);
}

}  // namespace
}  // namespace mariner::bench

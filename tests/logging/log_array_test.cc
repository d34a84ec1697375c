#include "logging/log_array.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/logging/array_rig.h"

namespace mariner::logging {
namespace {

using namespace std::chrono_literals;
using test::ArrayRig;
using test::record_of;

std::string code_of(const std::optional<Result<void>>& result) {
  if (!result) return "none";
  return *result ? "ok" : std::string(error_code_name(result->error().code));
}

class LogArrayTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(rig_.open()); }
  LogArray& array() { return *rig_.array; }
  // Drains a disk and turns until that is done.
  std::string drain(std::uint8_t number) {
    std::optional<Result<void>> drained;
    array().drain(number, [&](Result<void> result) { drained = std::move(result); });
    rig_.executor.run_ready();
    return code_of(drained);
  }
  std::string release(std::uint8_t number) {
    std::optional<Result<void>> released;
    LogArray::Member& member = rig_.member(number);
    member.recycler->release(member.log_disk->current_allocation(),
                             [&](Result<void> result) { released = std::move(result); });
    EXPECT_FALSE(array().is_empty(number)) << "the list is not durable yet";
    rig_.executor.run_ready();
    return code_of(released);
  }
  ArrayRig rig_;
};

TEST_F(LogArrayTest, FindsItsDisks) {
  EXPECT_EQ(array().members().size(), 2u);
  EXPECT_EQ(array().find(1)->superblock.disk, 1);
  EXPECT_EQ(array().find(2), nullptr);
  EXPECT_EQ(array().disks().find(1)->disk.get(), rig_.disks[1].get());
  EXPECT_TRUE(array().idle());
}

TEST_F(LogArrayTest, ADrainedDiskIsReadableUntilItIsRemoved) {
  rig_.append_now(record_of(1, 1));
  ASSERT_EQ(rig_.outcomes_text(), "1:ok@0");
  EXPECT_FALSE(array().is_empty(0));
  ASSERT_EQ(drain(0), "ok");
  EXPECT_TRUE(array().find(0)->log_disk->finished());
  EXPECT_FALSE(array().is_empty(0)) << "it holds a record";
  rig_.append_now(record_of(1, 2));
  EXPECT_EQ(rig_.outcomes_text(), "1:ok@0 2:ok@1");
  EXPECT_TRUE(rig_.readable(record_of(1, 1), *rig_.outcomes[0].result));
  ASSERT_EQ(release(0), "ok");
  EXPECT_TRUE(array().is_empty(0));
  array().remove(0);
  EXPECT_EQ(array().find(0), nullptr);
  EXPECT_EQ(array().disks().find(0).error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(rig_.readable(record_of(1, 1), *rig_.outcomes[0].result));
  EXPECT_TRUE(rig_.readable(record_of(1, 2), *rig_.outcomes[1].result));
}

TEST_F(LogArrayTest, ADiskThatWasNeverWrittenToIsEmptyWhenItIsDrained) {
  EXPECT_FALSE(array().is_empty(1)) << "it may be written to";
  ASSERT_EQ(drain(1), "ok");
  EXPECT_TRUE(array().is_empty(1));
  array().remove(1);
  EXPECT_EQ(array().members().size(), 1u);
}

TEST_F(LogArrayTest, TheLastDiskIsNotDrained) {
  ASSERT_EQ(drain(0), "ok");
  EXPECT_EQ(drain(1), "busy");
  EXPECT_FALSE(array().find(1)->log_disk->finished());
  EXPECT_EQ(drain(7), "not-found");
  rig_.append_now(record_of(1, 1));
  EXPECT_EQ(rig_.outcomes_text(), "1:ok@1");
}

TEST_F(LogArrayTest, ANumberCanBeTakenAgain) {
  ASSERT_EQ(drain(0), "ok");
  array().remove(0);
  ASSERT_TRUE(format_log(*rig_.disks[0], test::log_id(), 0, test::kTrackBytes, 2).has_value());
  const Superblock superblock = *read_superblock(*rig_.disks[0]);
  array().add(LogDisks::not_owned(*rig_.disks[0]), superblock, {{}, TrackList(superblock)});
  rig_.disks[1]->hold();
  rig_.append_now(record_of(1, 1));
  rig_.append_now(record_of(1, 2));
  rig_.disks[1]->release();
  EXPECT_EQ(rig_.outcomes.size(), 2u);
  EXPECT_EQ(rig_.reopened(), "|1 2");
}

TEST_F(LogArrayTest, InitialisesTheTracksOfAllDisksThatAreWrittenTo) {
  array().start();
  EXPECT_FALSE(array().idle());
  rig_.executor.advance(1s);
  for (const std::uint8_t number : {std::uint8_t{0}, std::uint8_t{1}}) {
    EXPECT_EQ(array().find(number)->superblock.initialised_tracks, 6u);
    EXPECT_EQ(read_superblock(*rig_.disks[number])->initialised_tracks, 6u);
  }
  EXPECT_TRUE(array().idle());
}

TEST_F(LogArrayTest, ADrainedDisksTracksAreNotInitialised) {
  ASSERT_EQ(drain(1), "ok");
  array().start();
  rig_.executor.advance(1s);
  EXPECT_EQ(array().find(0)->superblock.initialised_tracks, 6u);
  EXPECT_EQ(array().find(1)->superblock.initialised_tracks, 0u);
}

TEST_F(LogArrayTest, DrainingEndsTheInitialisation) {
  array().start();
  rig_.executor.advance(1ms);
  ASSERT_EQ(drain(1), "ok");
  const std::size_t writes = rig_.disks[1]->writes().size();
  rig_.executor.advance(1s);
  EXPECT_LE(rig_.disks[1]->writes().size(), writes + 1) << "the one in flight";
  EXPECT_TRUE(array().is_empty(1));
}

// The first track of disk 0 is being initialised, and the writer goes elsewhere meanwhile.
TEST_F(LogArrayTest, ATrackThatIsBeingInitialisedIsNotWrittenTo) {
  array().start();
  rig_.disks[0]->hold();
  rig_.append_now(record_of(1, 1));
  rig_.executor.advance(1ms);
  EXPECT_EQ(rig_.outcomes_text(), "1:ok@1");
  rig_.disks[0]->release();
  rig_.executor.run_until_idle();
  EXPECT_EQ(rig_.reopened(), "|1");
}

using LogArrayDeathTest = LogArrayTest;

TEST_F(LogArrayDeathTest, ADiskThatHoldsRecordsIsNotRemoved) {
  rig_.append_now(record_of(1, 1));
  ASSERT_EQ(drain(0), "ok");
  EXPECT_DEATH(array().remove(0), "");
  EXPECT_DEATH(array().remove(1), "");
}

TEST_F(LogArrayTest, AnArrayThatIsGoneHearsNothingOfARemoval) {
  bool told = false;
  array().drain(1, [&](const Result<void>&) { told = true; });
  ASSERT_TRUE(array().idle());
  rig_.array.reset();
  rig_.executor.run_until_idle();
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace mariner::logging

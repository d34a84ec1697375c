// Storage nodes that are away, or behind what the log or the other one has.
#include <chrono>
#include <string>
#include <vector>

#include "tests/replication/coordinator_fixture.h"

namespace mariner::replication {
namespace {

using namespace std::chrono_literals;

// Writes #19 and what follows are settled, and in this node's image.
class AbsentStorageTest : public CoordinatorRoleTest {
 protected:
  void SetUp() override {
    serve();
    open_storage(kOwn, 18);
    open_storage(kOther, 18);
  }
  void write_one(std::uint64_t sequence) {
    submit(sequence);
    hear(Logged{kVolume, kEpoch, {sequence}});
    hear(kOwn, StorageProgress{kVolume, kEpoch, {18}, {sequence}, 64 * kBlockBytes});
  }
  void leave() {
    Actions out;
    role_.storage_disconnected(kOther, kNow, out);
  }
  Actions comes_back(std::uint64_t durable) {
    storage_connected(kOther);
    return hear(kOther, StorageOpened{kVolume, kEpoch, {durable}, {durable}});
  }
  [[nodiscard]] std::uint64_t frontier() const { return role_.writes().frontier().value; }
};

TEST_F(AbsentStorageTest, TheFrontierDoesNotWaitForItForEver) {
  leave();
  write_one(19);
  tick(10s);
  tick(10s + 59min);
  EXPECT_EQ(frontier(), 18u);
  const Actions actions = tick(10s + 60min);
  EXPECT_EQ(frontier(), 19u);
  EXPECT_EQ(sent<FrontierMessage>(actions)->frontier, SequenceNumber{19});
  write_one(20);
  EXPECT_EQ(frontier(), 20u);
}

TEST_F(AbsentStorageTest, WhoIsBackInTimeCountsAndGoesOn) {
  leave();
  write_one(19);
  tick(10s);
  tick(10s + 59min);
  EXPECT_FALSE(sent<Resume>(comes_back(18))->start_over);
  tick(10s + 60min);
  EXPECT_EQ(frontier(), 18u);
  leave();
  tick(200min);
  EXPECT_EQ(frontier(), 18u) << "it is away anew";
}

TEST_F(AbsentStorageTest, WhoComesBackTooLateStartsOverAndCountsThen) {
  leave();
  write_one(19);
  tick(10s);
  tick(2h);
  const auto resume = sent<Resume>(comes_back(18));
  ASSERT_TRUE(resume.has_value());
  EXPECT_TRUE(resume->start_over);
  for (const auto& action : submit(20)) {
    const auto* told = std::get_if<CoordinatorRole::ToStore>(&action);
    EXPECT_TRUE(told == nullptr || told->node == kOwn) << "nothing else comes to it";
  }
  hear(Logged{kVolume, kEpoch, {20}});
  hear(kOther, Refused{kVolume, kEpoch, {ErrorCode::kUnavailable, "it is made anew"}});
  hear(kOwn, StorageProgress{kVolume, kEpoch, {18}, {20}, 64 * kBlockBytes});
  EXPECT_EQ(frontier(), 20u);
  const auto again = sent<Resume>(comes_back(0));
  ASSERT_TRUE(again.has_value());
  EXPECT_FALSE(again->start_over);
  EXPECT_EQ(role_.durable_at(kOther), SequenceNumber{0});
  write_one(21);
  EXPECT_EQ(frontier(), 20u) << "it counts";
  hear(kOther, StorageProgress{kVolume, kEpoch, {20}, {21}, 64 * kBlockBytes});
  EXPECT_EQ(frontier(), 21u);
}

// It has written since, of a history that the log had given up by then.
TEST_F(AbsentStorageTest, WhatItHadBeforeItWentCounts) {
  leave();
  write_one(19);
  tick(10s);
  tick(2h);
  EXPECT_TRUE(sent<Resume>(comes_back(19))->start_over);
}

TEST_F(AbsentStorageTest, WhoMissedNothingGoesOnHoweverLongItWasAway) {
  leave();
  tick(10s);
  tick(2h);
  EXPECT_FALSE(sent<Resume>(comes_back(18))->start_over);
}

TEST_F(AbsentStorageTest, TheOneThatReadsAreServedFromIsNeverAbsent) {
  Actions out;
  role_.storage_disconnected(kOwn, kNow, out);
  submit(19);
  hear(Logged{kVolume, kEpoch, {19}});
  hear(kOther, StorageProgress{kVolume, kEpoch, {18}, {19}, 64 * kBlockBytes});
  tick(10s);
  tick(2h);
  EXPECT_EQ(frontier(), 18u);
}

// As the log says that another coordinator's was.
TEST_F(CoordinatorRoleTest, AnImageBehindTheFrontierOfBeforeStartsOver) {
  serve();
  open_storage(kOwn);
  storage_connected(kOther);
  const StorageOpened behind{kVolume, kEpoch, {6}, {6}};
  const auto resume = sent<Resume>(hear(kOther, behind));
  ASSERT_TRUE(resume.has_value());
  EXPECT_TRUE(resume->start_over);
}

// The logger was set up anew, or an old copy of its log was: no image has what it never had.
TEST_F(CoordinatorRoleTest, ALogThatEndsBeforeAnImageDoesIsWrittenToNoMore) {
  serve();
  storage_connected(kOwn);
  const Actions actions = hear(kOwn, StorageOpened{kVolume, kEpoch, {11}, {5}});
  EXPECT_FALSE(sent<Resume>(actions).has_value());
  EXPECT_EQ(only<CoordinatorRole::Disconnect>(actions)->why.code, ErrorCode::kCorrupt);
  const auto told = only<CoordinatorRole::WritesWait>(actions);
  ASSERT_TRUE(told.has_value());
  EXPECT_NE(told->why.message.find("#10"), std::string::npos) << told->why.message;
  EXPECT_NE(told->why.message.find("#11"), std::string::npos) << told->why.message;
  EXPECT_EQ(only<Answer>(submit(1))->result.error().code, ErrorCode::kCorrupt);
  // One that has no more than the log changes nothing about it.
  open_storage(kOther);
  EXPECT_EQ(only<Answer>(submit(2))->result.error().code, ErrorCode::kCorrupt);
}

TEST_F(CoordinatorRoleTest, AnImageThatWasOpenInThisEpochHasWhatCameInIt) {
  serve();
  open_storage(kOwn);
  Actions out;
  role_.storage_disconnected(kOwn, kNow, out);
  storage_connected(kOwn);
  EXPECT_TRUE(sent<Resume>(hear(kOwn, StorageOpened{kVolume, kEpoch, {18}, {18}})).has_value());
}

// Old contents are better than none, should the other one never return.
TEST_F(CoordinatorRoleTest, AnImageThatIsBehindIsKeptWhileNoOtherIsThereToBuildItFrom) {
  serve();
  storage_connected(kOther);
  const Actions actions = hear(kOther, StorageOpened{kVolume, kEpoch, {6}, {6}});
  EXPECT_FALSE(sent<Resume>(actions).has_value());
  EXPECT_TRUE(only<CoordinatorRole::Disconnect>(actions).has_value());
}

// An image that was given up, and opened while no other was there, is not believed later either.
TEST_F(CoordinatorRoleTest, AnImageThatIsLeftAsItIsCountsForNoMoreThanBefore) {
  serve();
  open_storage(kOwn, 18);
  open_storage(kOther, 18);
  Actions out;
  role_.storage_disconnected(kOther, kNow, out);
  submit(19);
  hear(Logged{kVolume, kEpoch, {19}});
  hear(kOwn, StorageProgress{kVolume, kEpoch, {18}, {19}, 64 * kBlockBytes});
  tick(10s);
  tick(2h);
  role_.storage_disconnected(kOwn, kNow, out);
  storage_connected(kOther);
  const StorageOpened opened{kVolume, kEpoch, {19}, {19}};
  EXPECT_TRUE(only<CoordinatorRole::Disconnect>(hear(kOther, opened)).has_value());
  storage_connected(kOwn);
  hear(kOwn, opened);
  storage_connected(kOther);
  EXPECT_TRUE(sent<Resume>(hear(kOther, opened))->start_over);
}

}  // namespace
}  // namespace mariner::replication

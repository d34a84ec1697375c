// Images that have failed while their nodes are there.
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tests/replication/coordinator_fixture.h"

namespace mariner::replication {
namespace {

using namespace std::chrono_literals;

const Error kBroken{ErrorCode::kIo, "the disk is broken"};

// Both images have everything up to #18.
class FailedImageTest : public CoordinatorRoleTest {
 protected:
  void SetUp() override {
    serve();
    open_storage(kOwn, 18);
    open_storage(kOther, 18);
  }
  void write_one(std::uint64_t sequence, NodeId kept_by = kOwn) {
    submit(sequence);
    hear(Logged{kVolume, kEpoch, {sequence}});
    progress(kept_by, sequence);
  }
  Actions progress(NodeId node, std::uint64_t durable, std::optional<Error> failed = std::nullopt) {
    return hear(node,
                StorageProgress{kVolume, kEpoch, {18}, {durable}, 64 * kBlockBytes, {}, failed});
  }
  Actions opens(NodeId node, std::uint64_t durable, std::optional<Error> failed = std::nullopt) {
    storage_connected(node);
    return hear(node, StorageOpened{kVolume, kEpoch, {durable}, {durable}, failed});
  }
  void room_wanted() { hear(RoomWanted{kVolume, kEpoch}); }
  [[nodiscard]] std::uint64_t frontier() const { return role_.writes().frontier().value; }
};

TEST_F(FailedImageTest, IsDoneWithoutAndThenFaresAsThatOfANodeThatIsAway) {
  progress(kOther, 18, kBroken);
  EXPECT_EQ(role_.image_failure(kOther)->message, kBroken.message);
  const Actions actions = tick(10s);
  const auto let_go = only<CoordinatorRole::ImageFailed>(actions);
  ASSERT_TRUE(let_go.has_value());
  EXPECT_EQ(let_go->node, kOther);
  EXPECT_TRUE(let_go->let_go);
  const auto why = only<CoordinatorRole::Disconnect>(actions);
  ASSERT_TRUE(why.has_value());
  EXPECT_NE(why->why.message.find(kBroken.message), std::string::npos);
  write_one(19);
  EXPECT_FALSE(sent<Resume>(opens(kOther, 18, kBroken))) << "it is left alone";
  room_wanted();
  tick(19s);
  EXPECT_EQ(frontier(), 18u);
  room_wanted();
  const Actions later = tick(20s);
  EXPECT_EQ(only<CoordinatorRole::GivenUp>(later)->node, kOther);
  EXPECT_FALSE(only<CoordinatorRole::ImageFailed>(later)) << "that was told";
  EXPECT_EQ(frontier(), 19u);
  EXPECT_EQ(sent<FrontierMessage>(later)->frontier, SequenceNumber{19});
}

TEST_F(FailedImageTest, IsKeptForAsLongAsTheLogHasRoom) {
  progress(kOther, 18, kBroken);
  tick(10s);
  opens(kOther, 18, kBroken);
  write_one(19);
  tick(59min);
  EXPECT_EQ(frontier(), 18u);
  hear(kOther, Refused{kVolume, kEpoch, {ErrorCode::kUnavailable, "it is tried again"}});
  EXPECT_FALSE(sent<Resume>(opens(kOther, 18))->start_over) << "it lacks nothing that is gone";
  EXPECT_FALSE(role_.image_failure(kOther));
}

TEST_F(FailedImageTest, ThatWasGivenUpIsBuiltAnewWhenItWorksAndNotBefore) {
  progress(kOther, 18, kBroken);
  tick(10s);
  opens(kOther, 18, kBroken);
  write_one(19);
  tick(2h);
  EXPECT_EQ(frontier(), 19u);
  EXPECT_FALSE(sent<Resume>(opens(kOther, 18, kBroken)));
  EXPECT_TRUE(sent<Resume>(opens(kOther, 18))->start_over);
  EXPECT_FALSE(sent<Resume>(opens(kOther, 0))->start_over);
}

// It has written since it was heard last, of a history that the log had given up by then.
TEST_F(FailedImageTest, OfOneThatWasGivenUpCountsWhatItHadBefore) {
  progress(kOther, 18, kBroken);
  tick(10s);
  write_one(19);
  tick(2h);
  EXPECT_EQ(frontier(), 19u);
  EXPECT_FALSE(sent<Resume>(opens(kOther, 19, kBroken)));
  EXPECT_EQ(role_.durable_at(kOther), SequenceNumber{18});
  EXPECT_TRUE(sent<Resume>(opens(kOther, 19))->start_over);
}

TEST_F(FailedImageTest, ThatIsTheLastOneIsKeptAndNothingIsGivenUp) {
  Actions out;
  role_.storage_disconnected(kOther, kNow, out);
  progress(kOwn, 18, kBroken);
  const auto told = only<CoordinatorRole::ImageFailed>(tick(10s));
  ASSERT_TRUE(told.has_value());
  EXPECT_FALSE(told->let_go);
  EXPECT_TRUE(role_.caught_up(kOwn)) << "reads go on";
  room_wanted();
  const Actions actions = tick(1min);
  EXPECT_FALSE(only<CoordinatorRole::Disconnect>(actions));
  EXPECT_FALSE(only<CoordinatorRole::GivenUp>(actions)) << "of the one that is away either";
  EXPECT_FALSE(only<CoordinatorRole::HandOver>(actions));
  const auto waits = only<CoordinatorRole::WritesWait>(actions);
  ASSERT_TRUE(waits.has_value());
  EXPECT_NE(waits->why.message.find(kBroken.message), std::string::npos);
  EXPECT_EQ(frontier(), 18u);
}

TEST_F(FailedImageTest, BothAreKept) {
  progress(kOwn, 18, kBroken);
  progress(kOther, 18, kBroken);
  const Actions actions = tick(10s);
  EXPECT_FALSE(only<CoordinatorRole::Disconnect>(actions));
  EXPECT_FALSE(only<CoordinatorRole::HandOver>(actions));
  submit(19);
  hear(Logged{kVolume, kEpoch, {19}});
  room_wanted();
  tick(2h);
  EXPECT_EQ(frontier(), 18u);
  // The one that works again is enough.
  progress(kOwn, 19);
  EXPECT_EQ(only<CoordinatorRole::Disconnect>(tick(2h + 1s))->node, kOther);
}

// Reads are served from it, by this node.
TEST_F(FailedImageTest, ThatIsThisNodesOwnHasTheOtherNodeCoordinate) {
  progress(kOwn, 18, kBroken);
  const Actions actions = tick(10s);
  EXPECT_EQ(only<CoordinatorRole::HandOver>(actions)->to, kOther);
  EXPECT_FALSE(only<CoordinatorRole::ImageFailed>(actions)->let_go);
  EXPECT_FALSE(only<CoordinatorRole::Disconnect>(actions));
  EXPECT_FALSE(only<CoordinatorRole::HandOver>(tick(11s))) << "it takes its time";
  EXPECT_TRUE(only<CoordinatorRole::HandOver>(tick(16s)));
}

// It is being built: what the log has given up it does not have.
TEST_F(FailedImageTest, IsNotDoneWithoutForOneThatLacksWhatIsGivenUp) {
  Actions out;
  role_.storage_disconnected(kOther, kNow, out);
  EXPECT_FALSE(sent<Resume>(opens(kOther, 0))->start_over);
  hear(kOther, CaughtUp{kVolume, kEpoch, role_.settled()});
  progress(kOwn, 18, kBroken);
  const Actions actions = tick(10s);
  EXPECT_FALSE(only<CoordinatorRole::HandOver>(actions));
  EXPECT_FALSE(only<CoordinatorRole::ImageFailed>(actions)->let_go);
}

TEST_F(FailedImageTest, ThatIsBeingBuiltIsLeftAlone) {
  Actions out;
  role_.storage_disconnected(kOther, kNow, out);
  opens(kOther, 0);
  hear(kOther, StorageProgress{kVolume, kEpoch, {18}, {}, 64 * kBlockBytes, {}, kBroken});
  EXPECT_TRUE(only<CoordinatorRole::Disconnect>(tick(10s)));
  EXPECT_FALSE(sent<Resume>(opens(kOther, 0, kBroken)));
  write_one(19);
  room_wanted();
  tick(11s);
  room_wanted();
  tick(21s);
  EXPECT_EQ(frontier(), 19u);
}

// A target that stores nothing reads from whoever works.
TEST(FailedImageElsewhere, ReadsComeFromTheOtherOneAndFromTheFailedOneIfThatIsAllThereIs) {
  CoordinatorRole role({kVolume, kEpoch, {kOwn, kOther}, {}, kLogger},
                       {.limits = {.writes_in_flight_max = kMargin}, .void_margin = kMargin});
  CoordinatorRole::Actions out;
  role.logger_connected(kLogger, out);
  role.received(kLogger, LogOpened{kVolume, kEpoch, {10}, {}, {5000}, {7}}, kNow, out);
  role.received(kLogger, Logged{kVolume, kEpoch, {10 + kMargin}}, kNow, out);
  const auto open = [&](NodeId node, std::optional<Error> failed = std::nullopt) {
    CoordinatorRole::Actions opened;
    role.storage_connected(node, opened);
    role.received(node, StorageOpened{kVolume, kEpoch, {10}, {10}, failed}, kNow, opened);
    role.received(node, CaughtUp{kVolume, kEpoch, {10 + kMargin}}, kNow, opened);
    return opened;
  };
  const auto tick = [&](std::chrono::nanoseconds now) {
    CoordinatorRole::Actions ticked;
    role.tick(kNow, now, ticked);
    return ticked;
  };
  open(kOwn);
  open(kOther);
  EXPECT_EQ(role.reads_from(), kOwn);
  role.received(kOwn, StorageProgress{kVolume, kEpoch, {18}, {10}, 64 * kBlockBytes, {}, kBroken},
                kNow, out);
  EXPECT_EQ(only<CoordinatorRole::Disconnect>(tick(1s))->node, kOwn);
  EXPECT_EQ(role.reads_from(), kOther);
  EXPECT_FALSE(sent<Resume>(open(kOwn, kBroken)));
  EXPECT_FALSE(only<CoordinatorRole::Disconnect>(tick(2s)));
  role.storage_disconnected(kOther, kNow, out);
  EXPECT_EQ(only<CoordinatorRole::Disconnect>(tick(3s))->node, kOwn);
  EXPECT_TRUE(sent<Resume>(open(kOwn, kBroken)));
  EXPECT_EQ(role.reads_from(), kOwn);
}

}  // namespace
}  // namespace mariner::replication

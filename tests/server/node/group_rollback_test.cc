#include "server/node/group_rollback.h"

#include "tests/server/node/group_fixture.h"

namespace mariner::node {
namespace {

// A group whose volumes were 'a', then 'b'.
class GroupRollbackTest : public testing::GroupFixture {
 protected:
  GroupRollbackTest() {
    EXPECT_TRUE(groups_->create("g1", {"data", "log"}, false));
    for (const char byte : {'a', 'b'}) {
      write("data", byte);
      write("log", byte);
    }
  }
  std::string both() { return {read("data"), read("log")}; }
  std::uint64_t newest(const std::string& name) { return parts_.newest(volume(name)).value; }
  // As a rollback to #1 of both leaves it in the store before the first of its records.
  void decide() {
    meta::GroupRollback record;
    record.set_group("g1");
    record.set_number(1);
    record.set_begun_ns(groups_->now(groups_->all().at("g1")).ns);
    for (const char* name : {"data", "log"}) {
      *record.add_before() = part_of(VolumeId{id(name)}, volume(name).volume->index().newest());
      *record.add_target() = part_of(VolumeId{id(name)}, {SequenceNumber{1}, {}});
    }
    EXPECT_TRUE(parts_.store().put_group_rollback(record));
  }
  // One of its records.
  void log(const std::string& name) {
    EXPECT_TRUE(answer<replication::Stamp>([&](auto done) {
      volume(name).volume->live().rollback({SequenceNumber{1}, {}}, std::move(done));
    }));
  }
  void wait_until_done() {
    parts_.run_until([&] { return !groups_->all().at("g1").rolling_back; });
  }
};

TEST_F(GroupRollbackTest, TakesAllBackAndMarksTheMomentBefore) {
  const Result<meta::GroupRollback> record = roll_back("g1", {1, 1});
  ASSERT_TRUE(record) << to_string(record.error());
  EXPECT_EQ(both(), "aa");
  EXPECT_EQ(record->number(), 1u);
  EXPECT_EQ(record->before(0).sequence(), 2u);
  EXPECT_EQ(record->before(1).sequence(), 2u);
  EXPECT_GT(written("data").ns, record->begun_ns());
  EXPECT_EQ(std::max(written("data"), written("log")).ns, record->ended_ns());
  const auto marks = parts_.store().group_marks_of("g1");
  ASSERT_EQ(marks->size(), 1u);
  EXPECT_TRUE(marks->front().automatic());
  EXPECT_EQ(marks->front().time_ns(), record->begun_ns());
  EXPECT_EQ(marks->front().parts_size(), 2);
  EXPECT_TRUE(marks->front().name().starts_with("before-rollback-"));
  ASSERT_TRUE(roll_back("g1", {2, 2})) << "as undoing does";
  EXPECT_EQ(both(), "bb");
  restart();
  EXPECT_EQ(both(), "bb");
  EXPECT_EQ((*groups_->find("g1"))->rollbacks.size(), 2u);
}

// What is read and written meanwhile waits until all have it on record.
TEST_F(GroupRollbackTest, NobodySeesOneWithoutTheOther) {
  const auto data = volume("data").volume->live_layer();
  const auto log = volume("log").volume->live_layer();
  std::string seen;  // of both, one pair after the other
  bool ended = false;
  std::size_t asked = 0;
  // The second member first: if it is rolled back, so is whichever is read behind it.
  std::function<void()> look = [&] {
    ++asked;
    log->read({0, kBlockBytes}, [&](const Result<PayloadSlice>& second) {
      seen.push_back(static_cast<char>(second->bytes()[0]));
      data->read({0, kBlockBytes}, [&](const Result<PayloadSlice>& first) {
        seen.push_back(static_cast<char>(first->bytes()[0]));
        const bool last = ended;
        --asked;
        if (!last) parts_.executor().post(look);
      });
    });
  };
  look();
  groups_->roll_back("g1", targets("g1", {1, 1}), [&](const Result<meta::GroupRollback>& record) {
    ended = record.has_value();
  });
  parts_.run_until([&] { return ended && asked == 0; });
  EXPECT_EQ(both(), "aa");
  ASSERT_GE(seen.size(), 4u);
  for (std::size_t i = 0; i < seen.size(); i += 2) {
    EXPECT_FALSE(seen[i] == 'a' && seen[i + 1] == 'b') << "at " << i << " of " << seen;
  }
}

TEST_F(GroupRollbackTest, AMomentThatIsGoneChangesNothing) {
  index::StoredIndex& index = volume("log").volume->index();
  index.set_horizon(index.newest());
  const Result<meta::GroupRollback> record = roll_back("g1", {1, 1});
  EXPECT_EQ(record.error().code, ErrorCode::kOutsideWindow);
  EXPECT_NE(record.error().message.find("log: "), std::string::npos) << record.error().message;
  EXPECT_EQ(both(), "bb");
  EXPECT_TRUE(parts_.store().group_rollbacks("g1")->empty());
  EXPECT_TRUE(parts_.store().group_marks_of("g1")->empty());
  write("data", 'c');
  EXPECT_EQ(both(), "cb") << "nobody is held up";
}

// A crash between any two of what is written down.

TEST_F(GroupRollbackTest, InterruptedBeforeTheFirstRecord) {
  decide();
  restart();
  wait_until_done();
  EXPECT_EQ(both(), "aa");
}

TEST_F(GroupRollbackTest, InterruptedBetweenTheRecords) {
  decide();
  log("data");
  restart();
  wait_until_done();
  EXPECT_EQ(both(), "aa");
  ASSERT_EQ((*groups_->find("g1"))->rollbacks.size(), 1u);
  const meta::GroupRollback& record = (*groups_->find("g1"))->rollbacks[0];
  EXPECT_EQ(record.ended_ns(), written("log").ns);
  EXPECT_GT(written("log"), written("data"));
  EXPECT_EQ(parts_.store().group_marks_of("g1")->size(), 1u);
  const Result<GroupMoment> between = resolve_at("g1", written("data"));
  ASSERT_TRUE(between);
  for (const ResolvedMoment& member : between->members) {
    EXPECT_EQ(member.at.sequence, SequenceNumber{2}) << "before it";
  }
}

TEST_F(GroupRollbackTest, InterruptedBetweenTheRecordsTheOtherWayRound) {
  decide();
  log("log");
  restart();
  wait_until_done();
  EXPECT_EQ(both(), "aa");
  const std::uint64_t data = newest("data");
  const std::uint64_t log = newest("log");
  restart();
  EXPECT_FALSE(groups_->all().at("g1").rolling_back);
  EXPECT_EQ(newest("data"), data) << "it is done once";
  EXPECT_EQ(newest("log"), log);
}

TEST_F(GroupRollbackTest, InterruptedBehindTheLastRecord) {
  decide();
  log("data");
  log("log");
  const std::uint64_t data = newest("data");
  restart();
  wait_until_done();
  EXPECT_EQ(both(), "aa");
  EXPECT_EQ(newest("data"), data) << "none is missing";
  EXPECT_EQ(parts_.store().group_marks_of("g1")->size(), 1u);
}

// The store failed to forget it, and hosts have gone on since.
TEST_F(GroupRollbackTest, WhatNeverHappenedDoesNotHappenLater) {
  decide();
  write("data", 'c');
  restart();
  EXPECT_FALSE(groups_->all().at("g1").rolling_back);
  EXPECT_EQ(both(), "cb");
  EXPECT_TRUE(parts_.store().group_rollbacks("g1")->empty());
}

// The store failed to remember its end, and hosts have gone on since.
TEST_F(GroupRollbackTest, WhatAllHaveOnRecordIsNotDoneAgain) {
  decide();
  log("data");
  log("log");
  write("data", 'c');
  restart();
  wait_until_done();
  EXPECT_EQ(both(), "ca");
  EXPECT_EQ((*groups_->find("g1"))->rollbacks.size(), 1u);
}

TEST_F(GroupRollbackTest, HostsWaitUntilWhatWasInterruptedIsCompleted) {
  decide();
  log("data");
  groups_->stop();
  parts_.stop();
  parts_.start();
  open();
  EXPECT_TRUE(groups_->all().at("g1").rolling_back);
  char seen = 0;
  volume("log").volume->live_layer()->read({0, kBlockBytes}, [&](const Result<PayloadSlice>& read) {
    seen = static_cast<char>(read->bytes()[0]);
  });
  EXPECT_EQ(seen, 0);
  parts_.run_until([&] { return seen != 0; });
  EXPECT_EQ(seen, 'a');
  wait_until_done();
  EXPECT_EQ(both(), "aa");
}

// The records are refused, and none of them is there: it did not happen.
TEST_F(GroupRollbackTest, WhatIsRefusedByAllIsTakenBack) {
  parts_.volumes().close(Error{ErrorCode::kUnavailable, "stopping"});
  const Result<meta::GroupRollback> record = roll_back("g1", {1, 1});
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(parts_.store().group_rollbacks("g1")->empty());
  restart();
  EXPECT_EQ(both(), "bb");
}

// One of them has its record, the other one is refused because the server stops: the next start
// completes it.
TEST_F(GroupRollbackTest, AStopInBetweenIsCompletedAtTheNextStart) {
  decide();
  log("data");
  parts_.stop();
  parts_.start();
  open();
  parts_.volumes().close(Error{ErrorCode::kUnavailable, "stopping"});
  restart();
  wait_until_done();
  EXPECT_EQ(both(), "aa");
}

}  // namespace
}  // namespace mariner::node

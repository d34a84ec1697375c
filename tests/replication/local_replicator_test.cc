#include "replication/local_replicator.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "tests/support/manual_executor.h"

namespace mariner::replication {
namespace {

// Participants that write down what they hear. The logger answers when it is told to.
class Participants : public LoggerParticipant, public StorageParticipant {
 public:
  void log(const WriteMessage& message, UniqueFunction<void(Result<void>)> done) override {
    heard.push_back("log " + std::to_string(message.stamp.sequence.value));
    pending.push_back(std::move(done));
  }
  void log_void(const VoidMessage& message, UniqueFunction<void(Result<void>)> done) override {
    heard.push_back("void " + std::to_string(message.first.value));
    pending.push_back(std::move(done));
  }
  void applied(SequenceNumber through) override {
    heard.push_back("applied " + std::to_string(through.value));
  }
  void prepare(const WriteMessage& message) override {
    heard.push_back("prepare " + std::to_string(message.stamp.sequence.value));
  }
  void drop(const VoidMessage& message) override {
    heard.push_back("drop " + std::to_string(message.first.value));
  }
  void commit(SequenceNumber settled) override {
    heard.push_back("commit " + std::to_string(settled.value));
  }

  void answer(const Result<void>& result = {}) {
    auto done = std::move(pending.front());
    pending.pop_front();
    done(result);
  }

  std::vector<std::string> heard;
  std::deque<UniqueFunction<void(Result<void>)>> pending;
};

class LocalReplicatorTest : public ::testing::Test {
 protected:
  LocalReplicator::WriteDone note(std::string name) {
    return [this, name](const Result<Stamp>& result) {
      participants_.heard.push_back((result ? "done " : "failed ") + name);
    };
  }
  LocalReplicator::SettleDone note_settled(std::string name) {
    return [this, name](SequenceNumber settled) {
      participants_.heard.push_back(name + " settled " + std::to_string(settled.value));
    };
  }
  void expect(std::vector<std::string> expected) {
    EXPECT_EQ(participants_.heard, expected);
    participants_.heard.clear();
  }

  test::ManualExecutor executor_;
  Participants participants_;
  LocalReplicator replicator_{{VolumeId{1}, Epoch{1}, {}, {}, {}},
                              {.writes_in_flight_max = 2},
                              executor_,
                              participants_,
                              &participants_};
};

TEST_F(LocalReplicatorTest, StorageHearsBeforeTheLoggerAndCommitsBeforeTheAnswer) {
  replicator_.submit({}, note("a"));
  expect({"prepare 1", "log 1"});
  EXPECT_FALSE(replicator_.drained());
  participants_.answer();
  expect({"commit 1", "done a"});
  EXPECT_TRUE(replicator_.drained());
}

TEST_F(LocalReplicatorTest, AFailedWriteIsDroppedAndVoided) {
  replicator_.submit({}, note("a"));
  replicator_.settle(note_settled("s"));
  participants_.heard.clear();
  participants_.answer(Error{ErrorCode::kNoSpace, "full"});
  expect({"failed a", "drop 1", "void 1"});
  EXPECT_FALSE(replicator_.drained()) << "the void is under way";
  participants_.answer();
  expect({"commit 1", "s settled 1"});
  EXPECT_TRUE(replicator_.drained());
}

TEST_F(LocalReplicatorTest, AVoidThatFailsEndsWritingAndLetsSettlersGo) {
  replicator_.submit({}, note("a"));
  replicator_.settle(note_settled("s"));
  participants_.answer(Error{ErrorCode::kIo, "broken"});
  participants_.heard.clear();
  participants_.answer(Error{ErrorCode::kIo, "broken"});
  expect({"s settled 0"});
  replicator_.submit({}, note("b"));
  replicator_.settle(note_settled("t"));
  expect({"failed b", "t settled 0"});
  EXPECT_TRUE(replicator_.drained());
}

TEST_F(LocalReplicatorTest, WhatACompletionSubmitsComesBehindWhatIsAtHand) {
  replicator_.submit({}, [this](const Result<Stamp>&) {
    participants_.heard.push_back("done a");
    replicator_.submit({}, note("inner"));
    participants_.heard.push_back("submitted inner");
  });
  replicator_.submit({}, note("b"));
  replicator_.submit({}, note("waits"));
  participants_.heard.clear();
  participants_.answer();
  // "waits" takes the place that "a" leaves, and "inner" waits behind it.
  expect({"commit 1", "done a", "submitted inner", "prepare 3", "log 3"});
  participants_.answer();
  expect({"commit 2", "done b", "prepare 4", "log 4"});
  participants_.answer();
  participants_.answer();
  expect({"commit 3", "done waits", "commit 4", "done inner"});
}

TEST_F(LocalReplicatorTest, TheLoggerHearsHowFarTheImageIs) {
  replicator_.submit({}, note("a"));
  participants_.answer();
  participants_.heard.clear();
  replicator_.storage_durable({1});
  expect({"applied 1"});
  EXPECT_EQ(replicator_.coordinator().frontier(), SequenceNumber{1});
}

TEST_F(LocalReplicatorTest, WritesThatWaitForAGrantAreRefusedWhenItCloses) {
  replicator_.grant(0);
  replicator_.submit({}, note("a"));
  expect({});
  replicator_.close(Error{ErrorCode::kUnavailable, "stopping"});
  expect({"failed a"});
}

TEST_F(LocalReplicatorTest, AMomentIsOpenWhenAllBeforeItIsSettledAndNothingComesIntoIt) {
  replicator_.submit({}, note("a"));
  const VersionTime moment{executor_.wall_time().ns + 1000};
  replicator_.settle_moment(
      moment,
      [note = note_settled("m")](Result<SequenceNumber> settled) mutable { note(*settled); });
  VersionTime later;
  replicator_.submit({}, [&](const Result<Stamp>& stamp) { later = stamp->time; });
  participants_.heard.clear();
  participants_.answer();
  expect({"commit 1", "done a", "m settled 1"});
  participants_.answer();
  EXPECT_GT(later, moment);
}

TEST_F(LocalReplicatorTest, WithoutStorageTheLoggerAloneCounts) {
  LocalReplicator alone({VolumeId{1}, Epoch{1}, {}, {}, {}}, {}, executor_, participants_, nullptr);
  alone.submit({}, note("a"));
  participants_.answer(Error{ErrorCode::kIo, "lost"});
  participants_.answer();
  expect({"log 1", "failed a", "void 1"});
  EXPECT_EQ(alone.coordinator().settled(), SequenceNumber{1});
}

TEST(ReplicatorDeath, DestroyedWithWritesInFlight) {
  test::ManualExecutor executor;
  Participants participants;
  EXPECT_DEATH(
      {
        LocalReplicator replicator({VolumeId{1}, Epoch{1}, {}, {}, {}}, {}, executor, participants,
                                   nullptr);
        replicator.submit({}, [](const Result<Stamp>&) {});
      },
      "in flight");
}

}  // namespace
}  // namespace mariner::replication

#include "tests/server/manager/memory_store.h"

#include <gtest/gtest.h>

#include "tests/server/manager/store_rig.h"

namespace mariner::manager {
namespace {

using namespace std::chrono_literals;

// The faults of the model; what it does without them is the conformance suite's.
class MemoryStoreTest : public testing::Test {
 protected:
  MemoryRig rig_;
};

TEST_F(MemoryStoreTest, ALostAnswerIsUnknownAndWasApplied) {
  rig_.memory().set_faults({.lose_answers = 1});
  const auto answer = rig_.put("a", "1");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->outcome, CommitOutcome::kUnknown);
  EXPECT_TRUE(rig_.get("a")->entry.has_value());
}

TEST_F(MemoryStoreTest, ALostRequestIsUnknownAndWasNotApplied) {
  rig_.memory().set_faults({.lose_requests = 1});
  EXPECT_EQ(rig_.put("a", "1")->outcome, CommitOutcome::kUnknown);
  EXPECT_FALSE(rig_.get("a")->entry.has_value());
}

TEST_F(MemoryStoreTest, ReadsAreRepeated) {
  rig_.memory().set_faults({.lose_requests = 1, .lose_answers = 1});
  EXPECT_TRUE(rig_.get("a"));
}

TEST_F(MemoryStoreTest, ALateRequestIsAppliedAfterItWasGivenUp) {
  rig_.memory().set_faults({.delay = 7s});
  EXPECT_EQ(rig_.put("a", "1")->outcome, CommitOutcome::kUnknown);
  rig_.memory().set_faults({});
  EXPECT_FALSE(rig_.get("a")->entry.has_value());
  rig_.pass(7s);
  EXPECT_TRUE(rig_.get("a")->entry.has_value());
}

TEST_F(MemoryStoreTest, APartitionEndsALeaseAndDelaysAWatch) {
  const auto lease = rig_.grant(2s);
  ASSERT_TRUE(lease);
  const auto bound = rig_.put("a", "1", lease->id);
  ASSERT_TRUE(bound);
  Recorder recorder;
  const auto watch = rig_.store().watch("", bound->revision.next(), recorder);
  rig_.memory().set_faults({.partitioned = true});
  const auto kept = rig_.keep_alive(lease->id);
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(recorder.changes.empty());
  rig_.memory().set_faults({});
  ASSERT_TRUE(rig_.wait([&] { return !recorder.changes.empty(); }, 1s));
  EXPECT_TRUE(recorder.changes[0].deleted);
  EXPECT_EQ(rig_.keep_alive(lease->id).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace mariner::manager

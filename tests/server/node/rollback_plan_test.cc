#include "server/node/rollback_plan.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/server/node/node_parts.h"

namespace mariner::node {
namespace {

class Plan : public ::testing::Test {
 protected:
  Plan() {
    parts_.create("db1");
    for (const char c : {'1', '2', '3'}) parts_.write(*volume().volume->live_layer(), 0, c);
  }
  ServedVolume& volume() { return *parts_.volumes().find("db1"); }
  Result<RollbackPlan> plan(const api::RollbackRequest& request) {
    std::optional<Result<RollbackPlan>> out;
    plan_rollback(*moments_of(volume(), parts_.store()), request, parts_.executor(),
                  [&](Result<RollbackPlan> made) { out = std::move(made); });
    parts_.run_until([&] { return out.has_value(); });
    return *out;
  }
  static api::RollbackRequest to(std::uint64_t sequence) {
    api::RollbackRequest request;
    request.mutable_at()->set_sequence(sequence);
    return request;
  }

  testing::NodeParts parts_;
};

TEST_F(Plan, SaysWhatWouldChange) {
  const Result<RollbackPlan> back = plan(to(1));
  ASSERT_TRUE(back) << to_string(back.error());
  EXPECT_EQ(back->target.at.sequence, SequenceNumber{1});
  EXPECT_EQ(back->answer.undone_writes(), 2u);
  EXPECT_EQ(back->answer.changed_bytes(), kBlockBytes);
  EXPECT_EQ(back->answer.before().sequence(), 3u);
  EXPECT_EQ(plan(to(3))->answer.undone_writes(), 0u);
  EXPECT_EQ(plan(to(4)).error().code, ErrorCode::kOutsideWindow);
}

TEST_F(Plan, UndoGoesToTheMomentBeforeTheNewestRollback) {
  api::RollbackRequest undo;
  undo.set_undo(true);
  EXPECT_EQ(plan(undo).error().code, ErrorCode::kNotFound);
  bool done = false;
  volume().volume->live().rollback(plan(to(1))->target.at, [&](const auto& stamp) {
    EXPECT_TRUE(stamp.has_value());
    done = true;
  });
  parts_.run_until([&] { return done; });
  const Result<RollbackPlan> back = plan(undo);
  ASSERT_TRUE(back) << to_string(back.error());
  EXPECT_EQ(back->target.at.sequence, SequenceNumber{3});
  EXPECT_EQ(back->answer.undone_writes(), 1u) << "the rollback";
}

TEST_F(Plan, TheMarkThatItIsUndoneBy) {
  const meta::Mark mark = mark_before({{41}, {7}}, {Epoch{1}, SequenceNumber{42}, VersionTime{9}},
                                      VolumeId{3}, VersionTime{1'000'000'000});
  EXPECT_EQ(mark.name(), "before-rollback-19700101-000001z-42");
  EXPECT_EQ(mark.sequence(), 41u);
  EXPECT_EQ(mark.volume_id(), 3u);
  EXPECT_TRUE(mark.automatic());
}

}  // namespace
}  // namespace mariner::node

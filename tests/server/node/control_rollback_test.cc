// Rollback as an administrator asks for it: server/node/control_rollback.cc.
#include <gtest/gtest.h>

#include "tests/server/node/node_fixture.h"

namespace mariner::node {
namespace {

// A volume whose first block was 'a', then 'b'.
class ControlRollback : public testing::NodeFixture {
 protected:
  ControlRollback() {
    volume_ = create("db1");
    EXPECT_EQ(write(volume_.iqn(), 0, 'a'), scsi::Status::kGood);
    EXPECT_EQ(write(volume_.iqn(), 0, 'b'), scsi::Status::kGood);
  }
  static api::RollbackRequest to(const api::MomentSpec& at) {
    api::RollbackRequest request;
    request.set_volume("db1");
    *request.mutable_at() = at;
    return request;
  }
  static api::RollbackRequest undo() {
    api::RollbackRequest request;
    request.set_volume("db1");
    request.set_undo(true);
    return request;
  }
  Result<api::RollbackAnswer> rollback(const api::RollbackRequest& request) {
    return ask(&NodeControl::rollback, request);
  }
  char first() { return read(volume_.iqn(), 0); }

  api::Volume volume_;
};

TEST_F(ControlRollback, ADryRunTellsWhatWouldChange) {
  api::RollbackRequest request = to(at_sequence(1));
  request.set_dry_run(true);
  const Result<api::RollbackAnswer> answer = rollback(request);
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->dry_run());
  EXPECT_EQ(answer->target().sequence(), 1u);
  EXPECT_EQ(answer->before().sequence(), 2u);
  EXPECT_EQ(answer->changed_bytes(), kBlockBytes);
  EXPECT_EQ(answer->undone_writes(), 1u);
  EXPECT_EQ(answer->sequence(), 0u);
  EXPECT_EQ(answer->before_mark(), "");
  EXPECT_EQ(first(), 'b');
}

TEST_F(ControlRollback, BackAndForth) {
  const Result<api::RollbackAnswer> back = rollback(to(at_sequence(1)));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->sequence(), 3u);
  EXPECT_EQ(first(), 'a');
  const Result<api::RollbackAnswer> undone = rollback(undo());
  ASSERT_TRUE(undone);
  EXPECT_EQ(undone->target().sequence(), 2u);
  EXPECT_EQ(first(), 'b');
  ASSERT_TRUE(rollback(undo())) << "undoing an undo is doing it again";
  EXPECT_EQ(first(), 'a');
  stop();
  start();
  EXPECT_EQ(first(), 'a');
}

TEST_F(ControlRollback, RepairsComeWithItAndGoWithItsUndoing) {
  api::RollbackRequest request = to(at_sequence(1));
  request.set_repairs(hand_over("db1", 1, {2, 3, 7}, 'r'));
  request.set_dry_run(true);
  EXPECT_EQ(rollback(request)->repaired_blocks(), 3u);
  EXPECT_EQ(first(), 'b');
  request.set_dry_run(false);
  const Result<api::RollbackAnswer> back = rollback(request);
  ASSERT_TRUE(back) << to_string(back.error());
  EXPECT_EQ(back->sequence(), 3u);
  EXPECT_EQ(back->repaired_blocks(), 3u);
  EXPECT_EQ(first(), 'a');
  EXPECT_EQ(read(volume_.iqn(), 3), 'r');
  EXPECT_EQ(read(volume_.iqn(), 7), 'r');
  EXPECT_EQ(read(volume_.iqn(), 4), '\0');
  const Result<api::RollbackAnswer> undone = rollback(undo());
  ASSERT_TRUE(undone);
  EXPECT_EQ(undone->target().sequence(), 2u);
  EXPECT_EQ(first(), 'b');
  EXPECT_EQ(read(volume_.iqn(), 3), '\0');
}

TEST_F(ControlRollback, RepairsThatDoNotBelongToItAreRefused) {
  api::RollbackRequest request = to(at_sequence(1));
  request.set_repairs(hand_over("db1", 2, {2}, 'r'));
  EXPECT_EQ(rollback(request).error().code, ErrorCode::kInvalidArgument);
  ASSERT_TRUE(rollback(to(at_sequence(1))));
  api::RollbackRequest undoing = undo();
  undoing.set_repairs(request.repairs());
  EXPECT_EQ(rollback(undoing).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(first(), 'a');
}

TEST_F(ControlRollback, TheMomentBeforeIsMarked) {
  const Result<api::RollbackAnswer> back = rollback(to(at_sequence(0)));
  ASSERT_TRUE(back);
  EXPECT_EQ(first(), 0);
  EXPECT_TRUE(back->before_mark().starts_with("before-rollback-"));
  api::MarkRequest list;
  list.set_volume("db1");
  const Result<api::MarkList> marks = ask(&NodeControl::mark_list, list);
  ASSERT_EQ(marks->marks_size(), 1);
  EXPECT_TRUE(marks->marks(0).automatic());
  EXPECT_EQ(marks->marks(0).at().sequence(), 2u);
  ASSERT_TRUE(rollback(to(at_mark(back->before_mark()))));
  EXPECT_EQ(first(), 'b');
}

TEST_F(ControlRollback, ToATime) {
  api::HistoryRequest history;
  history.set_name("db1");
  history.set_max_writes(1);
  const std::uint64_t time = ask(&NodeControl::history, history)->write_list(0).time_ns();
  const Result<api::RollbackAnswer> back = rollback(to(at_time(time)));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->target().sequence(), 1u);
  EXPECT_EQ(back->target().asked_ns(), time);
  EXPECT_EQ(first(), 'a');
}

TEST_F(ControlRollback, MomentsThatAreNone) {
  const auto code = [&](const api::MomentSpec& at) { return rollback(to(at)).error().code; };
  EXPECT_EQ(code(at_time(UINT64_MAX)), ErrorCode::kOutsideWindow);
  EXPECT_EQ(code(at_time(volume_.oldest().time_ns() - 1)), ErrorCode::kOutsideWindow);
  EXPECT_EQ(code(at_sequence(3)), ErrorCode::kOutsideWindow);
  EXPECT_EQ(code(at_mark("none")), ErrorCode::kNotFound);
  EXPECT_EQ(code({}), ErrorCode::kInvalidArgument);
  api::RollbackRequest elsewhere = to(at_sequence(0));
  elsewhere.set_volume("db2");
  EXPECT_EQ(rollback(elsewhere).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(first(), 'b');
}

TEST_F(ControlRollback, NothingToUndo) {
  EXPECT_EQ(rollback(undo()).error().code, ErrorCode::kNotFound);
}

TEST_F(ControlRollback, AVolumeInUseIsRolledBackByForceOnly) {
  const auto session = log_in(volume_.iqn());
  session->use();
  api::RollbackRequest request = to(at_sequence(1));
  EXPECT_EQ(rollback(request).error().code, ErrorCode::kBusy);
  EXPECT_EQ(first(), 'b');
  request.set_dry_run(true);
  EXPECT_EQ(rollback(request)->sessions_size(), 1);
  request.set_dry_run(false);
  request.set_force(true);
  ASSERT_TRUE(rollback(request));
  EXPECT_EQ(first(), 'a');
}

}  // namespace
}  // namespace mariner::node

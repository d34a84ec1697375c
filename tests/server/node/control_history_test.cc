// History and marks as an administrator sees them: server/node/control_history.cc.
#include <gtest/gtest.h>

#include "tests/server/node/node_fixture.h"

namespace mariner::node {
namespace {

// A volume with three writes, of two blocks.
class ControlHistory : public testing::NodeFixture {
 protected:
  ControlHistory() {
    volume_ = create("db1");
    EXPECT_EQ(write(volume_.iqn(), 0, 'a'), scsi::Status::kGood);
    EXPECT_EQ(write(volume_.iqn(), 0, 'b'), scsi::Status::kGood);
    EXPECT_EQ(write(volume_.iqn(), 1, 'c'), scsi::Status::kGood);
  }
  static api::HistoryRequest request() {
    api::HistoryRequest request;
    request.set_name("db1");
    return request;
  }
  Result<api::History> history(const api::HistoryRequest& request) {
    return ask(&NodeControl::history, request);
  }
  static api::MarkRequest mark(const std::string& name) {
    api::MarkRequest request;
    request.set_volume("db1");
    request.set_name(name);
    return request;
  }
  int marks() { return ask(&NodeControl::mark_list, mark(""))->marks_size(); }

  api::Volume volume_;
};

TEST_F(ControlHistory, Totals) {
  const Result<api::History> all = history(request());
  ASSERT_TRUE(all);
  EXPECT_EQ(all->writes(), 3u);
  EXPECT_EQ(all->bytes(), 3u * kBlockBytes);
  EXPECT_EQ(all->distinct_bytes(), 2u * kBlockBytes);
  EXPECT_EQ(all->to().sequence(), 3u);
  EXPECT_EQ(all->buckets_size(), 0);
  EXPECT_EQ(all->write_list_size(), 0);
  EXPECT_FALSE(all->truncated());
}

TEST_F(ControlHistory, BucketsHoldEveryWrite) {
  api::HistoryRequest asked = request();
  asked.set_buckets(4);
  const Result<api::History> out = history(asked);
  ASSERT_TRUE(out);
  ASSERT_EQ(out->buckets_size(), 4);
  std::uint64_t writes = 0;
  std::uint64_t bytes = 0;
  for (int i = 0; i < 4; ++i) {
    writes += out->buckets(i).writes();
    bytes += out->buckets(i).bytes();
    if (i > 0) {
      EXPECT_EQ(out->buckets(i).from_ns(), out->buckets(i - 1).to_ns());
    }
  }
  EXPECT_EQ(writes, 3u);
  EXPECT_EQ(bytes, 3u * kBlockBytes);
  EXPECT_EQ(out->buckets(3).to_ns(), out->to().asked_ns());
  asked.set_buckets(10'001);
  EXPECT_EQ(history(asked).error().code, ErrorCode::kLimit);
}

TEST_F(ControlHistory, SingleWrites) {
  api::HistoryRequest asked = request();
  asked.set_max_writes(3);
  Result<api::History> out = history(asked);
  ASSERT_TRUE(out);
  ASSERT_EQ(out->write_list_size(), 3);
  EXPECT_FALSE(out->truncated());
  EXPECT_EQ(out->write_list(2).sequence(), 3u);
  EXPECT_EQ(out->write_list(2).kind(), "write");
  EXPECT_EQ(out->write_list(2).first_block(), 1u);
  EXPECT_EQ(out->write_list(2).blocks(), 1u);
  asked.set_max_writes(2);
  out = history(asked);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->write_list_size(), 2);
  EXPECT_TRUE(out->truncated());
  EXPECT_EQ(out->writes(), 3u) << "the totals are of all";
}

TEST_F(ControlHistory, APartOfIt) {
  api::HistoryRequest asked = request();
  *asked.mutable_from() = at_sequence(1);
  *asked.mutable_to() = at_sequence(2);
  Result<api::History> out = history(asked);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->writes(), 1u);
  EXPECT_EQ(out->from().sequence(), 1u);
  EXPECT_EQ(out->to().sequence(), 2u);
  *asked.mutable_from() = at_time(1);
  out = history(asked);
  ASSERT_TRUE(out) << "a start before the volume existed means from its beginning";
  EXPECT_EQ(out->writes(), 2u);
  *asked.mutable_to() = at_sequence(9);
  EXPECT_EQ(history(asked).error().code, ErrorCode::kOutsideWindow);
  asked.set_name("db2");
  EXPECT_EQ(history(asked).error().code, ErrorCode::kNotFound);
}

TEST_F(ControlHistory, WhatChecksFoundIsShownAndOutlivesARestart) {
  api::SaveVerdictsRequest found;
  found.set_volume("db1");
  api::Verdict& verdict = *found.add_verdicts();
  verdict.mutable_at()->set_sequence(2);
  verdict.set_verdict("repairable");
  verdict.set_level(1);
  verdict.set_duration_ns(5);
  ASSERT_TRUE(ask(&NodeControl::verdicts_save, found));
  EXPECT_NE(on_loop([this] { return node().metrics(); }).volumes[0].checks, nullptr);
  stop();
  start();
  const Result<api::History> out = history(request());
  ASSERT_TRUE(out);
  ASSERT_EQ(out->events_size(), 1);
  EXPECT_EQ(out->events(0).kind(), "repairable");
  api::VerdictsRequest asked;
  asked.set_volume("db1");
  EXPECT_EQ(ask(&NodeControl::verdict_list, asked)->verdicts_size(), 1);
  asked.set_volume("db2");
  EXPECT_EQ(ask(&NodeControl::verdict_list, asked).error().code, ErrorCode::kNotFound);
}

TEST_F(ControlHistory, ShowsMarksAndRollbacks) {
  api::MarkRequest early = mark("early");
  *early.mutable_at() = at_sequence(1);
  ASSERT_TRUE(ask(&NodeControl::mark_add, early));
  api::RollbackRequest back;
  back.set_volume("db1");
  *back.mutable_at() = at_sequence(2);
  ASSERT_TRUE(ask(&NodeControl::rollback, back));
  const Result<api::History> out = history(request());
  ASSERT_TRUE(out);
  ASSERT_EQ(out->events_size(), 3);
  EXPECT_EQ(out->events(0).kind(), "mark");
  EXPECT_EQ(out->events(0).text(), "early");
  EXPECT_EQ(out->events(1).kind(), "mark") << "before the rollback";
  EXPECT_EQ(out->events(1).sequence(), 3u);
  EXPECT_EQ(out->events(2).kind(), "rollback");
  EXPECT_EQ(out->events(2).text(), "to #2");
}

TEST_F(ControlHistory, MarksInTheOrderOfTheirMoments) {
  EXPECT_EQ(marks(), 0);
  const Result<api::Mark> late = ask(&NodeControl::mark_add, mark("late"));
  ASSERT_TRUE(late);
  EXPECT_EQ(late->at().sequence(), 3u) << "now, unless another moment is given";
  EXPECT_EQ(late->locked_until_ns(), 0u);
  api::MarkRequest early = mark("early");
  *early.mutable_at() = at_sequence(1);
  early.set_lock_s(3600);
  const Result<api::Mark> locked = ask(&NodeControl::mark_add, early);
  ASSERT_TRUE(locked);
  EXPECT_EQ(locked->locked_until_ns(), locked->created_ns() + 3'600'000'000'000);
  const Result<api::MarkList> list = ask(&NodeControl::mark_list, mark(""));
  ASSERT_TRUE(list);
  ASSERT_EQ(list->marks_size(), 2);
  EXPECT_EQ(list->marks(0).name(), "early");
  EXPECT_EQ(list->marks(1).name(), "late");
  EXPECT_FALSE(list->marks(0).automatic());
}

TEST_F(ControlHistory, MarksThatAreRefused) {
  ASSERT_TRUE(ask(&NodeControl::mark_add, mark("m")));
  EXPECT_EQ(ask(&NodeControl::mark_add, mark("m")).error().code, ErrorCode::kAlreadyExists);
  EXPECT_EQ(ask(&NodeControl::mark_add, mark("no/name")).error().code, ErrorCode::kInvalidArgument);
  api::MarkRequest future = mark("future");
  *future.mutable_at() = at_time(UINT64_MAX);
  EXPECT_EQ(ask(&NodeControl::mark_add, future).error().code, ErrorCode::kOutsideWindow);
  api::MarkRequest elsewhere = mark("m");
  elsewhere.set_volume("db2");
  EXPECT_EQ(ask(&NodeControl::mark_add, elsewhere).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(ask(&NodeControl::mark_list, elsewhere).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(ask(&NodeControl::mark_remove, elsewhere).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(marks(), 1);
  create("db2");
  EXPECT_TRUE(ask(&NodeControl::mark_add, elsewhere)) << "names are of a volume";
  EXPECT_EQ(marks(), 1);
}

TEST_F(ControlHistory, ADryRunOfAMarkChangesNothing) {
  api::MarkRequest request = mark("m");
  request.set_dry_run(true);
  EXPECT_EQ(ask(&NodeControl::mark_add, request)->name(), "m");
  EXPECT_EQ(marks(), 0);
  ASSERT_TRUE(ask(&NodeControl::mark_add, mark("m")));
  EXPECT_EQ(ask(&NodeControl::mark_remove, request)->name(), "m");
  EXPECT_EQ(marks(), 1);
  EXPECT_EQ(ask(&NodeControl::mark_remove, mark("m"))->name(), "m");
  EXPECT_EQ(marks(), 0);
  EXPECT_EQ(ask(&NodeControl::mark_remove, mark("m")).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace mariner::node

#include "server/node/cluster_past.h"

#include <gmock/gmock.h>

#include "tests/server/node/cluster_node_fixture.h"
#include "tests/server/node/initiator_session.h"

namespace mariner::node {
namespace {

using ::testing::HasSubstr;

// A volume whose log is on another node, with three writes.
class ClusterPastTest : public testing::ClusterNodeFixture {
 protected:
  ClusterPastTest()
      : ClusterNodeFixture({{"a", {Role::kTarget, Role::kStorage}}, {"c", {Role::kLogger}}}) {}
  void SetUp() override {
    ClusterNodeFixture::SetUp();
    if (IsSkipped()) return;
    configure_volume(0, "c", {"a"});
    start(1);
    start(0);
    ASSERT_TRUE(comes_to_serve());
    for (const char byte : {'1', '2', '3'}) write(0, byte);
    newest_ = history({})->to().sequence();
  }
  Result<api::History> history(api::HistoryRequest request) {
    request.set_name(kVolume);
    return node().ask(&ClusterControl::history, request);
  }
  static api::MomentSpec at(std::uint64_t sequence) {
    api::MomentSpec spec;
    spec.set_sequence(sequence);
    return spec;
  }
  Result<api::Mark> mark(const std::string& name, const api::MomentSpec& moment = {}) {
    api::MarkRequest request;
    request.set_volume(kVolume);
    request.set_name(name);
    *request.mutable_at() = moment;
    return node().ask(&ClusterControl::mark_add, request);
  }
  api::MarkList marks() {
    api::MarkRequest request;
    request.set_volume(kVolume);
    return *node().ask(&ClusterControl::mark_list, request);
  }
  Result<api::RollbackAnswer> rollback(const api::MomentSpec& to, bool undo = false,
                                       bool dry_run = false, bool force = true) {
    api::RollbackRequest request;
    request.set_volume(kVolume);
    if (undo) {
      request.set_undo(true);
    } else {
      *request.mutable_at() = to;
    }
    request.set_dry_run(dry_run);
    request.set_force(force);
    return node().ask(&ClusterControl::rollback, request);
  }

  std::uint64_t newest_ = 0;
};

TEST_F(ClusterPastTest, TheHistoryComesFromTheLogger) {
  api::HistoryRequest last;
  *last.mutable_from() = at(newest_ - 2);
  last.set_max_writes(10);
  const Result<api::History> part = history(last);
  ASSERT_TRUE(part) << to_string(part.error());
  EXPECT_EQ(part->writes(), 2u);
  EXPECT_EQ(part->distinct_bytes(), kBlockBytes);
  ASSERT_EQ(part->write_list_size(), 2);
  EXPECT_EQ(part->write_list(1).sequence(), newest_);

  api::HistoryRequest none;
  none.set_name("db2");
  EXPECT_EQ(node().ask(&ClusterControl::history, none).error().code, ErrorCode::kNotFound);
  none.set_name(kVolume);
  ASSERT_TRUE(eventually([&] { return node(1).replicas(kVolume).epoch() > 0; }));
  const auto elsewhere = node(1).ask(&ClusterControl::history, none);
  EXPECT_EQ(elsewhere.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(elsewhere.error().message, HasSubstr("ask node a"));
}

TEST_F(ClusterPastTest, MarksStandInTheSharedStore) {
  ASSERT_TRUE(mark("early", at(newest_ - 1)));
  ASSERT_TRUE(mark("now"));
  ASSERT_TRUE(eventually([&] { return marks().marks_size() == 2; }));
  EXPECT_EQ(marks().marks(0).name(), "early");
  EXPECT_EQ(marks().marks(1).at().sequence(), newest_);
  EXPECT_EQ(mark("early").error().code, ErrorCode::kAlreadyExists);
  EXPECT_EQ(mark("no/name").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(mark("later", at(newest_ + 1)).error().code, ErrorCode::kOutsideWindow);
  stop(0);
  start(0);
  ASSERT_TRUE(comes_to_serve());
  EXPECT_EQ(marks().marks_size(), 2);

  api::MarkRequest request;
  request.set_volume(kVolume);
  request.set_name("early");
  request.set_dry_run(true);
  EXPECT_TRUE(node().ask(&ClusterControl::mark_remove, request));
  EXPECT_EQ(marks().marks_size(), 2);
  request.set_dry_run(false);
  EXPECT_TRUE(node().ask(&ClusterControl::mark_remove, request));
  EXPECT_TRUE(eventually([&] { return marks().marks_size() == 1; }));
  EXPECT_EQ(node().ask(&ClusterControl::mark_remove, request).error().code, ErrorCode::kNotFound);
}

TEST_F(ClusterPastTest, WhatChecksFoundStandsInTheSharedStore) {
  api::SaveVerdictsRequest found;
  found.set_volume(kVolume);
  api::Verdict& verdict = *found.add_verdicts();
  verdict.mutable_at()->set_sequence(newest_);
  verdict.set_verdict("clean");
  verdict.set_level(1);
  const auto saved = node().ask(&ClusterControl::verdicts_save, found);
  ASSERT_TRUE(saved) << to_string(saved.error());
  const auto known = [this] {
    api::VerdictsRequest request;
    request.set_volume(kVolume);
    return node().ask(&ClusterControl::verdict_list, request)->verdicts_size();
  };
  ASSERT_TRUE(eventually([&] { return known() == 1; }));
  stop(0);
  start(0);
  ASSERT_TRUE(comes_to_serve());
  EXPECT_EQ(known(), 1);
  ASSERT_EQ(history({})->events_size(), 1);
  EXPECT_EQ(history({})->events(0).kind(), "clean");
}

TEST_F(ClusterPastTest, ARollbackComesWithItsRepairsAndAViewDoesNot) {
  const std::string id = node().hand_over(kVolume, newest_ - 2, 3, 'r');
  ASSERT_FALSE(id.empty());
  api::ExposeRequest view;
  view.set_volume(kVolume);
  *view.mutable_at() = at(newest_ - 2);
  view.set_repairs(id);
  EXPECT_EQ(node().ask(&ClusterControl::view_expose, view).error().code,
            ErrorCode::kInvalidArgument);
  api::RollbackRequest request;
  request.set_volume(kVolume);
  *request.mutable_at() = at(newest_ - 2);
  request.set_force(true);
  request.set_repairs(id);
  const auto back = node().ask(&ClusterControl::rollback, request);
  ASSERT_TRUE(back) << to_string(back.error());
  EXPECT_EQ(back->repaired_blocks(), 1u);
  EXPECT_EQ(read(0), '1');
  EXPECT_EQ(read(3), 'r');
  ASSERT_TRUE(rollback({}, true));
  EXPECT_EQ(read(0), '3');
  EXPECT_EQ(read(3), '\0');
}

TEST_F(ClusterPastTest, RollsBackAndForth) {
  EXPECT_EQ(rollback({}, true).error().code, ErrorCode::kNotFound) << "nothing to undo";
  const Result<api::RollbackAnswer> dry = rollback(at(newest_ - 2), false, true);
  ASSERT_TRUE(dry) << to_string(dry.error());
  EXPECT_EQ(dry->undone_writes(), 2u);
  EXPECT_EQ(read(0), '3');

  const Result<api::RollbackAnswer> back = rollback(at(newest_ - 2));
  ASSERT_TRUE(back) << to_string(back.error());
  EXPECT_EQ(back->sequence(), newest_ + 1);
  EXPECT_EQ(back->changed_bytes(), kBlockBytes);
  EXPECT_EQ(read(0), '1') << "as soon as it is answered";
  ASSERT_TRUE(eventually([&] { return marks().marks_size() == 1; }));
  EXPECT_EQ(marks().marks(0).name(), back->before_mark());
  EXPECT_EQ(marks().marks(0).at().sequence(), newest_);

  write(1, 'x');
  EXPECT_EQ(read(0), '1');
  ASSERT_TRUE(rollback({}, true));
  EXPECT_EQ(read(0), '3');
  EXPECT_EQ(read(1), '\0');
  // The image comes to it, too.
  stop(0);
  start(0);
  ASSERT_TRUE(comes_to_serve());
  EXPECT_EQ(read(0), '3');
}

TEST_F(ClusterPastTest, IsNotRolledBackUnderHosts) {
  testing::InitiatorSession session(node().ask(&ClusterControl::status)->portals(0), kIqn);
  session.use();
  const auto refused = rollback(at(newest_ - 1), false, false, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kBusy);
  EXPECT_EQ(rollback(at(newest_ - 1), false, true, false)->sessions_size(), 1);
}

TEST_F(ClusterPastTest, ViewsAreExposedForAWhile) {
  api::ExposeRequest request;
  request.set_volume(kVolume);
  *request.mutable_at() = at(newest_ - 1);
  request.set_writable(true);
  EXPECT_EQ(node().ask(&ClusterControl::view_expose, request).error().code,
            ErrorCode::kInvalidArgument);
  request.set_writable(false);
  request.set_dry_run(true);
  EXPECT_TRUE(node().ask(&ClusterControl::view_expose, request));
  EXPECT_EQ(node().ask(&ClusterControl::view_list)->views_size(), 0);
  request.set_dry_run(false);
  request.set_ttl_s(1);
  request.set_keep(true);
  const Result<api::View> view = node().ask(&ClusterControl::view_expose, request);
  ASSERT_TRUE(view) << to_string(view.error());
  EXPECT_TRUE(view->keep()) << "until then";
  EXPECT_EQ(view->name(), kVolume + ("-" + std::to_string(newest_ - 1)));
  EXPECT_EQ(view->volume(), kVolume);
  EXPECT_EQ(testing::BlockClient::byte_of(node().client(0).read(view->iqn(), 0)), '2');
  EXPECT_TRUE(
      eventually([&] { return node().ask(&ClusterControl::view_list)->views_size() == 0; }));
}

TEST_F(ClusterPastTest, IsReadInBatchesFromLoggerAndImage) {
  api::OpenPastRequest request;
  request.set_volume(kVolume);
  const auto opened = [&](std::size_t member) {
    return node(member).ask_past<api::Past>(
        [request](admin::PastSource& past, auto done) { past.open(request, std::move(done)); });
  };
  EXPECT_EQ(opened(1).error().code, ErrorCode::kUnavailable) << "a logger serves nothing";
  const Result<api::Past> past = opened(0);
  ASSERT_TRUE(past) << to_string(past.error());
  EXPECT_EQ(past->newest().sequence(), newest_);
  const auto blocks = node().ask_past<admin::PastSource::Blocks>(
      [id = past->id(), newest = newest_](admin::PastSource& source, auto done) {
        source.blocks(id,
                      {{{0}, {newest - 2}}, {{0}, {newest}}, {{1}, {newest}}, {{0}, {newest - 1}}},
                      std::move(done));
      });
  ASSERT_TRUE(blocks) << to_string(blocks.error());
  std::string text;
  for (const PayloadSlice& each : blocks->slices) {
    for (std::size_t i = 0; i < each.length; i += kBlockBytes) {
      text += static_cast<char>(each.bytes()[i]);
    }
  }
  EXPECT_EQ(text, std::string("13\0"
                              "2",
                              4));
  const auto versions = node().ask_past<admin::VersionsPart>(
      [id = past->id(), newest = newest_](admin::PastSource& source, auto done) {
        source.versions(id, {{newest}, {{{0}, {newest - 2}}, {{1}, {0}}}}, std::move(done));
      });
  ASSERT_TRUE(versions) << to_string(versions.error());
  ASSERT_EQ(versions->list.size(), 2u);
  EXPECT_EQ(versions->list[1].sequence.value, newest_);
  EXPECT_EQ(versions->list[1].time.ns, past->newest().time_ns());
}

}  // namespace
}  // namespace mariner::node

#include "server/client/group_moments.h"

#include <gmock/gmock.h>

#include "tests/server/client/daemon.h"

namespace mariner::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(GroupOf, ANameWithThePrefix) {
  EXPECT_EQ(group_of("group:g1"), "g1");
  EXPECT_EQ(group_of("g1"), std::nullopt);
  EXPECT_EQ(group_of("group"), std::nullopt);
}

class GroupMomentsTest : public DaemonTest {
 protected:
  void SetUp() override {
    FakeGroups& groups = control.of_groups;
    groups.mark.set_name("pre");
    groups.mark.set_group("g1");
    *groups.mark.mutable_at() = moment(0, 1795180925'000000001);
    groups.mark.set_locked_until_ns(kNow.ns + 1);
    auto& part = *groups.mark.add_parts();
    part.set_volume("db1-data");
    *part.mutable_at() = moment(4711, 1795180925'000000000);
    *groups.marks.add_marks() = groups.mark;
    auto& plan = groups.rollback_answer;
    plan.set_group("g1");
    *plan.mutable_target() = moment(0, 1795180925'000000001);
    plan.set_before_mark("before-rollback-1");
    auto& member = *plan.add_members();
    member.set_volume("db1-data");
    *member.mutable_target() = moment(4711, 1795180925'000000000);
    member.set_changed_bytes(3u << 20);
    member.set_undone_writes(289);
    auto& session = *member.add_sessions();
    session.set_id(7);
    session.set_initiator("iqn.1993-08.org.debian:01:abc");
    session.set_address("192.0.2.9:41000");
    groups.view.set_name("g1-1");
    groups.view.set_group("g1");
    auto& view = *groups.view.add_views();
    view.set_volume("db1-data");
    view.set_iqn("iqn.2026-11.org.mariner:view:g1-1-db1-data");
    *view.mutable_at() = moment(4711, 1795180925'000000000);
  }
  using FakeGroups = admin::FakeGroups;
};

TEST_F(GroupMomentsTest, Marks) {
  run({"mark", "add", "group:g1@-10m", "pre", "--lock", "30d"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(control.asked,
              ElementsAre("group_mark_add group: \"g1\" name: \"pre\" lock_s: 2592000 at { "
                          "time_ns: 1795180925123456789 }"));
  EXPECT_THAT(out, HasSubstr("pre of the group g1 marks 2026-11-20T14:22:05.000000001+01:00  "
                             "(2026-11-20T13:22:05.000000001Z): db1-data #4711\n"));
  run({"mark", "list", "group:g1"});
  EXPECT_THAT(control.asked, ElementsAre("group_mark_list group: \"g1\""));
  EXPECT_THAT(out, HasSubstr("an administrator"));
  EXPECT_THAT(out, HasSubstr("db1-data #4711"));
}

TEST_F(GroupMomentsTest, RemovingALockedMarkAsksForTheGroup) {
  run({"mark", "remove", "group:g1", "pre"});
  EXPECT_EQ(code, 5);
  EXPECT_THAT(out, HasSubstr("pre is locked until"));
  run({"mark", "remove", "group:g1", "pre", "--yes"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(control.asked, ElementsAre("group_mark_list group: \"g1\"",
                                         "group_mark_remove group: \"g1\" name: \"pre\""));
}

TEST_F(GroupMomentsTest, AView) {
  run({"view", "expose", "group:g1@mark:pre", "--writable", "--ttl", "2h", "--keep"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(control.asked, ElementsAre("group_expose group: \"g1\" at { mark: \"pre\" } "
                                         "writable: true ttl_s: 7200 keep: true"));
  EXPECT_THAT(out, HasSubstr("target iqn.2026-11.org.mariner:view:g1-1-db1-data"));
  EXPECT_THAT(out, HasSubstr("mariner view unexpose g1-1 ends all of them"));
  run({"view", "expose", "group:g1", "--consistent"});
  EXPECT_EQ(code, 2);
  EXPECT_TRUE(control.asked.empty());
}

TEST_F(GroupMomentsTest, ARollbackIsThePlanThatWasShown) {
  run({"rollback", "group:g1@mark:pre", "--yes", "--force"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(
      control.asked,
      ElementsAre("group_rollback group: \"g1\" at { mark: \"pre\" } dry_run: true force: true",
                  "group_rollback group: \"g1\" at { time_ns: 1795180925000000001 } force: true"));
  EXPECT_THAT(out,
              HasSubstr("This rolls back the group g1, all at one point, to 2026-11-20T14:22"));
  EXPECT_THAT(out, HasSubstr("db1-data to #4711"));
  EXPECT_THAT(out, HasSubstr(": 3 MiB, 289 writes after that moment\n"));
  EXPECT_THAT(out, HasSubstr("Affected: iqn.1993-08.org.debian:01:abc"));
  EXPECT_THAT(out, HasSubstr("mariner rollback undo group:g1 returns to it"));
}

TEST_F(GroupMomentsTest, APersonTypesTheGroupsName) {
  terminal = true;
  typed = "g1\n";
  run({"rollback", "group:g1@-10m"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_EQ(control.asked.size(), 2u);
  typed = "group:g2\n";
  run({"rollback", "group:g1@-10m"});
  EXPECT_EQ(code, 5);
  EXPECT_EQ(control.asked.size(), 1u);
}

TEST_F(GroupMomentsTest, UndoAndStatus) {
  run({"rollback", "undo", "group:g1", "--yes"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(control.asked, ElementsAre("group_rollback group: \"g1\" dry_run: true undo: true",
                                         "group_rollback group: \"g1\" undo: true"));
  auto& member = *control.of_groups.group.add_members();
  member.set_volume("db1-data");
  control.of_groups.group.set_rolling_back(true);
  run({"rollback", "status", "group:g1"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(out, HasSubstr("db1-data: no rollback is being restored\n"));
  EXPECT_THAT(out, HasSubstr("hosts wait until all volumes have it on record"));
}

TEST_F(GroupMomentsTest, ErrorsHaveTheirExitCode) {
  control.error = Error{ErrorCode::kOutsideWindow, "is outside the history of db1-log"};
  run({"view", "expose", "group:g1@-10m"});
  EXPECT_EQ(code, 3);
  EXPECT_THAT(err, HasSubstr("db1-log"));
}

}  // namespace
}  // namespace mariner::client

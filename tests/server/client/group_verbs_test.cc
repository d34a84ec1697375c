#include <gmock/gmock.h>

#include "tests/server/client/daemon.h"

namespace mariner::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class GroupVerbs : public DaemonTest {
 protected:
  void SetUp() override {
    auto& group = control.of_groups.group;
    group.set_name("g1");
    group.set_created_ns(kNow.ns);
    group.set_oldest_ns(kNow.ns);
    group.set_marks(3);
    for (const auto* name : {"db1-data", "db1-log"}) {
      auto& member = *group.add_members();
      member.set_volume(name);
      member.set_joined_ns(kNow.ns);
    }
    *group.mutable_members(0)->mutable_oldest() = moment(7, 1795180925'000000001);
    *control.of_groups.groups.add_groups() = group;
  }
};

TEST_F(GroupVerbs, Create) {
  run({"group", "create", "g1", "db1-data", "db1-log"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(control.asked,
              ElementsAre("group_create name: \"g1\" volumes: \"db1-data\" volumes: \"db1-log\""));
  EXPECT_EQ(out,
            "g1 has: db1-data, db1-log\n"
            "Its moments begin at 2026-11-20T14:32:05.123456789+01:00\n");
  run({"group", "create", "g1"});
  EXPECT_EQ(code, 2) << "of no volumes";
}

TEST_F(GroupVerbs, AddAndRemove) {
  run({"group", "add", "g1", "db1-tmp", "--dry-run"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(control.asked,
              ElementsAre("group_add name: \"g1\" volumes: \"db1-tmp\" dry_run: true"));
  EXPECT_THAT(out, HasSubstr("g1 would have: "));
  run({"group", "remove", "g1", "db1-log"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(control.asked, ElementsAre("group_remove name: \"g1\" volumes: \"db1-log\""));
}

TEST_F(GroupVerbs, ListAndShow) {
  run({"group", "list"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(out, HasSubstr("g1     db1-data, db1-log  2026-11-20T14:32:05.123456789+01:00"));
  run({"group", "show", "g1"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(control.asked, ElementsAre("group_show name: \"g1\""));
  EXPECT_THAT(out, HasSubstr("2026-11-20T14:22:05.000000001+01:00"));
  EXPECT_THAT(out, HasSubstr("gone")) << "a member without a history";
  run({"group", "show", "g1", "--json"});
  EXPECT_THAT(out, HasSubstr("\"volume\":\"db1-log\""));
  control.of_groups.groups.clear_groups();
  run({"group", "list"});
  EXPECT_EQ(out, "There are no groups.\n");
}

TEST_F(GroupVerbs, DeletingAsksForItsName) {
  run({"group", "delete", "g1"});
  EXPECT_EQ(code, 5);
  EXPECT_THAT(control.asked, ElementsAre("group_show name: \"g1\""));
  EXPECT_THAT(out, HasSubstr("with its 3 marks. Its volumes stay, with their history: db1-data"));
  terminal = true;
  typed = "g1\n";
  run({"group", "delete", "g1"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(control.asked, ElementsAre("group_show name: \"g1\"", "group_erase name: \"g1\""));
}

}  // namespace
}  // namespace mariner::client

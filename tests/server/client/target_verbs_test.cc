// mariner target: server/client/target_verbs.cc.
#include <gmock/gmock.h>

#include "tests/server/client/daemon.h"

namespace mariner::client {
namespace {

using ::testing::HasSubstr;

class TargetVerbs : public DaemonTest {
 protected:
  TargetVerbs() {
    control.access.set_volume("db1");
    control.access.add_acl("iqn.2026-11.org.example:host1");
  }
};

TEST_F(TargetVerbs, AclList) {
  run({"target", "acl", "list", "db1"});
  EXPECT_EQ(code, 0);
  EXPECT_EQ(control.asked.back(), "access_show volume: \"db1\"");
  EXPECT_THAT(out, HasSubstr("iqn.2026-11.org.example:host1"));
  run({"target", "acl", "list", "db1", "--json"});
  EXPECT_THAT(out, HasSubstr("\"acl\":[\"iqn.2026-11.org.example:host1\"]"));
}

TEST_F(TargetVerbs, AclAddAndRemove) {
  run({"target", "acl", "add", "db1", "iqn.2026-11.org.example:host1"});
  EXPECT_EQ(code, 0);
  EXPECT_EQ(control.asked.back(),
            "acl_add volume: \"db1\" initiator: \"iqn.2026-11.org.example:host1\"");
  run({"target", "acl", "remove", "db1", "iqn.2026-11.org.example:host1", "--force"});
  EXPECT_EQ(control.asked.back(),
            "acl_remove volume: \"db1\" initiator: \"iqn.2026-11.org.example:host1\" force: true");
  run({"target", "acl", "remove", "db1", "any", "--dry-run", "--yes"});
  EXPECT_EQ(control.asked.back(),
            "acl_remove volume: \"db1\" initiator: \"any\" dry_run: true force: true");
  EXPECT_THAT(err + out, HasSubstr("Dry run"));
}

TEST_F(TargetVerbs, SessionsThatWouldBeCutNeedForce) {
  control.error = Error{ErrorCode::kBusy, "2 sessions use db1 that may not any more then"};
  run({"target", "acl", "remove", "db1", "iqn.2026-11.org.example:host1"});
  EXPECT_EQ(code, 4);
  EXPECT_THAT(err, HasSubstr("2 sessions"));
  EXPECT_THAT(err, HasSubstr("--force"));
}

TEST_F(TargetVerbs, WhoIsAskedToLeaveIsTold) {
  auto* session = control.access.add_sessions();
  session->set_id(7);
  session->set_initiator("iqn.2026-11.org.example:host2");
  run({"target", "acl", "add", "db1", "iqn.2026-11.org.example:host1", "--yes"});
  EXPECT_THAT(err + out, HasSubstr("iqn.2026-11.org.example:host2"));
  EXPECT_THAT(err + out, HasSubstr("1 sessions are asked to log out"));
}

TEST_F(TargetVerbs, Auth) {
  run({"target", "auth", "set", "db1", "host1", "host2"});
  EXPECT_EQ(code, 0);
  EXPECT_EQ(control.asked.back(),
            "auth_set volume: \"db1\" accounts: \"host1\" accounts: \"host2\"");
  run({"target", "auth", "clear", "db1"});
  EXPECT_EQ(control.asked.back(), "auth_set volume: \"db1\"");
  run({"target", "auth", "set", "db1"});
  EXPECT_EQ(code, 2);
  run({"target", "auth", "show", "db1"});
  EXPECT_EQ(control.asked.back(), "access_show volume: \"db1\"");
}

TEST_F(TargetVerbs, Redirect) {
  run({"target", "redirect", "db1", "192.0.2.1:3260", "--permanent"});
  EXPECT_EQ(code, 0);
  EXPECT_EQ(control.asked.back(),
            "redirect_set volume: \"db1\" address: \"192.0.2.1:3260\" permanent: true");
  run({"target", "redirect", "db1", "--off"});
  EXPECT_EQ(control.asked.back(), "redirect_set volume: \"db1\"");
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"target", "redirect", "db1"},
        {"target", "redirect", "db1", "192.0.2.1:3260", "--off"},
        {"target", "redirect", "db1", "--off", "--permanent"}}) {
    run(wrong);
    EXPECT_EQ(code, 2);
  }
}

}  // namespace
}  // namespace mariner::client

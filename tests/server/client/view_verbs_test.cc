#include <gmock/gmock.h>

#include "tests/server/client/daemon.h"

namespace mariner::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class ViewVerbs : public DaemonTest {
 protected:
  void SetUp() override {
    auto& view = control.view_answer;
    view.set_name("db1-v1");
    view.set_volume("db1");
    view.set_size_bytes(3ull << 30);
    view.set_iqn("iqn.2026-11.org.mariner:db1-v1");
    *view.mutable_at() = moment(7, 1795000000'000000000);
    *control.views.add_views() = view;
  }
};

TEST_F(ViewVerbs, ExposeTellsTheHostWhatItMustKnow) {
  run({"view", "expose", "db1@-10m", "--ttl", "2h"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(
      control.asked,
      ElementsAre("view_expose volume: \"db1\" at { time_ns: 1795180925123456789 } ttl_s: 7200"));
  EXPECT_THAT(
      out,
      HasSubstr(
          "moment   #7  2026-11-18T12:06:40.000000000+01:00  (2026-11-18T11:06:40.000000000Z)\n"));
  EXPECT_THAT(out,
              HasSubstr("iscsiadm -m node -T iqn.2026-11.org.mariner:db1-v1 -p ADDRESS --login\n"));
  EXPECT_THAT(out, HasSubstr("mount -o ro,norecovery,nouuid DEVICE"));
  EXPECT_THAT(out, HasSubstr("mount -o ro,noload DEVICE"));
  EXPECT_THAT(out, HasSubstr("Windows"));
}

TEST_F(ViewVerbs, AWritableOneMayGetNewIdentities) {
  control.view_answer.set_writable(true);
  run({"view", "expose", "db1@mark:pre", "--writable", "--name", "test"});
  EXPECT_THAT(
      control.asked,
      ElementsAre(
          "view_expose volume: \"db1\" at { mark: \"pre\" } writable: true name: \"test\""));
  EXPECT_THAT(out, HasSubstr("tune2fs -U random DEVICE"));
  EXPECT_THAT(out, HasSubstr("mount -o nouuid DEVICE"));
}

TEST_F(ViewVerbs, AWritableOneIsBoundedAndMayBeKept) {
  control.view_answer.set_writable(true);
  control.view_answer.set_overlay_bytes_max(10ull << 30);
  control.view_answer.set_keep(true);
  run({"view", "expose", "db1", "--writable", "--overlay-max", "10G", "--keep"});
  EXPECT_THAT(control.asked,
              ElementsAre("view_expose volume: \"db1\" at { now: true } writable: true "
                          "overlay_bytes_max: 10737418240 keep: true"));
  EXPECT_THAT(out, HasSubstr("holds    at most 10 GiB of what is written\n"));
  EXPECT_THAT(out, HasSubstr("kept     also when the log is full\n"));
  *control.views.mutable_views(0) = control.view_answer;
  control.views.mutable_views(0)->set_overlay_bytes(1u << 20);
  run({"view", "list"});
  EXPECT_THAT(out, HasSubstr("writable, kept  never"));
  EXPECT_THAT(out, HasSubstr("    1 MiB   10 GiB  iqn."));
}

TEST_F(ViewVerbs, ABoundIsASizeAndOfAWritableOne) {
  for (const auto& wrong : {std::vector<std::string>{"--overlay-max", "10G"},
                            {"--writable", "--overlay-max", "much"},
                            {"--writable", "--overlay-max", "0"}}) {
    std::vector<std::string> words{"view", "expose", "db1"};
    words.insert(words.end(), wrong.begin(), wrong.end());
    run(words);
    EXPECT_NE(code, 0);
    EXPECT_TRUE(control.asked.empty()) << wrong.back();
  }
}

TEST_F(ViewVerbs, ADryRunGivesNoAdvice) {
  run({"view", "expose", "db1", "--dry-run"});
  EXPECT_THAT(control.asked,
              ElementsAre("view_expose volume: \"db1\" at { now: true } dry_run: true"));
  EXPECT_THAT(out, Not(HasSubstr("iscsiadm")));
}

TEST_F(ViewVerbs, List) {
  run({"view", "list"});
  EXPECT_THAT(out, HasSubstr("VIEW    VOLUME   SIZE  SEQUENCE  LOCAL TIME"));
  EXPECT_THAT(out,
              HasSubstr("db1-v1  db1     3 GiB         7  2026-11-18T12:06:40.000000000+01:00  "
                        "2026-11-18T11:06:40.000000000Z  read-only  never"));
  run({"--json", "view", "list"});
  EXPECT_THAT(out, HasSubstr("\"size_bytes\":\"3221225472\""));
}

TEST_F(ViewVerbs, UnexposeAsksIfSomethingWasWritten) {
  control.views.mutable_views(0)->set_overlay_bytes(4096);
  run({"view", "unexpose", "db1-v1"});
  EXPECT_EQ(code, 0) << "of a read-only one it is what mends its file system";
  control.views.mutable_views(0)->set_writable(true);
  run({"view", "unexpose", "db1-v1", "--force"});
  EXPECT_EQ(code, 5) << "--force is about sessions";
  EXPECT_THAT(control.asked.back(), HasSubstr("force: true dry_run: true"));
  EXPECT_THAT(out, HasSubstr("This takes db1-v1 away, with 4 KiB of what was written to it.\n"));
  run({"view", "unexpose", "db1-v1", "--dry-run"});
  EXPECT_EQ(code, 0);
  run({"view", "unexpose", "db1-v1", "--yes"});
  EXPECT_EQ(code, 0);
  EXPECT_EQ(control.asked.back(), "view_unexpose name: \"db1-v1\"") << "nobody uses it";
}

TEST_F(ViewVerbs, UnexposingAGroupsViewIsAboutAllOfIt) {
  for (const char* volume : {"db1", "log1"}) {
    auto& view = *control.views.add_views();
    view.set_name(std::string("lab-") + volume);
    view.set_volume(volume);
    view.set_group_view("lab");
    view.set_writable(true);
    view.set_overlay_bytes(8192);
  }
  auto& session = *control.sessions.add_sessions();
  session.set_view("lab-log1");
  session.set_volume("log1");
  session.set_initiator("iqn.host");
  run({"view", "unexpose", "lab", "--force"});
  EXPECT_EQ(code, 5);
  EXPECT_THAT(control.asked.back(), HasSubstr("force: true dry_run: true"));
  EXPECT_THAT(out, HasSubstr("This takes lab away from whoever uses it, with 16 KiB of what was "
                             "written to it.\nAffected: iqn.host "));
  terminal = true;
  typed = "lab\n";
  run({"view", "unexpose", "lab"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_EQ(control.asked.back(), "view_unexpose name: \"lab\" force: true");
}

TEST_F(ViewVerbs, UnexposeAsksOnlyIfSomebodyUsesIt) {
  run({"view", "unexpose", "db1-v1"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_EQ(control.asked.back(), "view_unexpose name: \"db1-v1\"");
  auto& session = *control.sessions.add_sessions();
  session.set_view("db1-v1");
  session.set_volume("db1");
  run({"view", "unexpose", "db1-v1"});
  EXPECT_EQ(code, 5);
  EXPECT_THAT(control.asked.back(), HasSubstr("force: true dry_run: true"));
  terminal = true;
  typed = "db1\n";
  run({"view", "unexpose", "db1-v1"});
  EXPECT_EQ(code, 0);
  EXPECT_EQ(control.asked.back(), "view_unexpose name: \"db1-v1\" force: true");
}

}  // namespace
}  // namespace mariner::client

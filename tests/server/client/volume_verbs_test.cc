#include <gmock/gmock.h>

#include "tests/server/client/daemon.h"

namespace mariner::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class VolumeVerbs : public DaemonTest {
 protected:
  void SetUp() override {
    auto& volume = *control.volumes.add_volumes();
    volume.set_name("db1");
    volume.set_state("ready");
    volume.set_size_bytes(100ull << 30);
    volume.set_window_s(3 * 86400);
    volume.set_iqn("iqn.2026-11.org.mariner:db1");
    *volume.mutable_oldest() = moment(1, 1795000000'000000000);
    *volume.mutable_newest() = moment(4711, kNow.ns);
    volume.set_sessions(1);
    volume.set_views(2);
    volume.set_marks(3);
    auto& session = *control.sessions.add_sessions();
    session.set_id(7);
    session.set_volume("db1");
    session.set_initiator("iqn.host\x1b[31m");
    session.set_address("192.0.2.9:41000");
    auto& other = *control.sessions.add_sessions();
    other.set_volume("db2");
    other.set_initiator("iqn.other");
  }
};

TEST_F(VolumeVerbs, Create) {
  run({"volume", "create", "db2", "--size", "100G", "--window", "3d", "--block-size", "4096"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(control.asked, ElementsAre("volume_create name: \"db2\" size_bytes: 107374182400 "
                                         "block_size: 4096 window_s: 259200"));
  EXPECT_THAT(out, HasSubstr("db2 created: 100 GiB"));
  run({"volume", "create", "db3", "--size", "1G", "--sanitize"});
  EXPECT_THAT(control.asked, ElementsAre("volume_create name: \"db3\" size_bytes: 1073741824 "
                                         "block_size: 512 sanitize: true"));
  run({"volume", "create", "db4", "--size", "1G", "--removable"});
  EXPECT_THAT(control.asked, ElementsAre("volume_create name: \"db4\" size_bytes: 1073741824 "
                                         "block_size: 512 removable: true"));
  run({"volume", "create", "db2", "--size", "1G", "--dry-run"});
  EXPECT_THAT(
      control.asked,
      ElementsAre(
          "volume_create name: \"db2\" size_bytes: 1073741824 block_size: 512 dry_run: true"));
  EXPECT_THAT(out, HasSubstr("Dry run: nothing was changed."));
}

TEST_F(VolumeVerbs, WrongWordsNeverReachTheDaemon) {
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"volume", "create", "a"},
           {"volume", "create", "a", "--size", "1X"},
           {"volume", "create", "a", "--size", "1G", "--window", "3"},
           {"volume", "create", "a", "--size", "1G", "--window", "5ms"},
           {"volume", "create", "a", "--size", "1G", "--block-size", "1024"},
           {"volume", "show"},
           {"volume", "rename", "a"},
           {"volume"},
           {}}) {
    run(words);
    EXPECT_EQ(code, 2);
    EXPECT_TRUE(control.asked.empty());
  }
}

TEST_F(VolumeVerbs, List) {
  run({"volume", "list"});
  EXPECT_EQ(out,
            "NAME     SIZE  STATE  WINDOW  OLDEST               NEWEST               HISTORY  "
            "SESSIONS  VIEWS  MARKS\n"
            "db1   100 GiB  ready  3d      2026-11-18 12:06:40  2026-11-20 14:32:05      0 B       "
            "  1      2      3\n");
  control.volumes.Clear();
  run({"volume", "list"});
  EXPECT_EQ(out, "There are no volumes.\n");
}

TEST_F(VolumeVerbs, Show) {
  run({"volume", "show", "db1"});
  EXPECT_THAT(out, HasSubstr("newest      #4711  2026-11-20T14:32:05.123456789+01:00  "
                             "(2026-11-20T13:32:05.123456789Z)\n"));
  EXPECT_THAT(out, HasSubstr("target      iqn.2026-11.org.mariner:db1\n"));
  run({"volume", "show", "nothing"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(err, HasSubstr("there is no volume \"nothing\""));
  run({"volume", "show", "db1", "--json"});
  EXPECT_THAT(out, testing::StartsWith("{\"schema\":1,\"name\":\"db1\","));
}

TEST_F(VolumeVerbs, ResizeSaysWhatItWas) {
  run({"volume", "resize", "db1", "200G"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(control.asked, ElementsAre("volume_show name: \"db1\"",
                                         "volume_resize name: \"db1\" size_bytes: 214748364800"));
  EXPECT_EQ(out, "db1 grew: 200 GiB, was 100 GiB\n");
  run({"volume", "resize", "db1", "200G", "--dry-run"});
  EXPECT_EQ(control.asked.back(),
            "volume_resize name: \"db1\" size_bytes: 214748364800 dry_run: true");
  EXPECT_THAT(out, HasSubstr("db1 would grow: 200 GiB, was 100 GiB\n"));
  EXPECT_THAT(out, HasSubstr("Dry run: nothing was changed."));
  run({"volume", "resize", "db1", "100G"});
  EXPECT_EQ(code, 0);
  EXPECT_EQ(out, "db1 has 100 GiB already; nothing changes\n");
  run({"volume", "resize", "db1", "200G", "--json"});
  EXPECT_THAT(out, HasSubstr("\"size_bytes\":\"214748364800\""));
  run({"volume", "resize", "db1"});
  EXPECT_EQ(code, 2);
  run({"volume", "resize", "db1", "much"});
  EXPECT_EQ(code, 2);
}

TEST_F(VolumeVerbs, DeleteSaysWhatAndToWhomAndAsks) {
  run({"volume", "delete", "db1"});
  EXPECT_EQ(code, 5);
  EXPECT_THAT(out, HasSubstr("This deletes db1 (100 GiB): its contents, its history since "
                             "2026-11-18 12:06:40 and 3 marks.\n"));
  EXPECT_THAT(out, HasSubstr("Affected: iqn.host?[31m from 192.0.2.9:41000 (session 7)\n"))
      << "no escape reaches the terminal";
  EXPECT_THAT(out, testing::Not(HasSubstr("iqn.other")));
  EXPECT_THAT(control.asked,
              ElementsAre("volume_show name: \"db1\"",
                          "volume_delete name: \"db1\" dry_run: true force: true", "session_list"));
  terminal = true;
  typed = "db1\n";
  run({"volume", "delete", "db1", "--force"});
  EXPECT_EQ(code, 0);
  EXPECT_EQ(control.asked.back(), "volume_delete name: \"db1\" force: true");
}

TEST_F(VolumeVerbs, DeleteDryRunNeedsNoConfirmation) {
  run({"volume", "delete", "db1", "--dry-run"});
  EXPECT_EQ(code, 0);
  EXPECT_EQ(control.asked.back(), "volume_delete name: \"db1\" dry_run: true");
}

TEST_F(VolumeVerbs, ImportShowsItsProgress) {
  control.import_progress = {{1u << 20, 4u << 20}};
  run({"volume", "import", "db3", "disk.raw", "--json"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_EQ(out.substr(0, out.find('\n')),
            "{\"schema\":1,\"done_bytes\":\"1048576\",\"total_bytes\":\"4194304\"}");
  EXPECT_THAT(control.asked, ElementsAre(HasSubstr("volume_import name: \"db3\" path: \"/")));
  EXPECT_THAT(control.asked, ElementsAre(HasSubstr("/disk.raw\"")));
  terminal = true;
  run({"volume", "import", "db3", "/disk.raw"});
  EXPECT_THAT(out, HasSubstr("\rimporting db3 ███████░"));
  EXPECT_THAT(out, HasSubstr(" 25 %  1 MiB of 4 MiB"));
}

TEST_F(VolumeVerbs, AnImportThatFailsInTheMiddleFails) {
  control.import_progress = {{1, 2}};
  control.error = Error{ErrorCode::kNoSpace, "the disk is full"};
  run({"volume", "import", "db3", "/disk.raw"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(err, HasSubstr("the disk is full"));
}

TEST_F(VolumeVerbs, CloneSaysOfWhichMoment) {
  control.import_progress = {{1u << 20, 4u << 20}};
  auto& answer = control.clone_answer;
  answer.set_source("db1");
  *answer.mutable_at() = moment(4711, kNow.ns);
  answer.mutable_volume()->set_name("db2");
  answer.mutable_volume()->set_size_bytes(100ull << 30);
  terminal = true;
  run({"volume", "clone", "db1@-10m", "db2", "--window", "1d", "--removable"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(control.asked,
              ElementsAre("volume_clone volume: \"db1\" at { time_ns: 1795180925123456789 } "
                          "name: \"db2\" window_s: 86400 removable: true"));
  EXPECT_THAT(out, HasSubstr("\rcloning db1 ███████░"));
  EXPECT_THAT(out, HasSubstr("db1 as of #4711  2026-11-20T14:32:05.123456789+01:00  "
                             "(2026-11-20T13:32:05.123456789Z)\n"));
  EXPECT_THAT(out, HasSubstr("db2 cloned: 100 GiB"));
  terminal = false;
  control.import_progress.clear();
  run({"volume", "clone", "db1", "db2", "--dry-run"});
  EXPECT_THAT(
      control.asked,
      ElementsAre("volume_clone volume: \"db1\" at { now: true } name: \"db2\" dry_run: true"));
  EXPECT_THAT(out, HasSubstr("db2 would be cloned: 100 GiB"));
  EXPECT_THAT(out, HasSubstr("Dry run: nothing was changed."));
  run({"volume", "clone", "db1", "db2", "--json"});
  EXPECT_THAT(out, testing::StartsWith("{\"schema\":1,\"source\":\"db1\","));
  control.error = Error{ErrorCode::kOutsideWindow, "too old"};
  run({"volume", "clone", "db1@-10d", "db2"});
  EXPECT_EQ(code, 3);
  run({"volume", "clone", "db1"});
  EXPECT_EQ(code, 2);
  EXPECT_TRUE(control.asked.empty());
}

TEST_F(VolumeVerbs, QuietSaysOnlyWhatWasAskedFor) {
  run({"volume", "create", "a", "--size", "1G", "--quiet"});
  EXPECT_EQ(out, "");
  run({"volume", "list", "--quiet"});
  EXPECT_NE(out, "");
}

}  // namespace
}  // namespace mariner::client

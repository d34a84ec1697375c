#include <gmock/gmock.h>

#include "tests/server/client/daemon.h"

namespace mariner::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RollbackVerbs : public DaemonTest {
 protected:
  void SetUp() override {
    auto& plan = control.rollback_answer;
    plan.set_volume("db1");
    *plan.mutable_target() = moment(4711, 1795180925'000000001);
    *plan.mutable_before() = moment(5000, kNow.ns);
    plan.set_before_mark("before-rollback-1");
    plan.set_changed_bytes(3u << 20);
    plan.set_undone_writes(289);
    auto& session = *plan.add_sessions();
    session.set_id(7);
    session.set_initiator("iqn.1993-08.org.debian:01:abc");
    session.set_address("192.0.2.9:41000");
  }
};

TEST_F(RollbackVerbs, TheDryRunShowsThePlan) {
  run({"rollback", "db1@-10m", "--dry-run"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(
      control.asked,
      ElementsAre("rollback volume: \"db1\" at { time_ns: 1795180925123456789 } dry_run: true"));
  EXPECT_EQ(out,
            "This rolls back db1 to #4711  2026-11-20T14:22:05.000000001+01:00  "
            "(2026-11-20T13:22:05.000000001Z)\n"
            "Newest now: #5000  2026-11-20T14:32:05.123456789+01:00  "
            "(2026-11-20T13:32:05.123456789Z); nothing is lost, "
            "rollback undo returns to it\n"
            "Changes:    3 MiB of the volume, 289 writes after that moment\n"
            "Affected: iqn.1993-08.org.debian:01:abc from 192.0.2.9:41000 (session 7)\n"
            "Dry run: nothing was changed.\n");
}

TEST_F(RollbackVerbs, WhatIsDoneIsThePlanThatWasShown) {
  run({"rollback", "db1@14:22:05.5", "--yes", "--force"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(
      control.asked,
      ElementsAre(
          "rollback volume: \"db1\" at { time_ns: 1795180925500000000 } dry_run: true force: true",
          "rollback volume: \"db1\" at { sequence: 4711 } force: true"));
  EXPECT_THAT(out, HasSubstr("db1 is as of #4711"));
  EXPECT_THAT(out, HasSubstr("marked before-rollback-1; mariner rollback undo db1 returns to it"));
}

TEST_F(RollbackVerbs, EveryFormOfTimeReachesTheDaemon) {
  run({"rollback", "db1@mark:pre-upgrade", "--dry-run"});
  EXPECT_THAT(control.asked,
              ElementsAre("rollback volume: \"db1\" at { mark: \"pre-upgrade\" } dry_run: true"));
  run({"rollback", "db1@#0", "--dry-run"});
  EXPECT_THAT(control.asked,
              ElementsAre("rollback volume: \"db1\" at { sequence: 0 } dry_run: true"));
  run({"rollback", "db1@10 minutes ago", "--dry-run"});
  EXPECT_THAT(
      control.asked,
      ElementsAre("rollback volume: \"db1\" at { time_ns: 1795180925123456789 } dry_run: true"));
}

TEST_F(RollbackVerbs, APersonTypesTheVolumesName) {
  terminal = true;
  typed = "db1\n";
  run({"rollback", "db1@-10m"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(out, HasSubstr("Type db1 to go on: "));
  EXPECT_EQ(control.asked.size(), 2u);
  for (const auto* wrong : {"yes\n", "\n", "", "db2\n"}) {
    typed = wrong;
    run({"rollback", "db1@-10m"});
    EXPECT_EQ(code, 5);
    EXPECT_EQ(control.asked.size(), 1u) << "only the plan";
    EXPECT_THAT(err, HasSubstr("not confirmed; nothing was changed"));
  }
}

TEST_F(RollbackVerbs, WithoutATerminalItNeedsYes) {
  run({"rollback", "db1@-10m"});
  EXPECT_EQ(code, 5);
  EXPECT_THAT(err, HasSubstr("needs --yes"));
  EXPECT_EQ(control.asked.size(), 1u);
  terminal = true;
  typed = "db1\n";
  run({"rollback", "db1@-10m", "--json"});
  EXPECT_EQ(code, 5) << "--json never asks";
}

TEST_F(RollbackVerbs, Undo) {
  run({"rollback", "undo", "db1", "--yes"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(control.asked, ElementsAre("rollback volume: \"db1\" dry_run: true undo: true",
                                         "rollback volume: \"db1\" undo: true"));
  EXPECT_THAT(out, HasSubstr("This undoes the last rollback and returns db1 to #4711"));
}

TEST_F(RollbackVerbs, BusyAndOutsideTheWindowHaveExitCodes) {
  control.rollback_error = Error{ErrorCode::kBusy, "db1 is open by iqn.x"};
  run({"rollback", "db1@-10m", "--yes"});
  EXPECT_EQ(code, 4);
  EXPECT_THAT(err, HasSubstr("mariner: db1 is open by iqn.x\n"));
  EXPECT_THAT(err, HasSubstr("--force"));
  control.error = Error{ErrorCode::kOutsideWindow, "the oldest moment is #1"};
  run({"rollback", "db1@-10w", "--yes"});
  EXPECT_EQ(code, 3);
}

TEST_F(RollbackVerbs, Json) {
  run({"rollback", "db1@-10m", "--dry-run", "--json"});
  EXPECT_EQ(code, 0);
  EXPECT_THAT(out, testing::StartsWith(
                       "{\"schema\":1,\"volume\":\"db1\",\"target\":{\"sequence\":\"4711\""));
  run({"--json", "rollback", "db1@-10m", "--yes"});
  EXPECT_EQ(code, 0);
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 1) << "one answer, one line: " << out;
  control.error = Error{ErrorCode::kNotFound, "no such volume"};
  run({"rollback", "db1@-10m", "--json"});
  EXPECT_EQ(code, 1);
  EXPECT_EQ(out,
            "{\"schema\":1,\"error\":{\"code\":\"not-found\",\"message\":\"no such volume\"}}\n");
}

TEST_F(RollbackVerbs, WrongWordsAreUsageErrors) {
  for (const auto& words :
       std::vector<std::vector<std::string>>{{"rollback"},
                                             {"rollback", "db1"},
                                             {"rollback", "db1@"},
                                             {"rollback", "@-10m"},
                                             {"rollback", "db1@noon"},
                                             {"rollback", "undo"},
                                             {"rollback", "db1@2026-10-25 02:30:00"},
                                             {"rollback", "db1@-1h", "x"},
                                             {"rollback", "db1@-1h", "--frce"}}) {
    run(words);
    EXPECT_EQ(code, 2) << words.back();
    EXPECT_TRUE(control.asked.empty());
  }
}

TEST_F(RollbackVerbs, StatusTellsHowFarRestoringIs) {
  auto& volume = *control.volumes.add_volumes();
  volume.set_name("db1");
  run({"rollback", "status", "db1"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_EQ(out, "db1: no rollback is being restored\n");
  auto& restore = *volume.mutable_restore();
  restore.set_total_bytes(4u << 20);
  restore.set_left_bytes(1u << 20);
  restore.set_bytes_per_second(1u << 20);
  restore.set_seconds_left(2);
  run({"rollback", "status", "db1"});
  EXPECT_EQ(out, "db1: restoring: 3 MiB of 4 MiB (75 %), 1 MiB/s, about 2s left\n");
  run({"--json", "rollback", "status", "db1"});
  EXPECT_THAT(out, HasSubstr("\"left_bytes\""));
}

}  // namespace
}  // namespace mariner::client

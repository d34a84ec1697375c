#include "server/iscsi/command_window.h"

#include <gtest/gtest.h>

namespace mariner::iscsi {
namespace {

using Verdict = CommandWindow::Verdict;

// What look() says; receives what may be.
Verdict take(CommandWindow& window, std::uint32_t cmd_sn) {
  const Verdict verdict = window.look(cmd_sn);
  if (verdict != Verdict::kOutside) window.receive(cmd_sn);
  return verdict;
}

TEST(CommandWindowTest, TakesWhatIsNextAndWhatIsAhead) {
  CommandWindow window(10, 4);
  EXPECT_EQ(window.exp_cmd_sn(), 10u);
  EXPECT_EQ(window.max_cmd_sn(), 13u);
  EXPECT_EQ(take(window, 9), Verdict::kOutside);
  EXPECT_EQ(take(window, 14), Verdict::kOutside);
  EXPECT_EQ(take(window, 12), Verdict::kAhead);
  EXPECT_EQ(take(window, 12), Verdict::kOutside) << "a duplicate";
  EXPECT_EQ(window.exp_cmd_sn(), 10u);
  EXPECT_EQ(window.max_cmd_sn(), 13u) << "it never moves back";
  EXPECT_EQ(take(window, 10), Verdict::kNext);
  EXPECT_EQ(take(window, 10), Verdict::kOutside) << "a duplicate";
  EXPECT_EQ(window.exp_cmd_sn(), 11u);
  EXPECT_EQ(window.outstanding(), 1u);
  EXPECT_EQ(take(window, 11), Verdict::kNext);
  EXPECT_EQ(window.exp_cmd_sn(), 13u) << "12 has come already";
  EXPECT_EQ(window.outstanding(), 3u);
  EXPECT_EQ(window.max_cmd_sn(), 13u);
}

TEST(CommandWindowTest, ClosesWhenFullAndOpensWithEachAnswer) {
  CommandWindow window(1, 2);
  EXPECT_EQ(take(window, 1), Verdict::kNext);
  EXPECT_EQ(take(window, 2), Verdict::kNext);
  EXPECT_EQ(window.max_cmd_sn(), 2u) << "ExpCmdSN - 1: closed";
  EXPECT_EQ(take(window, 3), Verdict::kOutside);
  window.release(2);
  EXPECT_EQ(window.max_cmd_sn(), 3u);
  EXPECT_EQ(take(window, 3), Verdict::kNext);
}

TEST(CommandWindowTest, WhatIsAheadMayBeAnsweredBeforeItsTurn) {
  CommandWindow window(1, 3);
  EXPECT_EQ(take(window, 2), Verdict::kAhead);
  window.release(2);
  EXPECT_EQ(window.max_cmd_sn(), 3u);
  EXPECT_EQ(take(window, 2), Verdict::kOutside) << "it has come";
  EXPECT_EQ(take(window, 1), Verdict::kNext);
  EXPECT_EQ(window.exp_cmd_sn(), 3u);
  EXPECT_EQ(window.outstanding(), 1u);
  EXPECT_EQ(window.max_cmd_sn(), 4u);
}

TEST(CommandWindowTest, NumbersWrap) {
  CommandWindow window(0xffffffff, 4);
  EXPECT_EQ(window.max_cmd_sn(), 2u);
  EXPECT_EQ(take(window, 0), Verdict::kAhead);
  EXPECT_EQ(take(window, 0xffffffff), Verdict::kNext);
  EXPECT_EQ(window.exp_cmd_sn(), 1u);
  EXPECT_EQ(take(window, 0xffffffff), Verdict::kOutside);
  EXPECT_TRUE(serial_before(0xffffffff, 0));
  EXPECT_FALSE(serial_before(0, 0xffffffff));
}

TEST(CommandWindowTest, AnAbortedCommandThatNeverCameCountsAsReceived) {
  CommandWindow window(5, 4);
  EXPECT_FALSE(window.abort_unreceived(4, 6)) << "before the window";
  EXPECT_FALSE(window.abort_unreceived(9, 10)) << "beyond it";
  EXPECT_FALSE(window.abort_unreceived(5, 5)) << "not before the request";
  EXPECT_TRUE(window.abort_unreceived(6, 7));
  EXPECT_EQ(window.exp_cmd_sn(), 5u);
  EXPECT_EQ(take(window, 6), Verdict::kOutside);
  EXPECT_TRUE(window.abort_unreceived(5, 7));
  EXPECT_EQ(window.exp_cmd_sn(), 7u);
  EXPECT_EQ(window.outstanding(), 0u);
  EXPECT_EQ(window.max_cmd_sn(), 10u);
}

TEST(CommandWindowTest, AllThatMayStillComeIsAborted) {
  CommandWindow window(5, 8);
  EXPECT_EQ(take(window, 7), Verdict::kAhead);
  window.abort_all_unreceived(9);
  EXPECT_EQ(window.exp_cmd_sn(), 9u);
  EXPECT_EQ(window.outstanding(), 1u) << "7 has come and is not answered";
}

TEST(CommandWindowTest, ANumberBeyondTheWindowAbortsNothing) {
  CommandWindow window(5, 8);
  EXPECT_EQ(take(window, 7), Verdict::kAhead);
  for (const std::uint32_t cmd_sn : {14u, 9000u, 5u + 0x7fffffff}) {
    window.abort_all_unreceived(cmd_sn);
    EXPECT_EQ(window.exp_cmd_sn(), 5u) << cmd_sn;
    EXPECT_EQ(window.max_cmd_sn(), 12u) << cmd_sn;
  }
  window.abort_all_unreceived(13);
  EXPECT_EQ(window.exp_cmd_sn(), 13u) << "the first that may not come yet";
  EXPECT_EQ(window.outstanding(), 1u);
}

}  // namespace
}  // namespace mariner::iscsi

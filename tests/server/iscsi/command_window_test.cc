#include "server/iscsi/command_window.h"

#include <gtest/gtest.h>

namespace mariner::iscsi {
namespace {

using Verdict = CommandWindow::Verdict;

TEST(CommandWindowTest, AcceptsInOrderOnly) {
  CommandWindow window(10, 4);
  EXPECT_EQ(window.exp_cmd_sn(), 10u);
  EXPECT_EQ(window.max_cmd_sn(), 13u);
  EXPECT_EQ(window.accept(9), Verdict::kOutside);
  EXPECT_EQ(window.accept(14), Verdict::kOutside);
  EXPECT_EQ(window.accept(11), Verdict::kGap);
  EXPECT_EQ(window.accept(10), Verdict::kAccepted);
  EXPECT_EQ(window.accept(10), Verdict::kOutside) << "a duplicate";
  EXPECT_EQ(window.exp_cmd_sn(), 11u);
}

TEST(CommandWindowTest, ClosesWhenFullAndOpensWithEachAnswer) {
  CommandWindow window(1, 2);
  EXPECT_EQ(window.accept(1), Verdict::kAccepted);
  EXPECT_EQ(window.accept(2), Verdict::kAccepted);
  EXPECT_EQ(window.max_cmd_sn(), 2u) << "ExpCmdSN - 1: closed";
  EXPECT_EQ(window.accept(3), Verdict::kOutside);
  window.release();
  EXPECT_EQ(window.max_cmd_sn(), 3u);
  EXPECT_EQ(window.accept(3), Verdict::kAccepted);
}

TEST(CommandWindowTest, NumbersWrap) {
  CommandWindow window(0xffffffff, 4);
  EXPECT_EQ(window.max_cmd_sn(), 2u);
  EXPECT_EQ(window.accept(0xffffffff), Verdict::kAccepted);
  EXPECT_EQ(window.accept(0), Verdict::kAccepted);
  EXPECT_EQ(window.accept(0xffffffff), Verdict::kOutside);
  EXPECT_TRUE(serial_before(0xffffffff, 0));
  EXPECT_FALSE(serial_before(0, 0xffffffff));
}

TEST(CommandWindowTest, AnAbortedCommandThatNeverCameCountsAsReceived) {
  CommandWindow window(5, 4);
  EXPECT_FALSE(window.abort_unreceived(4, 6)) << "before the window";
  EXPECT_FALSE(window.abort_unreceived(9, 10)) << "beyond it";
  EXPECT_FALSE(window.abort_unreceived(5, 5)) << "not before the request";
  EXPECT_TRUE(window.abort_unreceived(5, 6));
  EXPECT_EQ(window.exp_cmd_sn(), 6u);
  EXPECT_EQ(window.max_cmd_sn(), 9u);
  EXPECT_EQ(window.outstanding(), 0u);
}

}  // namespace
}  // namespace mariner::iscsi

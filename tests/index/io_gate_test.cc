#include "index/io_gate.h"

#include <gtest/gtest.h>

namespace mariner::index {
namespace {

using std::chrono::milliseconds;

class IoGateTest : public ::testing::Test {
 protected:
  void pass(std::size_t bytes) {
    gate_.pass(bytes, now_, [this, bytes] { begun_ += bytes; });
  }

  IoGate gate_{{.polite_bytes = 100, .polite_for = milliseconds(20)}};
  std::chrono::nanoseconds now_{0};
  std::size_t begun_ = 0;
};

TEST_F(IoGateTest, AsManyAsComeWhileNobodyReads) {
  for (int i = 0; i < 10; ++i) pass(1'000);
  EXPECT_EQ(begun_, 10'000u);
  EXPECT_EQ(gate_.piece_bytes(now_), SIZE_MAX);
}

TEST_F(IoGateTest, FewBytesAtATimeWhileOthersRead) {
  gate_.others_read(now_);
  EXPECT_EQ(gate_.piece_bytes(now_), 100u);
  for (int i = 0; i < 4; ++i) pass(50);
  EXPECT_EQ(begun_, 100u);
  gate_.ended(50, now_);
  EXPECT_EQ(begun_, 150u);
}

TEST_F(IoGateTest, ALongerOneGoesAloneAndNothingIsHeldForGood) {
  gate_.others_read(now_);
  pass(500);
  pass(10);
  EXPECT_EQ(begun_, 500u);
  gate_.ended(500, now_);
  EXPECT_EQ(begun_, 510u);
}

TEST_F(IoGateTest, WhatWaitsGoesOnWhenTheReadersHaveGone) {
  gate_.others_read(now_);
  for (int i = 0; i < 4; ++i) pass(100);
  EXPECT_EQ(begun_, 100u);
  now_ += milliseconds(20);
  gate_.ended(100, now_);
  EXPECT_EQ(begun_, 400u);
}

TEST_F(IoGateTest, WritersAreMadeWayForUnlessThereIsNoTime) {
  gate_.others_write(now_, false);
  for (int i = 0; i < 4; ++i) pass(100);
  EXPECT_EQ(begun_, 100u);
  gate_.others_write(now_, true);
  gate_.ended(100, now_);
  EXPECT_EQ(begun_, 400u);
}

TEST_F(IoGateTest, ReadersAreMadeWayForAtAnyTime) {
  gate_.others_write(now_, true);
  gate_.others_read(now_);
  for (int i = 0; i < 4; ++i) pass(100);
  EXPECT_EQ(begun_, 100u);
}

}  // namespace
}  // namespace mariner::index

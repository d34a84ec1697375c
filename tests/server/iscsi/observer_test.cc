#include "server/iscsi/observer.h"

#include <gtest/gtest.h>

#include <set>

namespace mariner::iscsi {
namespace {

TEST(ObserverTest, ReasonsHaveDistinctNames) {
  std::set<std::string_view> names;
  int count = 0;
  for (int i = 0; i <= static_cast<int>(EndReason::kShutdown); ++i) {
    names.insert(end_reason_name(static_cast<EndReason>(i)));
    ++count;
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(count));
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(ObserverTest, WhatAPeerDidWrongIsNotOrderly) {
  EXPECT_TRUE(orderly(EndReason::kLogout));
  EXPECT_TRUE(orderly(EndReason::kReinstated));
  EXPECT_TRUE(orderly(EndReason::kDiscoveryOver));
  EXPECT_FALSE(orderly(EndReason::kPeerClosed));
  EXPECT_FALSE(orderly(EndReason::kProtocolError));
  EXPECT_FALSE(orderly(EndReason::kLoginFailed));
}

}  // namespace
}  // namespace mariner::iscsi

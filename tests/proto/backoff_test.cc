#include "proto/backoff.h"

#include <gtest/gtest.h>

#include <set>

namespace mariner {
namespace {

using namespace std::chrono_literals;

TEST(Backoff, DoublesUpToItsBound) {
  Backoff backoff({.least = 20ms, .most = 100ms, .seed = 7});
  for (const auto whole : {20ms, 40ms, 80ms, 100ms, 100ms}) {
    const auto wait = backoff.next();
    EXPECT_GE(wait, whole / 2);
    EXPECT_LE(wait, whole);
  }
  backoff.succeeded();
  EXPECT_LE(backoff.next(), 20ms);
}

TEST(Backoff, NodesDoNotWaitTheSame) {
  std::set<std::chrono::nanoseconds> waits;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    waits.insert(Backoff({.least = 1000ms, .most = 1000ms, .seed = seed}).next());
  }
  EXPECT_GT(waits.size(), 15u);
}

}  // namespace
}  // namespace mariner

#include "server/iscsi/ring.h"

#include <gtest/gtest.h>

#include <vector>

namespace mariner::iscsi {
namespace {

TEST(RingTest, KeepsOrderAndOrdinalsWhileItGrows) {
  Ring<int> ring;
  std::uint64_t popped = 0;
  for (int i = 0; i < 1000; ++i) {
    ring.push(i);
    if (i % 3 == 0) {
      EXPECT_EQ(ring.front(), static_cast<int>(popped));
      EXPECT_EQ(ring.begin(), popped);
      ring.pop();
      ++popped;
    }
  }
  EXPECT_EQ(ring.size(), 1000 - popped);
  for (std::uint64_t at = ring.begin(); at < ring.end(); ++at) {
    EXPECT_EQ(ring[at], static_cast<int>(at));
  }
}

TEST(RingTest, ElementsStayWhereTheyAre) {
  Ring<int> ring;
  std::vector<const int*> places;  // of those that are in it
  for (int i = 0; i < 1000; ++i) {
    places.push_back(&ring.push(i));
    // It grows from wherever it begins.
    if (i % 7 != 0) continue;
    ring.pop();
    places.erase(places.begin());
  }
  ASSERT_EQ(ring.size(), places.size());
  for (std::uint64_t at = ring.begin(); at < ring.end(); ++at) {
    EXPECT_EQ(&ring[at], places[at - ring.begin()]);
  }
}

TEST(RingTest, WhatIsPoppedIsLetGo) {
  const auto held = std::make_shared<int>(1);
  Ring<std::shared_ptr<int>> ring;
  ring.push(held);
  EXPECT_EQ(held.use_count(), 2);
  ring.pop();
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_TRUE(ring.empty());
}

}  // namespace
}  // namespace mariner::iscsi

#include "server/volume/unplaced_writes.h"

#include <gtest/gtest.h>

namespace mariner::volume {
namespace {

TEST(UnplacedWrites, NobodyWaitsForNothing) {
  UnplacedWrites writes;
  bool ran = false;
  writes.when_placed([&] { ran = true; });
  EXPECT_TRUE(ran);
}

TEST(UnplacedWrites, WaitsForThoseBeforeItInAnyOrder) {
  UnplacedWrites writes;
  const auto first = writes.begin();
  const auto second = writes.begin();
  int ran = 0;
  writes.when_placed([&] { ++ran; });
  const auto later = writes.begin();
  writes.when_placed([&] { ++ran; });
  writes.end(second);
  EXPECT_EQ(ran, 0);
  writes.end(first);
  EXPECT_EQ(ran, 1) << "what came later does not count";
  writes.end(later);
  EXPECT_EQ(ran, 2);
}

TEST(UnplacedWrites, WhoWaitedMayBeginAndWaitAgain) {
  UnplacedWrites writes;
  const auto first = writes.begin();
  UnplacedWrites::Ticket next = 0;
  bool ran = false;
  writes.when_placed([&] {
    next = writes.begin();
    writes.when_placed([&] { ran = true; });
  });
  writes.end(first);
  EXPECT_FALSE(ran);
  writes.end(next);
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace mariner::volume

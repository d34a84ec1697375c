#include "replication/participant_door.h"

#include <gtest/gtest.h>

namespace mariner::replication {
namespace {

using Asked = ParticipantDoor::Asked;

TEST(ParticipantDoor, HearsTheNewestThatIsPromised) {
  ParticipantDoor door(Epoch{3});
  EXPECT_EQ(door.ask({1}, {2}), Asked::kStale);
  EXPECT_FALSE(door.current().has_value());
  EXPECT_EQ(door.ask({1}, {3}), Asked::kWaits);
  EXPECT_TRUE(door.can_open());
  EXPECT_EQ(door.open(), ConnectionId{1});
  EXPECT_TRUE(door.hears({1}));
  EXPECT_EQ(door.ask({2}, {5}), Asked::kPromise);
  EXPECT_FALSE(door.hears({1}));
  EXPECT_EQ(door.ask({3}, {6}), Asked::kPromise);
  door.promised({5});
  EXPECT_FALSE(door.can_open());
  EXPECT_EQ(door.ask({2}, {5}), Asked::kStale);
  door.promised({6});
  EXPECT_EQ(door.open(), ConnectionId{3});
  door.leave({2});
  EXPECT_TRUE(door.hears({3}));
  door.leave({3});
  EXPECT_FALSE(door.heard().has_value());
  EXPECT_EQ(door.epoch(), Epoch{6});
}

TEST(ParticipantDoor, WhatCouldNotBePromisedIsPromisedWhenSomebodyAsksAgain) {
  ParticipantDoor door(Epoch{3});
  EXPECT_EQ(door.ask({1}, {5}), Asked::kPromise);
  EXPECT_EQ(door.ask({2}, {5}), Asked::kWaits) << "it is on its way";
  EXPECT_TRUE(door.not_promised({5})) << "somebody waits";
  EXPECT_FALSE(door.can_open());
  door.leave({2});
  EXPECT_EQ(door.ask({3}, {4}), Asked::kStale);
  EXPECT_EQ(door.ask({3}, {5}), Asked::kPromise);
  EXPECT_EQ(door.ask({4}, {6}), Asked::kPromise);
  EXPECT_FALSE(door.not_promised({5})) << "a newer one has asked since";
  door.promised({6});
  EXPECT_FALSE(door.not_promised({6})) << "of another promise of that epoch";
  EXPECT_EQ(door.open(), ConnectionId{4});
}

}  // namespace
}  // namespace mariner::replication

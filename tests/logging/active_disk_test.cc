#include "logging/active_disk.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

namespace mariner::logging {
namespace {

using std::chrono::microseconds;
using Time = Placement::Time;

constexpr Time us(std::int64_t value) { return microseconds(value); }

// A placement that says what the test tells it to.
class ScriptedPlacement final : public Placement {
 public:
  void start_track(SectorRange /*track*/, std::span<const SectorRange> /*used*/,
                   Time /*now*/) override {
    wants_next = false;
    free = 100;
  }
  std::optional<Place> place(std::uint32_t sectors, Time now) const override {
    if (sectors > free) return std::nullopt;
    return Place{0, now + wait + us(sectors)};
  }
  std::uint32_t room() const override { return free; }
  void dispatched(SectorRange /*range*/, Time /*now*/) override {}
  void completed(SectorRange /*range*/, Time /*now*/) override {}
  bool wants_next_track() const override { return wants_next; }
  bool moves_to_tracks() const override { return moves; }
  std::optional<Time> recalibration_due() const override { return std::nullopt; }
  std::optional<std::uint64_t> recalibration_sector(Time /*now*/) const override {
    return std::nullopt;
  }

  Time wait{0};  // until the head is at the place
  std::uint32_t free = 100;
  bool wants_next = false;
  bool moves = true;
};

class ActiveDiskTest : public ::testing::Test {
 protected:
  ActiveDiskTest() {
    for (auto& placement : placements_) policy_.add(placement, 1);
  }
  // Occupies every disk, as if by a batch each.
  void make_all_busy() {
    for (std::size_t i = 0; i < placements_.size(); ++i) policy_.occupied(i);
  }

  std::deque<ScriptedPlacement> placements_{3};
  ActiveDisk policy_{{.t_wait = us(300), .batch_bytes_max = 50}};
};

TEST_F(ActiveDiskTest, DispatchesALoneRequestAtOnce) {
  placements_[1].wait = us(-5);
  EXPECT_EQ(policy_.assign(8, us(0)), 1u);
  EXPECT_EQ(policy_.active(), 1u);
  EXPECT_EQ(policy_.next_dispatch(us(0)), 1u);
  EXPECT_FALSE(policy_.next_dispatch(us(0)).has_value());
  EXPECT_FALSE(policy_.idle(1));
  EXPECT_EQ(policy_.queued_bytes(1), 0u);
}

TEST_F(ActiveDiskTest, ChoosesTheDiskThatCanWriteSoonest) {
  placements_[0].wait = us(100);
  placements_[1].wait = us(50);
  placements_[2].wait = us(70);
  EXPECT_EQ(policy_.assign(8, us(0)), 1u);
}

TEST_F(ActiveDiskTest, AnIdleDiskThatGoesOnAtNoCostDoesSoRatherThanLetARequestWait) {
  policy_.occupied(0);
  policy_.occupied(1);
  placements_[2].free = 7;
  EXPECT_EQ(policy_.assign(8, us(0)), 0u) << "where the head has to move it is not worth it";
  policy_.clear_queue(0);
  placements_[2].moves = false;
  policy_.set_next_track(2, false);
  EXPECT_EQ(policy_.assign(8, us(0)), 0u) << "there is no track to go on to";
  policy_.clear_queue(0);
  policy_.set_next_track(2, true);
  EXPECT_FALSE(policy_.assign(8, us(0)).has_value());
  ASSERT_EQ(policy_.next_switch(), 2u);
  placements_[2].start_track({}, {}, us(0));
  policy_.completed(2);
  placements_[2].wait = us(-5);
  EXPECT_EQ(policy_.assign(8, us(0)), 2u);
  EXPECT_EQ(policy_.next_dispatch(us(0)), 2u);
}

TEST_F(ActiveDiskTest, StaysWithTheActiveDiskAlthoughAnotherIsSooner) {
  make_all_busy();
  placements_[2].wait = us(-10);
  ASSERT_EQ(policy_.assign(8, us(0)), 2u);
  placements_[0].wait = us(-100);
  EXPECT_EQ(policy_.assign(8, us(299)), 2u);
  EXPECT_EQ(policy_.queued_bytes(2), 16u);
}

TEST_F(ActiveDiskTest, ChoosesAnewWhenTheOldestHasWaitedForTWait) {
  make_all_busy();
  placements_[2].wait = us(-10);
  ASSERT_EQ(policy_.assign(8, us(0)), 2u);
  placements_[0].wait = us(-100);
  EXPECT_EQ(policy_.assign(8, us(300)), 0u);
  EXPECT_EQ(policy_.active(), 0u);
  policy_.completed(2);
  EXPECT_EQ(policy_.next_dispatch(us(300)), 2u) << "its batch is due";
  EXPECT_FALSE(policy_.next_dispatch(us(300)).has_value());
}

TEST_F(ActiveDiskTest, ChoosesAnewWhenTheBatchIsFull) {
  make_all_busy();
  placements_[2].wait = us(-10);
  ASSERT_EQ(policy_.assign(30, us(0)), 2u);
  ASSERT_EQ(policy_.assign(20, us(1)), 2u);
  EXPECT_NE(policy_.assign(1, us(2)), 2u);
}

TEST_F(ActiveDiskTest, ChoosesAnewWhenTheTrackHasNoRoom) {
  make_all_busy();
  placements_[2].wait = us(-10);
  placements_[2].free = 20;
  ASSERT_EQ(policy_.assign(15, us(0)), 2u);
  EXPECT_NE(policy_.assign(6, us(1)), 2u);
  policy_.completed(2);
  EXPECT_EQ(policy_.next_dispatch(us(1)), 2u);
}

TEST_F(ActiveDiskTest, JoinsABatchThatWaitsForItsDisk) {
  make_all_busy();
  placements_[1].wait = us(1000);
  placements_[2].wait = us(1000);
  ASSERT_EQ(policy_.assign(8, us(0)), 0u);
  EXPECT_EQ(policy_.assign(8, us(500)), 0u) << "late, but still the soonest";
  EXPECT_EQ(policy_.queued_bytes(0), 16u);
}

TEST_F(ActiveDiskTest, GathersOnAnIdleDiskWhileSomethingIsQueued) {
  make_all_busy();
  placements_[2].wait = us(-10);
  ASSERT_EQ(policy_.assign(8, us(0)), 2u);
  policy_.completed(2);
  EXPECT_FALSE(policy_.next_dispatch(us(100)).has_value());
  EXPECT_EQ(policy_.wake(), us(300));
  EXPECT_FALSE(policy_.next_dispatch(us(299)).has_value());
  EXPECT_EQ(policy_.next_dispatch(us(300)), 2u);
  EXPECT_FALSE(policy_.wake().has_value());
}

TEST_F(ActiveDiskTest, NeedsNoWakingForADiskThatIsBusy) {
  make_all_busy();
  ASSERT_TRUE(policy_.assign(8, us(0)).has_value());
  EXPECT_FALSE(policy_.wake().has_value()) << "its completion is what it waits for";
}

TEST_F(ActiveDiskTest, SendsADiskToItsNextTrackWhenThePlacementWantsTo) {
  EXPECT_FALSE(policy_.next_switch().has_value());
  placements_[1].wants_next = true;
  EXPECT_EQ(policy_.next_switch(), 1u);
  EXPECT_FALSE(policy_.idle(1));
  EXPECT_FALSE(policy_.next_switch().has_value()) << "once";
}

TEST_F(ActiveDiskTest, GivesNothingToADiskThatWantsItsNextTrack) {
  placements_[0].wants_next = true;
  placements_[1].wait = placements_[2].wait = us(5000);
  EXPECT_NE(policy_.assign(8, us(0)), 0u);
  for (auto& placement : placements_) placement.wants_next = true;
  EXPECT_FALSE(policy_.assign(8, us(0)).has_value());
  EXPECT_TRUE(policy_.next_switch().has_value());
}

TEST_F(ActiveDiskTest, SendsOneDiskToItsNextTrackWhenARequestFitsNowhere) {
  placements_[0].free = placements_[2].free = 12;
  placements_[1].free = 7;
  EXPECT_FALSE(policy_.assign(20, us(0)).has_value());
  placements_[0].free = 5;
  EXPECT_FALSE(policy_.assign(20, us(0)).has_value()) << "one at a time";
  EXPECT_EQ(policy_.next_switch(), 1u) << "the one that lost least by it";
  EXPECT_FALSE(policy_.next_switch().has_value());
  placements_[1].start_track({}, {}, us(0));
  EXPECT_EQ(policy_.assign(20, us(0)), 1u) << "gathers there while the head moves";
  EXPECT_FALSE(policy_.next_dispatch(us(1000)).has_value());
  policy_.completed(1);
  EXPECT_EQ(policy_.next_dispatch(us(1000)), 1u);
}

TEST_F(ActiveDiskTest, LetsADiskThatLeavesItsTrackSendItsQueueFirst) {
  make_all_busy();
  placements_[0].free = 25;
  placements_[1].free = placements_[2].free = 30;
  placements_[0].wait = us(-10);
  ASSERT_EQ(policy_.assign(10, us(0)), 0u);
  EXPECT_FALSE(policy_.assign(40, us(0)).has_value());
  EXPECT_NE(policy_.assign(10, us(0)), 0u) << "it gets no more";
  policy_.completed(0);
  EXPECT_FALSE(policy_.next_switch().has_value());
  EXPECT_EQ(policy_.next_dispatch(us(300)), 0u);
  policy_.completed(0);
  EXPECT_EQ(policy_.next_switch(), 0u);
}

TEST_F(ActiveDiskTest, LeavesATrackThatHasNoRoomForRequestsAsTheyComeUsually) {
  for (int i = 0; i < 50; ++i) {
    const auto disk = policy_.assign(20, us(i));
    ASSERT_TRUE(disk.has_value());
    ASSERT_EQ(policy_.next_dispatch(us(i)), disk);
    policy_.completed(*disk);
  }
  placements_[2].free = 19;
  EXPECT_EQ(policy_.next_switch(), 2u);
  EXPECT_FALSE(policy_.next_switch().has_value());
}

TEST_F(ActiveDiskTest, PutsBackWhatDidNotGoWithTheBatch) {
  make_all_busy();
  placements_[0].wait = us(-10);
  ASSERT_EQ(policy_.assign(20, us(0)), 0u);
  ASSERT_EQ(policy_.assign(20, us(10)), 0u);
  policy_.completed(0);
  ASSERT_EQ(policy_.next_dispatch(us(300)), 0u);
  policy_.put_back(0, {.bytes = 20, .first_bytes = 20, .oldest = us(10)});
  EXPECT_EQ(policy_.queued_bytes(0), 20u);
  policy_.completed(0);
  EXPECT_EQ(policy_.next_dispatch(us(300)), 0u) << "at once, though its time has not come";
}

TEST_F(ActiveDiskTest, SwitchesTracksBeforeARestThatDoesNotFit) {
  ASSERT_TRUE(policy_.assign(20, us(0)).has_value());
  const std::size_t disk = *policy_.next_dispatch(us(0));
  policy_.put_back(disk, {.bytes = 15, .first_bytes = 10, .oldest = us(0)});
  placements_[disk].free = 9;
  policy_.completed(disk);
  EXPECT_EQ(policy_.next_switch(), disk);
  placements_[disk].start_track({}, {}, us(0));
  policy_.completed(disk);
  EXPECT_FALSE(policy_.next_switch().has_value());
  EXPECT_EQ(policy_.next_dispatch(us(0)), disk);
}

TEST_F(ActiveDiskTest, DrainsADisk) {
  make_all_busy();
  placements_[0].wait = us(-10);
  ASSERT_EQ(policy_.assign(8, us(0)), 0u);
  policy_.drain(0);
  EXPECT_NE(policy_.assign(8, us(1)), 0u);
  EXPECT_FALSE(policy_.drained(0));
  policy_.completed(0);
  EXPECT_FALSE(policy_.drained(0));
  EXPECT_EQ(policy_.next_dispatch(us(2)), 0u);
  policy_.completed(0);
  EXPECT_TRUE(policy_.drained(0));
}

TEST_F(ActiveDiskTest, ForgetsALostDiskAndGivesItsNumberAgain) {
  make_all_busy();
  placements_[0].wait = us(-10);
  ASSERT_EQ(policy_.assign(8, us(0)), 0u);
  policy_.remove(0);
  EXPECT_NE(policy_.assign(8, us(1)), 0u);
  ScriptedPlacement fresh;
  EXPECT_EQ(policy_.add(fresh, 1), 0u);
  EXPECT_TRUE(policy_.idle(0));
  EXPECT_EQ(policy_.queued_bytes(0), 0u);
}

TEST_F(ActiveDiskTest, WithoutDisksHasNoRoom) {
  for (std::size_t i = 0; i < 3; ++i) policy_.remove(i);
  EXPECT_FALSE(policy_.assign(8, us(0)).has_value());
  EXPECT_FALSE(policy_.next_dispatch(us(0)).has_value());
  EXPECT_FALSE(policy_.next_switch().has_value());
  EXPECT_FALSE(policy_.wake().has_value());
}

TEST(ActiveDisk, ALoneWriterNeverWaits) {
  ScriptedPlacement placement;
  ActiveDisk policy({.t_wait = us(300), .batch_bytes_max = 50});
  policy.add(placement, 1);
  Time now{0};
  for (int i = 0; i < 100; ++i, now += us(400)) {
    ASSERT_EQ(policy.assign(9, now), 0u);
    ASSERT_EQ(policy.next_dispatch(now), 0u);
    policy.completed(0);
  }
}

TEST(ActiveDisk, HoldsAsManyDisksAsItMay) {
  std::deque<ScriptedPlacement> placements(ActiveDisk::kDisksMax);
  ActiveDisk policy({.batch_bytes_max = 50});
  for (auto& placement : placements) policy.add(placement, 1);
  placements.back().wait = us(-100);
  EXPECT_EQ(policy.assign(1, us(0)), ActiveDisk::kDisksMax - 1);
}

// Random loads: nothing that is assigned stays behind, no batch is too long, and on a disk that is
// idle nothing waits for longer than t_wait.
class ActiveDiskProperty : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(ActiveDiskProperty, EveryRequestGoesInTime) {
  std::mt19937_64 random(GetParam());
  const auto below = [&random](std::uint64_t n) { return random() % n; };
  std::deque<ScriptedPlacement> placements(1 + below(5));
  ActiveDisk policy({.t_wait = us(300), .batch_bytes_max = 50, .overhead_bytes = 1});
  for (auto& placement : placements) policy.add(placement, 1);
  struct Model {
    std::deque<std::pair<std::uint32_t, Time>> queue;
    bool busy = false;
  };
  std::vector<Model> model(placements.size());
  Time now{0};
  const auto pump = [&] {
    while (const auto disk = policy.next_switch()) {
      ASSERT_FALSE(model[*disk].busy);
      placements[*disk].start_track({}, {}, now);
      model[*disk].busy = true;
    }
    while (const auto disk = policy.next_dispatch(now)) {
      Model& m = model[*disk];
      ASSERT_FALSE(m.busy);
      ASSERT_FALSE(m.queue.empty());
      m.busy = true;
      std::uint32_t sectors = 0;
      for (std::size_t take = 1 + below(m.queue.size()); take > 0; --take) {
        if (sectors + m.queue.front().first + 1 > placements[*disk].free) break;
        sectors += m.queue.front().first;
        m.queue.pop_front();
      }
      ASSERT_GT(sectors, 0u) << "not even the first fits";
      ASSERT_LE(sectors, 50u);
      placements[*disk].free -= sectors + 1;
      placements[*disk].wants_next = below(5) == 0;
      std::uint32_t left = 0;
      for (const auto& [size, arrived] : m.queue) left += size;
      if (left > 0) {
        policy.put_back(*disk, {left, m.queue.front().first, m.queue.front().second});
      }
    }
  };
  for (int step = 0; step < 3000; ++step) {
    Time next = now + us(static_cast<std::int64_t>(below(100)));
    if (const auto wake = policy.wake()) next = std::max(now, std::min(next, *wake));
    now = next;
    ASSERT_NO_FATAL_FAILURE(pump());
    for (auto& placement : placements) placement.wait = us(static_cast<std::int64_t>(below(500)));
    if (below(2) == 0) {
      const auto sectors = static_cast<std::uint32_t>(1 + below(30));
      if (const auto disk = policy.assign(sectors, now)) {
        model[*disk].queue.push_back({sectors, now});
      }
    } else if (const std::size_t disk = below(model.size()); model[disk].busy) {
      model[disk].busy = false;
      policy.completed(disk);
    }
    ASSERT_NO_FATAL_FAILURE(pump());
    for (std::size_t i = 0; i < model.size(); ++i) {
      std::uint32_t queued = 0;
      for (const auto& [size, arrived] : model[i].queue) queued += size;
      ASSERT_EQ(policy.queued_bytes(i), queued);
      ASSERT_EQ(policy.idle(i), !model[i].busy);
      if (!model[i].busy && queued > 0) {
        ASSERT_LT(now - model[i].queue.front().second, us(300));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ActiveDiskProperty, ::testing::Range<std::uint64_t>(1, 41));

}  // namespace
}  // namespace mariner::logging

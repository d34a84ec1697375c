#include "server/node/room_pace.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "replication/write_coordinator.h"
#include "tests/support/manual_executor.h"

namespace mariner::node {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kUnlimited = replication::WriteCoordinator::kUnlimited;
constexpr double kMiB = 1u << 20;

// A host with a queue that never empties, or one that wants so much a turn.
class SimulatedHost final : public volume::Paced {
 public:
  [[nodiscard]] std::uint64_t stamped_bytes() const override { return stamped_; }
  [[nodiscard]] bool writes_wait() const override { return waiting_ > 0; }
  void pace(std::uint64_t bytes) override { granted_ = bytes; }

  // Whole writes; a write is let in while less than what was granted has been.
  std::uint64_t write(std::uint64_t wanted, std::uint64_t each) {
    waiting_ = std::min(waiting_ + wanted, std::max(wanted, 64 * each));
    std::uint64_t let = 0;
    while (waiting_ >= each && stamped_ < granted_) {
      waiting_ -= each;
      stamped_ += each;
      let += each;
    }
    return let;
  }
  [[nodiscard]] std::uint64_t granted() const { return granted_; }

 private:
  std::uint64_t stamped_ = 0;
  std::uint64_t waiting_ = 0;
  std::uint64_t granted_ = kUnlimited;
};

// A log in which room is made in portions, and hosts that write more than that.
class RoomPaceTest : public testing::Test {
 protected:
  struct Host {
    std::shared_ptr<SimulatedHost> host = std::make_shared<SimulatedHost>();
    std::uint64_t wanted = 0;  // each turn
    std::uint64_t each = 4096;
    std::vector<std::uint64_t> let{};  // by turn
  };

  Host& add(double mib_per_second, std::uint64_t each = 4096) {
    hosts_.push_back({.wanted = static_cast<std::uint64_t>(mib_per_second * kMiB / 100)});
    hosts_.back().each = each;
    return hosts_.back();
  }
  [[nodiscard]] std::uint64_t taken() const {
    std::uint64_t sum = 0;
    for (const Host& host : hosts_) sum += host.host->stamped_bytes();
    return sum;
  }
  [[nodiscard]] std::uint64_t room() const { return made_ - std::min(made_, taken()); }
  // 10 ms; a portion of room comes each `every` of them.
  void turn(std::uint64_t portion, unsigned every) {
    if (++turns_ % every == 0) made_ += portion;
    for (Host& host : hosts_) host.let.push_back(host.host->write(host.wanted, host.each));
    if (room() == 0) pace_.ran_out();
    executor_.advance(milliseconds(10));
    executor_.run_ready();
  }

  test::ManualExecutor executor_;
  std::deque<Host> hosts_;
  std::uint64_t made_ = 0;
  std::uint64_t enough_ = static_cast<std::uint64_t>(1024 * kMiB);
  unsigned turns_ = 0;
  RoomPace pace_{executor_,
                 [this]() -> RoomPace::Room {
                   return room() < enough_ ? RoomPace::Room(room()) : std::nullopt;
                 },
                 [this] {
                   std::vector<RoomPace::Host> all;
                   for (std::size_t i = 0; i < hosts_.size(); ++i) {
                     all.push_back({VolumeId{static_cast<std::uint32_t>(i + 1)}, hosts_[i].host});
                   }
                   return all;
                 }};
};

TEST_F(RoomPaceTest, SlowsNobodyBeforeAWriteHasWaited) {
  add(100);
  made_ = static_cast<std::uint64_t>(10 * kMiB);
  for (int i = 0; i < 5; ++i) turn(0, 1000);
  EXPECT_FALSE(pace_.slows());
  EXPECT_EQ(hosts_[0].host->granted(), kUnlimited);
  EXPECT_TRUE(executor_.idle());
}

// 64 MiB of room each half second, and 400 MiB/s that want to be written.
TEST_F(RoomPaceTest, LeadsToTheRateAtWhichRoomIsMadeWithoutAStop) {
  Host& host = add(400);
  for (int i = 0; i < 1000; ++i) turn(static_cast<std::uint64_t>(64 * kMiB), 50);
  std::uint64_t sum = 0;
  std::uint64_t least = kUnlimited;
  std::uint64_t most = 0;
  for (std::size_t i = 500; i < 1000; ++i) {
    sum += host.let[i];
    least = std::min(least, host.let[i]);
    most = std::max(most, host.let[i]);
  }
  EXPECT_NEAR(static_cast<double>(sum) / kMiB / 5, 128, 8);  // a second
  EXPECT_GT(static_cast<double>(least) / kMiB, 0.5);         // of 1.28 in the mean
  EXPECT_LT(static_cast<double>(most) / kMiB, 2.6);
}

TEST_F(RoomPaceTest, VolumesShareFairlyAndWhatOneDoesNotUseGoesToTheOthers) {
  add(400);
  add(400);
  add(10);
  for (int i = 0; i < 1000; ++i) turn(static_cast<std::uint64_t>(16 * kMiB), 10);
  std::vector<double> rates;
  for (const Host& host : hosts_) {
    std::uint64_t sum = 0;
    for (std::size_t i = 500; i < 1000; ++i) sum += host.let[i];
    rates.push_back(static_cast<double>(sum) / kMiB / 5);
  }
  EXPECT_NEAR(rates[2], 10, 0.5);
  EXPECT_NEAR(rates[0], 75, 4);
  EXPECT_NEAR(rates[1], 75, 4);
}

TEST_F(RoomPaceTest, EndsWhenThereIsEnough) {
  add(400);
  for (int i = 0; i < 100; ++i) turn(static_cast<std::uint64_t>(kMiB), 10);
  EXPECT_TRUE(pace_.slows());
  made_ += 2 * enough_;
  hosts_[0].wanted = 0;
  turn(0, 1000);
  turn(0, 1000);
  EXPECT_FALSE(pace_.slows());
  EXPECT_EQ(hosts_[0].host->granted(), kUnlimited);
  EXPECT_TRUE(executor_.idle());
}

TEST_F(RoomPaceTest, WithNoRoomOneWriteComesAndWaitsAndAnotherEachSecond) {
  add(400, 1u << 20);
  pace_.ran_out();
  for (int i = 0; i < 50; ++i) turn(0, 1000);
  EXPECT_EQ(hosts_[0].host->stamped_bytes(), 1u << 20);
  for (int i = 0; i < 1000; ++i) turn(0, 1u << 30);
  EXPECT_GE(hosts_[0].host->stamped_bytes(), 9u << 20);
  EXPECT_LE(hosts_[0].host->stamped_bytes(), 11u << 20);
}

TEST_F(RoomPaceTest, WhoComesLaterIsSlowedAndWhoGoesIsForgotten) {
  add(400);
  for (int i = 0; i < 20; ++i) turn(static_cast<std::uint64_t>(kMiB), 10);
  add(400);
  turn(0, 1000);
  turn(0, 1000);
  EXPECT_NE(hosts_[1].host->granted(), kUnlimited);
  hosts_.pop_front();
  turn(0, 1000);
  EXPECT_TRUE(pace_.slows());
  pace_.let_go();
  EXPECT_EQ(hosts_[0].host->granted(), kUnlimited);
}

// Whatever room is made and hosts want: what is let in is what there was room for, and a write of
// each volume and second; and nobody waits for ever.
RC_GTEST_FIXTURE_PROP(RoomPaceTest, LetsInNoMoreThanThereIsRoomFor, ()) {
  const auto volumes = *rc::gen::inRange<std::size_t>(1, 5);
  for (std::size_t i = 0; i < volumes; ++i) {
    add(*rc::gen::inRange(0, 500), std::uint64_t{4096} << *rc::gen::inRange(0, 9));
  }
  pace_.ran_out();
  std::uint64_t largest = 0;
  for (const Host& host : hosts_) largest += host.each;
  for (int i = 0; i < 200; ++i) {
    const auto portion = static_cast<std::uint64_t>(*rc::gen::inRange(0, 1 << 22));
    turn(portion, 1);
    const auto seconds = static_cast<std::uint64_t>(i) / 100;
    RC_ASSERT(taken() <= made_ + (2 + seconds) * largest);
  }
  for (const Host& host : hosts_) {
    RC_ASSERT(host.wanted < host.each || host.host->stamped_bytes() > 0);
  }
}

}  // namespace
}  // namespace mariner::node

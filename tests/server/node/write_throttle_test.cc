#include "server/node/write_throttle.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "tests/support/manual_executor.h"

namespace mariner::node {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr double kMiB = 1u << 20;

// A host that writes at a rate, as far as it is let.
class SimulatedHost final : public volume::Paced {
 public:
  [[nodiscard]] std::uint64_t stamped_bytes() const override {
    return static_cast<std::uint64_t>(stamped_);
  }
  [[nodiscard]] bool writes_wait() const override { return waiting_ > 0; }
  void pace(std::uint64_t bytes) override { granted_ = bytes; }

  // Returns what was let in. What waits is bounded, as a host's queue is.
  double write(double wanted, double queue_bytes) {
    waiting_ = std::min(waiting_ + wanted, std::max(queue_bytes, wanted));
    const double room = std::max(0.0, static_cast<double>(granted_) - stamped_);
    const double let = std::min(waiting_, room);
    waiting_ -= let;
    stamped_ += let;
    return let;
  }

 private:
  double stamped_ = 0;
  double waiting_ = 0;
  std::uint64_t granted_ = volume::WritePace::kUnlimited;
};

// A log that is freed in the order in which it was written, and hosts that fill it.
class SimulatedLog {
 public:
  explicit SimulatedLog(double room_mib) : room_(room_mib * kMiB) {}
  ~SimulatedLog() { ::close(fd_); }
  SimulatedLog(const SimulatedLog&) = delete;
  SimulatedLog& operator=(const SimulatedLog&) = delete;

  struct Volume {
    std::shared_ptr<SimulatedHost> host = std::make_shared<SimulatedHost>();
    seconds window{0};
    double rate = 0;  // MiB a second, that it wants to write
    VersionTime newest{};
    double let = 0;               // bytes, since the last second
    std::vector<double> rates{};  // MiB a second
  };

  Volume& add(seconds window, double rate) {
    volumes.push_back({.window = window, .rate = rate});
    return volumes.back();
  }
  void run(seconds during) {
    for (seconds left = during; left.count() > 0; --left) second();
  }
  void let_go() {
    throttle_.let_go();
    slowed_ = false;
  }
  // Of the room, what the window of each volume keeps at most, until now.
  [[nodiscard]] double held_most() const { return held_most_; }

  std::deque<Volume> volumes;
  double amplification = 1;  // bytes of the log for a byte
  WriteThrottle& throttle() { return throttle_; }
  std::string told() {
    std::string all(static_cast<std::size_t>(::lseek(fd_, 0, SEEK_END)), ' ');
    EXPECT_EQ(::pread(fd_, all.data(), all.size(), 0), static_cast<ssize_t>(all.size()));
    return all;
  }

 private:
  void second() {
    constexpr auto kStep = milliseconds(10);
    for (auto step = 0; step < seconds(1) / kStep; ++step) {
      executor_.advance(kStep);
      for (Volume& volume : volumes) {
        const double let = volume.host->write(volume.rate * kMiB / 100, 4 * kMiB);
        if (let > 0) volume.newest = executor_.wall_time();
        volume.let += let;
        written_ += let * amplification;
      }
    }
    look();
    for (Volume& volume : volumes) {
      volume.rates.push_back(std::exchange(volume.let, 0) / kMiB);
      by_second_.resize(volume.rates.size(), 0);
    }
    by_second_.back() = written_;
    // What a volume keeps begins with its first write.
    const auto now = static_cast<std::ptrdiff_t>(by_second_.size());
    for (const Volume& volume : volumes) {
      const auto first = std::ranges::find_if(volume.rates, [](double rate) { return rate > 0; });
      const auto from = std::max(first - volume.rates.begin(), now - volume.window.count());
      if (from == now) continue;
      const double before = from == 0 ? 0 : by_second_[static_cast<std::size_t>(from - 1)];
      held_most_ = std::max(held_most_, (written_ - before) / room_);
    }
  }
  void look() {
    const VersionTime now = executor_.wall_time();
    if (!begun_) forecast_.begin(began_, now, 0);
    begun_ = true;
    forecast_.sample(now, static_cast<std::uint64_t>(written_));
    std::vector<WriteThrottle::Volume> all;
    for (std::size_t i = 0; i < volumes.size(); ++i) {
      all.push_back({VolumeId{static_cast<std::uint32_t>(i + 1)}, volumes[i].window, began_,
                     volumes[i].newest, volumes[i].host});
    }
    if (!slowed_) return;
    throttle_.look(forecast_,
                   {static_cast<std::uint64_t>(room_), static_cast<std::uint64_t>(written_)}, all);
  }

  const double room_;
  const int fd_ = ::memfd_create("log", 0);
  test::ManualExecutor executor_;
  const VersionTime began_ = executor_.wall_time();
  Log log_{{.fd = fd_}};
  WindowForecast forecast_;
  WriteThrottle throttle_{executor_, log_};
  bool begun_ = false;
  bool slowed_ = true;
  double written_ = 0;
  std::vector<double> by_second_;
  double held_most_ = 0;
};

double mean(const std::vector<double>& rates, seconds last) {
  double sum = 0;
  for (auto i = rates.end() - last.count(); i != rates.end(); ++i) sum += *i;
  return sum / static_cast<double>(last.count());
}

// The greatest change from one ten seconds to the next, as a share of the rate.
double roughest(const std::vector<double>& rates, seconds from) {
  double most = 0;
  double before = 0;
  for (auto i = rates.begin() + from.count(); rates.end() - i >= 10; i += 10) {
    const double ten = std::accumulate(i, i + 10, 0.0);
    if (before > 0) most = std::max(most, std::abs(ten - before) / before);
    before = ten;
  }
  return most;
}

TEST(WriteThrottle, NobodyIsSlowedWhoFits) {
  SimulatedLog log(600);
  const auto& host = log.add(minutes(10), 0.4);
  log.run(minutes(30));
  EXPECT_NEAR(mean(host.rates, minutes(29)), 0.4, 0.001);
  EXPECT_EQ(log.told(), "");
}

TEST(WriteThrottle, TheWindowHoldsUnderAnOverload) {
  SimulatedLog log(600);
  const auto& host = log.add(minutes(10), 5);
  log.run(minutes(60));
  EXPECT_LE(log.held_most(), 1);
  EXPECT_LT(roughest(host.rates, seconds(0)), 0.6) << "a burst of five times the rate ends";
  EXPECT_LT(roughest(host.rates, minutes(30)), 0.05) << "it has settled";
  EXPECT_NEAR(mean(host.rates, minutes(20)), 600.0 / 610, 0.03) << "the log is used";
  EXPECT_GT(*std::ranges::min_element(host.rates), 0.6) << "it never stood";
  EXPECT_NE(log.told().find("writes are slowed so that the log holds the windows"),
            std::string::npos);
  ASSERT_TRUE(log.throttle().pace_of({1}).has_value());
}

TEST(WriteThrottle, WhatTheLogIsWrittenBesideCounts) {
  SimulatedLog log(600);
  log.amplification = 2.5;
  const auto& host = log.add(minutes(10), 5);
  log.run(minutes(40));
  log.amplification = 1.2;
  log.run(minutes(10));
  log.amplification = 3;
  log.run(minutes(40));
  EXPECT_LE(log.held_most(), 1.02);
  EXPECT_NEAR(mean(host.rates, minutes(15)), 600.0 / 610 / 3, 0.03);
}

TEST(WriteThrottle, WhoUsesLessThanAShareIsNotSlowed) {
  SimulatedLog log(600);
  const auto& quiet = log.add(minutes(10), 0.2);
  const auto& greedy = log.add(minutes(10), 4);
  const auto& other = log.add(minutes(5), 4);
  log.run(minutes(60));
  EXPECT_LE(log.held_most(), 1);
  EXPECT_NEAR(mean(quiet.rates, minutes(59)), 0.2, 0.002);
  EXPECT_NEAR(mean(greedy.rates, minutes(10)), mean(other.rates, minutes(10)), 0.02);
  EXPECT_NEAR(mean(greedy.rates, minutes(10)), (600.0 / 610 - 0.2) / 2, 0.03);
}

TEST(WriteThrottle, AVolumeThatIsNotWrittenBindsNobody) {
  SimulatedLog log(600);
  log.add(minutes(600), 0);
  const auto& host = log.add(minutes(10), 2);
  log.run(minutes(40));
  EXPECT_NEAR(mean(host.rates, minutes(5)), 600.0 / 610, 0.03);
  log.volumes.front().rate = 0.01;
  log.run(minutes(5));
  EXPECT_LT(mean(host.rates, minutes(1)), 0.3) << "now there is a window of ten hours to hold";
}

TEST(WriteThrottle, AVolumeThatGoesIsForgotten) {
  SimulatedLog log(600);
  log.add(minutes(10), 4);
  log.add(minutes(10), 4);
  log.run(minutes(20));
  ASSERT_TRUE(log.throttle().pace_of({2}).has_value());
  log.volumes.pop_back();
  log.run(seconds(2));
  EXPECT_EQ(log.throttle().pace_of({2}), std::nullopt);
}

TEST(WriteThrottle, WhoIsLetGoIsNotSlowed) {
  SimulatedLog log(600);
  const auto& host = log.add(minutes(10), 4);
  log.run(minutes(20));
  ASSERT_LT(mean(host.rates, minutes(1)), 2);
  log.let_go();
  log.run(seconds(10));
  EXPECT_NEAR(mean(host.rates, seconds(5)), 4, 0.1);
}

// Several hosts, each with its bursts.
RC_GTEST_PROP(WriteThrottle, WindowsHoldWhateverHostsDo, ()) {
  SimulatedLog log(900);
  const auto hosts = *rc::gen::inRange(1, 4);
  for (int i = 0; i < hosts; ++i) log.add(seconds(*rc::gen::elementOf(std::vector{450, 900})), 0);
  log.amplification = *rc::gen::elementOf(std::vector<double>{1, 1.5, 3});
  for (int phase = 0; phase < 6; ++phase) {
    for (auto& volume : log.volumes) {
      volume.rate = *rc::gen::elementOf(std::vector<double>{0, 0.1, 0.4, 1, 2, 6});
    }
    log.run(seconds(*rc::gen::inRange(5, 600)));
  }
  // A second of the greatest of these rates may pass before the pace is felt, one is credit, and
  // time goes in steps of 10 ms.
  constexpr double kTwoSeconds = 2.01 * 3 * 6 * 3 / 900.0;
  RC_ASSERT(log.held_most() <= 1 + 1.0 / WindowPace::kLeewayShare + kTwoSeconds);
}

}  // namespace
}  // namespace mariner::node

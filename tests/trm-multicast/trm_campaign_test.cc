// What one node sends to others by multicast, from many seeds, over a network at its worst.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/support/seeds.h"
#include "tests/trm-multicast/trm_network.h"

namespace mariner::trm {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::for_seeds;

class Trial {
 public:
  explicit Trial(std::uint64_t seed)
      : receivers_(2 + seed % 3), network_(seed, receivers_, options(seed)) {}

  std::string operator()() {
    network_.run(milliseconds(600));  // probes
    for (int i = 0; i < 40 && network_.violated().empty(); ++i) {
      change();
      for (int writes = static_cast<int>(random() % 20); writes > 0; --writes) write();
      network_.run(milliseconds(random() % 60));
    }
    heal();
    // (A connection that was slow has much on its way.)
    for (int i = 0; i < 600 && network_.violated().empty() && !at_rest(); ++i) {
      network_.run(milliseconds(100));
    }
    if (!network_.violated().empty()) return network_.violated() + "\n" + network_.changes();
    if (!network_.unfinished().empty()) return "no rest: " + network_.unfinished();
    if (!at_rest()) return "not everybody takes part again:\n" + network_.changes();
    return {};
  }
  TrmNetwork& network() { return network_; }

 private:
  static SenderHub::Options options(std::uint64_t seed) {
    SenderHub::Options options;
    options.stream.window_bytes = 512 * 1024;
    options.stream.queued_bytes_max = 1u << 20;
    options.stream.burst_bytes = 64 * 1024;
    options.stream.rate.bytes_per_second_max = 20e6;
    if (seed % 3 == 0) options.stream.body_bytes_max = 8940;
    // Who lagged is to be back before the run ends.
    options.stream.membership.again_max = seconds(3);
    options.encrypted = seed % 2 == 0;
    return options;
  }
  std::uint64_t random() { return network_.random()(); }
  std::size_t any() { return random() % receivers_; }
  [[nodiscard]] bool at_rest() const {
    return network_.unfinished().empty() && network_.all_take_part();
  }

  void write() {
    constexpr std::size_t kSizes[] = {0, 512, 4096, 4096, 8192, 8192, 65536, 262144, 5000};
    std::set<std::size_t> to;
    for (std::size_t i = 0; i < receivers_; ++i) {
      if (random() % 8 != 0) to.insert(i);
    }
    network_.send(random() % TrmNetwork::kFlows, to, kSizes[random() % std::size(kSizes)]);
  }
  void change() {
    TrmNetwork::Path& path = network_.path(any());
    const std::size_t flow = random() % TrmNetwork::kFlows;
    switch (random() % 16) {
      case 0: path.loss = 0.01 * static_cast<double>(random() % 30); break;
      case 1: path.doubled = 0.1; break;
      case 2: path.forged = 0.2; break;
      case 3: path.blocked = true; break;
      case 4: path.blocked = false; break;
      case 5: path.jitter = microseconds(random() % 2000 + 1); break;
      case 6: path.tcp_bytes_per_second = 1e6; break;
      case 7: path.tcp_bytes_per_second = 125e6; break;
      case 8: path.paused = !path.paused; break;
      case 9: network_.disconnect(any()); break;
      case 10: network_.connect(any()); break;
      case 11: network_.block_socket(random() % 2 == 0); break;
      case 12: network_.end_flow(flow); break;
      case 13: network_.begin_flow(flow); break;
      case 14: path.deaf = random() % 2 == 0; break;
      default: path = {}; break;
    }
  }
  // Who could not listen is asked again on a new connection.
  void heal() {
    network_.block_socket(false);
    for (std::size_t i = 0; i < receivers_; ++i) {
      network_.path(i) = {};
      if (network_.refused(i)) network_.disconnect(i);
      network_.connect(i);
    }
    for (std::size_t flow = 0; flow < TrmNetwork::kFlows; ++flow) network_.begin_flow(flow);
  }

  const std::size_t receivers_;
  TrmNetwork network_;
};

TEST(TrmCampaign, EveryFrameOnceInOrderWithItsPayload) {
  std::uint64_t referring = 0;
  std::uint64_t carried = 0;
  std::uint64_t repaired = 0;
  std::uint64_t strange = 0;
  for_seeds(100, [&](std::uint64_t seed) {
    Trial trial(seed);
    EXPECT_EQ(trial(), "");
    referring += trial.network().referring_frames();
    carried += trial.network().carried_frames();
    repaired += trial.network().hub().repaired_bytes();
    strange += trial.network().strange_datagrams();
  });
  std::printf(
      "%llu frames by multicast, %llu carried, %llu bytes repaired, %llu strange datagrams\n",
      static_cast<unsigned long long>(referring), static_cast<unsigned long long>(carried),
      static_cast<unsigned long long>(repaired), static_cast<unsigned long long>(strange));
  EXPECT_GT(referring, 1000u);
  EXPECT_GT(carried, 1000u);
  EXPECT_GT(repaired, 100'000u);
  EXPECT_GT(strange, 1000u);
}

}  // namespace
}  // namespace mariner::trm

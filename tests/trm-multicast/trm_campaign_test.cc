// Sender and receivers of a stream, from many seeds, over a network at its worst.
#include <gtest/gtest.h>

#include <bit>
#include <cstdio>

#include "tests/support/seeds.h"
#include "tests/trm-multicast/trm_network.h"

namespace mariner::trm {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::for_seeds;

StreamSender::Options small_options() {
  StreamSender::Options options;
  options.window_bytes = 512 * 1024;
  options.queued_bytes_max = 1u << 20;
  options.burst_bytes = 64 * 1024;
  options.rate.bytes_per_second_max = 20e6;
  return options;
}

class Trial {
 public:
  explicit Trial(std::uint64_t seed)
      : network_(seed, 2 + seed % 3, options(seed)), receivers_(2 + seed % 3) {}

  std::string operator()() {
    network_.run(milliseconds(600));  // probes
    for (int i = 0; i < 40 && network_.violated().empty(); ++i) {
      change();
      for (int writes = static_cast<int>(random() % 20); writes > 0; --writes) write();
      network_.run(milliseconds(random() % 60));
    }
    heal();
    for (int i = 0; i < 600 && network_.violated().empty(); ++i) {
      network_.run(milliseconds(100));
      if (network_.unfinished().empty() &&
          std::popcount(network_.sender().admitted()) == static_cast<int>(receivers_)) {
        break;
      }
    }
    if (!network_.violated().empty()) return network_.violated();
    if (!network_.unfinished().empty()) return "no rest: " + network_.unfinished();
    if (std::popcount(network_.sender().admitted()) != static_cast<int>(receivers_)) {
      return "not everybody takes part again:\n" + network_.changes();
    }
    return {};
  }
  TrmNetwork& network() { return network_; }

 private:
  static StreamSender::Options options(std::uint64_t seed) {
    StreamSender::Options options = small_options();
    if (seed % 3 == 0) options.body_bytes_max = 8940;
    // Who lagged is to be back before the run ends.
    options.membership.again_max = seconds(3);
    return options;
  }
  std::uint64_t random() { return network_.random()(); }
  ReceiverIndex any() { return static_cast<ReceiverIndex>(random() % receivers_); }

  void write() {
    constexpr std::size_t kSizes[] = {0, 512, 4096, 4096, 8192, 8192, 65536, 262144, 5000};
    ReceiverSet to = (ReceiverSet{1} << receivers_) - 1;
    if (random() % 5 == 0) to = static_cast<ReceiverSet>(random());
    network_.send(to, kSizes[random() % std::size(kSizes)]);
  }
  void change() {
    TrmNetwork::Path& path = network_.path(any());
    switch (random() % 12) {
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
      default: path = {}; break;
    }
  }
  void heal() {
    for (ReceiverIndex i = 0; i < receivers_; ++i) {
      network_.path(i) = {};
      network_.connect(i);
    }
  }

  TrmNetwork network_;
  const std::size_t receivers_;
};

TEST(TrmCampaign, EveryFrameOnceInOrderWithItsPayload) {
  std::uint64_t referring = 0;
  std::uint64_t carried = 0;
  std::uint64_t repaired = 0;
  for_seeds(60, [&](std::uint64_t seed) {
    Trial run(seed);
    EXPECT_EQ(run(), "");
    referring += run.network().referring_frames();
    carried += run.network().carried_frames();
    repaired += run.network().repaired();
  });
  std::printf("%llu frames by multicast, %llu carried, %llu bytes repaired\n",
              static_cast<unsigned long long>(referring), static_cast<unsigned long long>(carried),
              static_cast<unsigned long long>(repaired));
  EXPECT_GT(referring, 1000u);
  EXPECT_GT(carried, 1000u);
  EXPECT_GT(repaired, 100'000u);
}

}  // namespace
}  // namespace mariner::trm

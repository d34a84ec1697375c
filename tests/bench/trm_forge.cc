// mariner-trm-forge: somebody on the segment who has no key, for measuring what he can do.
//
//   mariner-trm-forge --interface 10.77.0.5 --group 239.192.7.1:6003 --count 1000000 --seconds 20
//
// Joins the group, takes what it hears, and sends into the group at an even rate, in turn: random
// bytes; what it heard, as it was; and what it heard with another body, another place, another tag
// or another length. Prints what it sent as a JSON object.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "proto/bytes.h"
#include "proto/endpoint.h"
#include "trm-multicast/datagram.h"
#include "trm-multicast/group_socket.h"

namespace mariner::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kHeardMax = 4096;
constexpr std::size_t kPerTurn = 64;

struct Options {
  std::string interface;
  std::string group;
  std::uint64_t count = 1'000'000;
  double seconds = 20;
  std::size_t bytes_max = 200;    // of what is made up: what is heard is sent as long as it is
  std::uint64_t replays_of = 16;  // one in so many is a replay, which is as long as the real ones
  std::uint64_t seed = 1;
};

[[noreturn]] void give_up(const std::string& what) {
  fmt::print(stderr, "mariner-trm-forge: {}\n", what);
  std::exit(1);
}

class Forger {
 public:
  Forger(const Options& options, trm::GroupSender sender, trm::GroupListener listener)
      : options_(options),
        sender_(std::move(sender)),
        listener_(std::move(listener)),
        random_(options.seed) {}

  void run() {
    const auto began = Clock::now();
    while (sent_ < options_.count) {
      listen();
      const double passed = std::chrono::duration<double>(Clock::now() - began).count();
      const auto due =
          std::min(options_.count, static_cast<std::uint64_t>(passed / options_.seconds *
                                                              static_cast<double>(options_.count)));
      for (std::size_t i = 0; i < kPerTurn && sent_ < due; ++i) send(make());
      if (sent_ >= due) std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    fmt::print(
        "{{\"sent\": {}, \"random\": {}, \"replayed\": {}, \"forged\": {}, \"heard\": {}, "
        "\"seconds\": {:.3f}}}\n",
        sent_, random_ones_, replayed_, forged_, heard_ever_,
        std::chrono::duration<double>(Clock::now() - began).count());
  }

 private:
  void listen() {
    (void)listener_.receive([this](std::span<const std::byte> datagram) {
      ++heard_ever_;
      Bytes copy(datagram.begin(), datagram.end());
      if (heard_.size() < kHeardMax) {
        heard_.push_back(std::move(copy));
      } else {
        heard_[random_() % kHeardMax] = std::move(copy);
      }
    });
  }
  Bytes make() {
    if (heard_.empty() || sent_ % 3 == 0) {
      ++random_ones_;
      Bytes bytes(1 + random_() % options_.bytes_max);
      for (std::byte& each : bytes) each = static_cast<std::byte>(random_());
      return bytes;
    }
    Bytes bytes = heard_[random_() % heard_.size()];
    if (sent_ % options_.replays_of == 1) {
      ++replayed_;
      return bytes;
    }
    ++forged_;
    forge(bytes);
    return bytes;
  }
  // Short: the header of a real one, and a body of its own making.
  void forge(Bytes& bytes) {
    bytes.resize(
        std::min(bytes.size(), trm::kDatagramOverheadBytes + 1 + random_() % options_.bytes_max));
    switch (random_() % 4) {
      case 0: bytes.back() ^= std::byte{1}; break;  // the tag
      case 1:                                       // another place, soon to come
        store_le(bytes.data() + 8,
                 load_le<std::uint64_t>(bytes.data() + 8) + random_() % (1u << 20));
        break;
      case 2:
        bytes[trm::kDatagramHeaderBytes] ^= static_cast<std::byte>(1 + random_() % 255);
        break;
      default: bytes[1 + random_() % 19] ^= static_cast<std::byte>(1 + random_() % 255); break;
    }
  }
  void send(const Bytes& bytes) {
    trm::DatagramBatch batch{bytes, bytes.size()};
    const auto sent = sender_.send(std::span(&batch, 1));
    if (!sent) give_up(sent.error().message);
    sent_ += *sent;
  }

  const Options options_;
  trm::GroupSender sender_;
  trm::GroupListener listener_;
  std::mt19937_64 random_;
  std::vector<Bytes> heard_;
  std::uint64_t heard_ever_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t random_ones_ = 0;
  std::uint64_t replayed_ = 0;
  std::uint64_t forged_ = 0;
};

void run(const Options& options) {
  const Result<Endpoint> group = parse_endpoint(options.group);
  if (!group) give_up(group.error().message);
  const trm::GroupAddress address{group->address, group->port, options.interface};
  auto sender = trm::GroupSender::open(address);
  if (!sender) give_up(sender.error().message);
  auto listener = trm::GroupListener::open(address);
  if (!listener) give_up(listener.error().message);
  Forger(options, std::move(*sender), std::move(*listener)).run();
}

}  // namespace
}  // namespace mariner::bench

int main(int argc, char** argv) {
  mariner::bench::Options options;
  CLI::App app{"Somebody without a key on the segment of a multicast group"};
  app.add_option("--interface", options.interface, "an IPv4 address of this host")->required();
  app.add_option("--group", options.group, "ADDRESS:PORT")->required();
  app.add_option("--count", options.count);
  app.add_option("--seconds", options.seconds);
  app.add_option("--bytes-max", options.bytes_max, "of what is made up")
      ->check(CLI::Range(1, 1400));
  app.add_option("--seed", options.seed);
  CLI11_PARSE(app, argc, argv);
  mariner::bench::run(options);
  return 0;
}

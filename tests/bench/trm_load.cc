// mariner-trm-load: one sender and its receivers, memory to memory, each in a process of its own,
// and in a network namespace of its own if it is named, for measuring the transport.
//
//   mariner-trm-load --node a=10.77.0.1@mariner-lab-a --node b=10.77.0.2@mariner-lab-b ...
//                    --way multicast|connections|plain --write-bytes 8192 --outstanding 64
//                    --seconds 5
//
// The first node sends. Prints a JSON object a line: the processes' ids first, then, every
// interval, what each receiver has got by then (bytes of payloads that came whole, in order, and
// are the ones that were sent), and the result. Needs root for the namespaces.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "proto/payload_crc.h"
#include "tests/bench/cpu_time.h"
#include "tests/bench/trm_writer.h"

namespace mariner::bench {
namespace {

using std::chrono::duration;
using std::chrono::duration_cast;
using std::chrono::nanoseconds;

constexpr auto kUpTimeMax = std::chrono::seconds(20);

struct LoadOptions {
  std::vector<std::string> nodes;
  std::string way = "multicast";
  TrmWayOptions ways;
  TrmWriter::Options writer;
  double warmup_s = 1;
  double seconds = 5;
  double interval_s = 0;  // 0: no lines meanwhile
  bool joined = true;     // multicast: begins when all take part
  bool every_word = false;
  bool checksums = true;  // receivers compute those of what has come without, as a log does
  bool pin = false;       // the sender to the first processor, receivers to the second one
};

struct Room {
  TrmNode node;
  std::string network;  // a namespace; empty: this one
};

[[noreturn]] void give_up(const std::string& what) {
  fmt::print(stderr, "mariner-trm-load: {}\n", what);
  std::exit(1);
}

std::vector<Room> rooms_of(const std::vector<std::string>& texts) {
  std::vector<Room> rooms;
  for (const std::string& text : texts) {
    const std::size_t is = text.find('=');
    const std::size_t at = text.find('@');
    if (is == std::string::npos) give_up("--node " + text + ": expected NAME=ADDRESS[@NAMESPACE]");
    rooms.push_back(
        {{text.substr(0, is), text.substr(is + 1, at == std::string::npos ? at : at - is - 1)},
         at == std::string::npos ? "" : text.substr(at + 1)});
  }
  return rooms;
}

void enter(const Room& room, std::size_t number, bool pin) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGPIPE, SIG_IGN);
  if (!room.network.empty()) {
    const int fd = open(("/run/netns/" + room.network).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) != 0)
      give_up("namespace " + room.network + " cannot be entered");
    close(fd);
  }
  if (!pin) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(number == 0 ? 0 : 1, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) give_up("a process cannot be pinned");
}

// ---- receivers

class Receiver {
 public:
  Receiver(const LoadOptions& options, TrmReceiverCounters& counters)
      : options_(options), counters_(counters) {}

  std::uint64_t take(std::uint64_t write, const PayloadSlice& payload) {
    if (options_.checksums) sum_ ^= payload_crc32c(payload);
    const bool good =
        write > last_ && is_trm_payload(write, payload.bytes(), options_.writer.content);
    if (!good) {
      ++counters_.bad;
      return last_;
    }
    counters_.missed += write - last_ - 1;
    last_ = write;
    ++counters_.writes;
    counters_.bytes += payload.length;
    return last_;
  }
  void tick(node::EventLoop& loop) {
    const CpuTime cpu = CpuTime::of_self();
    counters_.cpu_us = static_cast<std::uint64_t>(cpu.total_s() * 1e6);
    loop.after(std::chrono::milliseconds(20), [this, &loop] { tick(loop); });
  }

 private:
  const LoadOptions& options_;
  TrmReceiverCounters& counters_;
  std::uint64_t last_ = 0;
  std::uint32_t sum_ = 0;
};

[[noreturn]] void receive(const LoadOptions& options, std::size_t number,
                          const peer::NodeIdentity& identity, TrmCounters& counters) {
  node::EventLoop loop;
  Receiver receiver(options, counters.receivers[number - 1]);
  const auto receiving = make_receiving(loop, options.ways, number, identity,
                                        [&](std::uint64_t write, const PayloadSlice& payload) {
                                          return receiver.take(write, payload);
                                        });
  receiver.tick(loop);
  ++counters.ready;
  loop.run();
  std::_Exit(0);
}

// ---- the sender

class Run {
 public:
  Run(const LoadOptions& options, const peer::NodeIdentity& identity, TrmCounters& counters)
      : options_(options), counters_(counters), writer_(loop_, options.writer) {
    sending_ = make_sending(
        loop_, options.ways, identity,
        {.up = [this](std::size_t receiver) { writer_.up(receiver); },
         .down = [this](std::size_t receiver) { writer_.down(receiver); },
         .acknowledged = [this](std::size_t receiver,
                                std::uint64_t write) { writer_.acknowledged(receiver, write); }});
    writer_.attach(*sending_);
  }

  void run() {
    sending_->begin();
    const auto began = loop_.monotonic_time();
    loop_.run_until(
        [&] { return writer_.all_up() || loop_.monotonic_time() - began > kUpTimeMax; });
    if (!writer_.all_up()) give_up("not all receivers can be reached");
    if (options_.ways.kind == TrmWayOptions::Kind::kMulticast && options_.joined) {
      loop_.run_until([&] {
        return sending_->traffic().taking_part == options_.writer.receivers ||
               loop_.monotonic_time() - began > kUpTimeMax;
      });
    }
    writer_.begin();
    run_for(options_.warmup_s);
    writer_.forget();
    const std::vector<std::uint64_t> before = bytes();
    const CpuTime cpu_before = CpuTime::of_self();
    const std::optional<double> processor_before = first_processor_s();
    const WireBytes wire_before = WireBytes::of_self();
    const std::vector<std::uint64_t> cpus_before = cpus();
    const TrmTraffic traffic_before = sending_->traffic();
    zero_ = loop_.monotonic_time();
    if (options_.interval_s > 0) line();
    run_for(options_.seconds);
    const double seconds = duration<double>(loop_.monotonic_time() - zero_).count();
    const CpuTime cpu = CpuTime::of_self() - cpu_before;
    const std::optional<double> processor_after = first_processor_s();
    const WireBytes wire = WireBytes::of_self() - wire_before;
    const TrmTraffic traffic = sending_->traffic();
    const std::vector<std::uint64_t> after = bytes();
    const std::vector<std::uint64_t> cpus_after = cpus();
    done_ = true;
    writer_.stop();
    std::vector<double> rates;
    std::vector<double> cpu_s;
    std::uint64_t bad = 0;
    std::uint64_t missed = 0;
    for (std::size_t i = 0; i < after.size(); ++i) {
      rates.push_back(static_cast<double>(after[i] - before[i]) / seconds);
      cpu_s.push_back(static_cast<double>(cpus_after[i] - cpus_before[i]) / 1e6);
      bad += counters_.receivers[i].bad;
      missed += counters_.receivers[i].missed;
    }
    std::vector<double> files = writer_.files_s();
    std::ranges::sort(files);
    const auto us = [&](double percent) {
      return static_cast<double>(writer_.latency().percentile(percent)) / 1e3;
    };
    fmt::print(
        "{{\"seconds\": {:.6f}, \"bytes_per_second\": {}, \"completed\": {}, \"latency_us\": "
        "{{\"mean\": {:.1f}, \"p50\": {:.1f}, \"p99\": {:.1f}, \"max\": {:.1f}}}, ",
        seconds, rates, writer_.completed(), writer_.latency().mean() / 1e3, us(50), us(99),
        us(100));
    fmt::print(
        "\"wire\": {{\"sent\": {}, \"sent_packets\": {}, \"received\": {}, \"received_packets\": "
        "{}}}, "
        "\"sender_cpu_s\": {{\"user\": {:.6f}, \"system\": {:.6f}}}, \"receiver_cpu_s\": {}, ",
        wire.sent, wire.sent_packets, wire.received, wire.received_packets, cpu.user_s,
        cpu.system_s, cpu_s);
    fmt::print(
        "\"multicast_bytes\": {}, \"carried_bytes\": {}, \"repaired_bytes\": {}, \"dismissals\": "
        "{}, "
        "\"taking_part\": {}, ",
        traffic.multicast_bytes - traffic_before.multicast_bytes,
        traffic.carried_bytes - traffic_before.carried_bytes,
        traffic.repaired_bytes - traffic_before.repaired_bytes,
        traffic.dismissals - traffic_before.dismissals, traffic.taking_part);
    const bool both = processor_before && processor_after;
    fmt::print("\"processor_s\": {}, ",
               both ? fmt::format("{:.6f}", *processor_after - *processor_before) : "null");
    fmt::print("\"bad\": {}, \"missed\": {}, \"left_out\": {}, \"files_s\": {}}}\n", bad, missed,
               writer_.left_out(), files);
    std::fflush(stdout);
  }

 private:
  [[nodiscard]] std::vector<std::uint64_t> bytes() const {
    std::vector<std::uint64_t> all;
    for (std::size_t i = 0; i < options_.writer.receivers; ++i) {
      all.push_back(counters_.receivers[i].bytes);
    }
    return all;
  }
  [[nodiscard]] std::vector<std::uint64_t> cpus() const {
    std::vector<std::uint64_t> all;
    for (std::size_t i = 0; i < options_.writer.receivers; ++i) {
      all.push_back(counters_.receivers[i].cpu_us);
    }
    return all;
  }
  void run_for(double seconds) {
    bool over = false;
    loop_.after(duration_cast<nanoseconds>(duration<double>(seconds)), [&over] { over = true; });
    loop_.run_until([&over] { return over; });
  }
  void line() {
    if (done_) return;
    fmt::print(
        "{{\"t\": {:.4f}, \"bytes\": {}, \"completed\": {}, "
        "\"taking_part\": {}, \"multicast_bytes\": {}}}\n",
        duration<double>(loop_.monotonic_time() - zero_).count(), bytes(), writer_.completed(),
        sending_->traffic().taking_part, sending_->traffic().multicast_bytes);
    std::fflush(stdout);
    loop_.after(duration_cast<nanoseconds>(duration<double>(options_.interval_s)),
                [this] { line(); });
  }

  const LoadOptions& options_;
  TrmCounters& counters_;
  node::EventLoop loop_;
  TrmWriter writer_;
  std::unique_ptr<TrmSending> sending_;
  nanoseconds zero_{};
  bool done_ = false;
};

peer::NodeIdentity identity_of(const peer::Authority& authority, const std::string& node,
                               peer::WallTime now) {
  const peer::NodeName name{.cluster = "bench", .node = node};
  const peer::PrivateKey key = peer::PrivateKey::generate().value();
  const std::string request = peer::make_signing_request(key).value();
  return {.name = name,
          .authority = authority.certificate,
          .certificate = peer::sign_node(authority, name, request, now).value(),
          .key = key};
}

int run(const LoadOptions& options) {
  const std::vector<Room> rooms = rooms_of(options.nodes);
  TrmCounters& counters = TrmCounters::shared();
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const peer::Authority authority = peer::make_authority("bench", now).value();
  std::vector<peer::NodeIdentity> identities;
  for (const Room& room : rooms) identities.push_back(identity_of(authority, room.node.name, now));

  std::vector<pid_t> pids;
  for (std::size_t i = 1; i < rooms.size(); ++i) {
    const pid_t pid = fork();
    if (pid < 0) give_up("no process");
    if (pid == 0) {
      enter(rooms[i], i, options.pin);
      receive(options, i, identities[i], counters);
    }
    pids.push_back(pid);
  }
  while (counters.ready < pids.size()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (const pid_t gone = waitpid(-1, nullptr, WNOHANG); gone > 0) give_up("a receiver has ended");
  }
  enter(rooms[0], 0, options.pin);
  fmt::print("{{\"sender\": {}, \"receivers\": {}}}\n", getpid(), pids);
  std::fflush(stdout);
  {
    Run run(options, identities[0], counters);
    run.run();
    // What is under way needs no end: the receivers are told.
    for (const pid_t pid : pids) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    std::_Exit(0);
  }
}

}  // namespace
}  // namespace mariner::bench

int main(int argc, char** argv) {
  using namespace mariner::bench;
  LoadOptions options;
  double rate_limit_bits = 0;
  bool plain_text = false;
  CLI::App app{"A load on the multicast transport, for measuring"};
  app.add_option("--node", options.nodes, "NAME=ADDRESS[@NAMESPACE]; the first one sends")
      ->required();
  app.add_option("--way", options.way)->check(CLI::IsMember({"multicast", "connections", "plain"}));
  app.add_option("--port", options.ways.port)->default_val(7401);
  app.add_option("--group", options.ways.group)->default_val("239.192.7.1:6003");
  app.add_option("--rate-limit", rate_limit_bits, "bits of payload a second");
  app.add_flag("--plain-text", plain_text, "datagrams are authenticated, not encrypted");
  app.add_option("--write-bytes", options.writer.write_bytes)->check(CLI::Range(8, 4 << 20));
  app.add_option("--outstanding", options.writer.outstanding_max);
  app.add_option("--aggregate", options.writer.aggregate, "writes issued at a time");
  app.add_option("--answers", options.writer.answers,
                 "the receiver by which a write is over; 0: all");
  app.add_option("--lag-bytes-max", options.writer.lag_bytes_max);
  app.add_option("--file-bytes", options.writer.file_bytes, "one file after another, with pauses");
  app.add_option("--warmup", options.warmup_s);
  app.add_option("--seconds", options.seconds);
  app.add_option("--interval", options.interval_s, "seconds between lines");
  app.add_flag("!--at-once", options.joined, "does not wait until all take part in multicast");
  app.add_flag("--every-word", options.every_word, "receivers compare every word");
  app.add_flag("!--no-checksums", options.checksums);
  app.add_flag("--pin", options.pin);
  CLI11_PARSE(app, argc, argv);
  for (const auto& room : rooms_of(options.nodes)) options.ways.nodes.push_back(room.node);
  options.ways.kind = options.way == "multicast"     ? TrmWayOptions::Kind::kMulticast
                      : options.way == "connections" ? TrmWayOptions::Kind::kConnections
                                                     : TrmWayOptions::Kind::kPlain;
  options.ways.encrypted = !plain_text;
  options.ways.bytes_per_second_max = rate_limit_bits / 8;
  options.writer.receivers = options.nodes.size() - 1;
  options.writer.content = options.every_word ? TrmContent::kEveryWord : TrmContent::kStamps;
  if (options.writer.receivers < 1 || options.writer.receivers > kTrmReceiversMax) {
    give_up(fmt::format("expected 1 to {} receivers, found {}", kTrmReceiversMax,
                        options.writer.receivers));
  }
  return run(options);
}

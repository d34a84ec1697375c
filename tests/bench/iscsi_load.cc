// mariner-iscsi-load: a closed-loop load on iSCSI LUNs, for measuring.
//
//   mariner-iscsi-load URL --write --random --block 4K --depth 32 --seconds 15 ...
//
// Keeps `depth` commands outstanding in each session, verifies nothing, and prints one JSON object:
// operations, rate, latency percentiles, and the CPU time that the server (--server-pid) and this
// program used while it measured. Ends at --seconds or when --bytes-max were written, warm-up
// included.
//
// Single-threaded over all sessions, on libiscsi. Its iovectors are kept by libiscsi until a
// command ends, so each slot owns its own. What libiscsi itself costs for a command bounds what can
// be seen: a null store on the other side shows that bound. MaxRecvDataSegmentLength,
// FirstBurstLength and MaxBurstLength cannot be set through libiscsi (it offers 256 KiB for each):
// the target's side decides them.
#include <poll.h>

extern "C" {
#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>
}

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proto/error.h"
#include "tests/bench/block_pattern.h"
#include "tests/bench/cpu_time.h"
#include "tests/bench/iscsi_unit.h"
#include "tests/bench/json_text.h"
#include "tests/bench/latency_histogram.h"
#include "tests/bench/latency_json.h"
#include "tests/bench/load_payload.h"

namespace mariner::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kDepthMax = 1024;
constexpr std::size_t kSessionsMax = 64;
constexpr std::chrono::seconds kStallMax{30};
constexpr std::size_t kSlowMax = 100'000;  // that are told one by one

struct LoadOptions {
  std::string url;
  std::string initiator = "iqn.2026-11.org.mariner:bench-load";
  bool write = false;
  bool random = false;
  bool fua = false;
  bool immediate_data = true;
  bool initial_r2t = false;
  std::uint32_t block_bytes = 4096;
  std::size_t depth = 1;  // of each session
  std::size_t sessions = 1;
  std::uint64_t region_from = 0;   // bytes from the LUN's beginning; whole blocks
  std::uint64_t region_bytes = 0;  // 0: up to its end
  double warmup_s = 1;
  double seconds = 10;          // measured, after the warm-up
  std::uint64_t bytes_max = 0;  // moved in all; 0: no limit
  std::uint64_t seed = 1;
  // Of a random load: so many percent of it go to so many percent of the blocks.
  unsigned hot_load = 0;
  unsigned hot_blocks = 0;
  // Each block at most once: as many as bytes_max says, the same ones with every seed.
  bool distinct = false;
  // These, in their order, again and again; of one session. Empty: as the rest says.
  std::vector<std::uint32_t> blocks;
  // Each 4 KiB of what is written begin with their place on the LUN and the seed, 8 bytes each.
  bool stamp = false;
  // Every command writes bytes that were never written before, so many percent of which compress to
  // nothing; without: each slot has bytes of its own, and writes them again and again.
  std::optional<unsigned> compressible;
  // Commands that last longer are told one by one, when each began and ended; 0: none.
  std::uint64_t slow_us = 0;
  int server_pid = 0;
};

// What the measured part needs from all sessions, and the end of it all.
class Measure {
 public:
  explicit Measure(const LoadOptions& options)
      : begin_(Clock::now() + to_duration(options.warmup_s)),
        end_(begin_ + to_duration(options.seconds)),
        bytes_max_(options.bytes_max),
        slow_min_(std::chrono::microseconds(options.slow_us)) {}

  [[nodiscard]] bool wants_more(Clock::time_point now) const {
    return !failed() && now < end_ && (bytes_max_ == 0 || bytes_begun_ < bytes_max_);
  }
  void begun(std::uint32_t bytes) { bytes_begun_ += bytes; }
  void completed(Clock::time_point issued, Clock::time_point now) {
    last_ = now;
    if (now < begin_) return;
    latencies_.record(static_cast<std::uint64_t>(ns(now - issued)));
    if (slow_min_.count() != 0 && now - issued > slow_min_ && slow_.size() < kSlowMax) {
      slow_.emplace_back(ns(issued.time_since_epoch()), ns(now.time_since_epoch()));
    }
  }
  void fail(std::string what) {
    if (failure_.empty()) failure_ = std::move(what);
  }
  [[nodiscard]] bool failed() const { return !failure_.empty(); }
  [[nodiscard]] const std::string& failure() const { return failure_; }
  [[nodiscard]] Clock::time_point begin() const { return begin_; }
  [[nodiscard]] Clock::time_point last() const { return last_; }
  [[nodiscard]] const LatencyHistogram& latencies() const { return latencies_; }
  // When they began and ended, by the monotonic clock.
  [[nodiscard]] const std::vector<std::pair<std::int64_t, std::int64_t>>& slow() const {
    return slow_;
  }

 private:
  static std::int64_t ns(Clock::duration time) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
  }
  static Clock::duration to_duration(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  Clock::time_point begin_;
  Clock::time_point end_;
  Clock::time_point last_{};
  std::uint64_t bytes_max_;
  std::uint64_t bytes_begun_ = 0;
  Clock::duration slow_min_;
  std::vector<std::pair<std::int64_t, std::int64_t>> slow_;
  LatencyHistogram latencies_;
  std::string failure_;
};

class Session {
 public:
  Session(const LoadOptions& options, Measure& measure, std::size_t number)
      : options_(options),
        measure_(measure),
        number_(number),
        payload_({.seed = options.seed + number,
                  .stamp_as = options.seed,
                  .compressible = options.write ? options.compressible : std::nullopt,
                  .stamp = options.stamp}) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Result<void> connect();
  // Fills the queue to its depth.
  void start();
  [[nodiscard]] pollfd events() const { return unit_.events(); }
  void serve(short revents);
  [[nodiscard]] std::size_t outstanding() const { return outstanding_; }
  void logout() { unit_.logout(); }

 private:
  struct Slot {
    Session* session;
    std::vector<unsigned char> data;
    scsi_iovec vector{};
    Clock::time_point issued;
  };

  static void completed(iscsi_context*, int status, void* command_data, void* private_data);
  void send(Slot& slot, Clock::time_point now);

  const LoadOptions& options_;
  Measure& measure_;
  std::size_t number_;
  LoadPayload payload_;
  std::optional<BlockPattern> pattern_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::size_t outstanding_ = 0;
  IscsiUnit unit_;  // its end completes what is outstanding
};

Result<void> Session::connect() {
  const std::string name = options_.initiator + (number_ == 0 ? "" : std::to_string(number_));
  if (auto connected = unit_.connect({.url = options_.url,
                                      .initiator = name,
                                      .immediate_data = options_.immediate_data,
                                      .initial_r2t = options_.initial_r2t});
      !connected) {
    return connected;
  }
  const std::uint64_t bytes = unit_.size_bytes();
  if (options_.block_bytes % unit_.lba_bytes() != 0 || options_.region_from > bytes ||
      options_.region_bytes > bytes - options_.region_from) {
    return Error{ErrorCode::kInvalidArgument,
                 "the LUN has " + std::to_string(bytes) + " bytes in blocks of " +
                     std::to_string(unit_.lba_bytes()) +
                     "; --block, --region-from and --region-bytes must fit"};
  }
  const std::uint64_t region_bytes =
      options_.region_bytes == 0 ? bytes - options_.region_from : options_.region_bytes;
  pattern_.emplace(BlockPattern::Options{
      .first = options_.region_from / options_.block_bytes,
      .count = region_bytes / options_.block_bytes,
      .random = options_.random,
      .session = number_,
      .sessions = options_.sessions,
      .seed = options_.seed,
      .hot_load = options_.hot_load,
      .hot_blocks = options_.hot_blocks,
      .distinct = options_.distinct ? options_.bytes_max / options_.block_bytes : 0,
      .blocks = options_.blocks});
  if (!pattern_->valid()) {
    return Error{ErrorCode::kInvalidArgument,
                 "the region is smaller than a block, or has not all of --blocks-from"};
  }
  return {};
}

void Session::start() {
  const auto now = Clock::now();
  for (std::size_t i = 0; i < options_.depth; ++i) {
    auto slot = std::make_unique<Slot>();
    slot->session = this;
    slot->data.resize(options_.block_bytes);
    payload_.fill(slot->data);
    slot->vector = {slot->data.data(), slot->data.size()};
    slots_.push_back(std::move(slot));
    send(*slots_.back(), now);
  }
}

void Session::send(Slot& slot, Clock::time_point now) {
  const std::uint64_t lba = pattern_->next() * (options_.block_bytes / unit_.lba_bytes());
  const auto block = static_cast<int>(unit_.lba_bytes());
  payload_.prepare(slot.data, lba * unit_.lba_bytes());
  slot.issued = now;
  scsi_task* task =
      options_.write
          ? iscsi_write16_iov_task(unit_.context(), unit_.lun(), lba, nullptr, options_.block_bytes,
                                   block, 0, 0, options_.fua ? 1 : 0, 0, 0, completed, &slot,
                                   &slot.vector, 1)
          : iscsi_read16_iov_task(unit_.context(), unit_.lun(), lba, options_.block_bytes, block, 0,
                                  0, options_.fua ? 1 : 0, 0, 0, completed, &slot, &slot.vector, 1);
  if (task == nullptr) return measure_.fail(unit_.failure("sending a command").message);
  ++outstanding_;
  measure_.begun(options_.block_bytes);
}

void Session::completed(iscsi_context* context, int status, void* command_data,
                        void* private_data) {
  auto& slot = *static_cast<Slot*>(private_data);
  Session& session = *slot.session;
  const auto now = Clock::now();
  --session.outstanding_;
  if (command_data != nullptr) scsi_free_scsi_task(static_cast<scsi_task*>(command_data));
  if (status != SCSI_STATUS_GOOD) {
    return session.measure_.fail(
        fmt::format("a command ended with status {:#x}: {}", status, iscsi_get_error(context)));
  }
  session.measure_.completed(slot.issued, now);
  if (session.measure_.wants_more(now)) session.send(slot, now);
}

void Session::serve(short revents) {
  if (!unit_.serve(revents)) measure_.fail("the connection is lost");
}

// Who took it.
struct CpuTimes {
  CpuTime server;
  CpuTime client;
  CpuTime machine;

  [[nodiscard]] static CpuTimes of(int server_pid) {
    return {CpuTime::of_process(server_pid), CpuTime::of_self(), CpuTime::of_machine()};
  }
  friend CpuTimes operator-(const CpuTimes& a, const CpuTimes& b) {
    return {a.server - b.server, a.client - b.client, a.machine - b.machine};
  }
};

void print(const LoadOptions& options, const Measure& measure, const CpuTimes& cpu) {
  const LatencyHistogram& latencies = measure.latencies();
  const double seconds = std::chrono::duration<double>(measure.last() - measure.begin()).count();
  const auto operations = static_cast<double>(latencies.total());
  const double rate = seconds > 0 ? operations / seconds : 0;
  const auto per_operation = [&](double cpu_s) {
    return operations > 0 ? cpu_s * 1e6 / operations : 0;
  };
  fmt::print(
      "{{\"operations\": {}, \"seconds\": {:.3f}, \"rate\": {:.1f}, \"bytes_per_s\": {:.0f}, ",
      latencies.total(), seconds, rate, rate * options.block_bytes);
  fmt::print(
      "\"latency_us\": {}, \"server_cpu_us\": {:.2f}, \"server_user_us\": {:.2f}, "
      "\"server_system_us\": {:.2f}, "
      "\"client_cpu_us\": {:.2f}, \"machine_cpu_us\": {:.2f}, ",
      latency_us_json(latencies), per_operation(cpu.server.total_s()),
      per_operation(cpu.server.user_s), per_operation(cpu.server.system_s),
      per_operation(cpu.client.total_s()), per_operation(cpu.machine.total_s()));
  if (options.slow_us != 0) {
    std::string slow;
    for (const auto& [begun, ended] : measure.slow()) {
      slow += fmt::format("{}[{}, {}]", slow.empty() ? "" : ", ", begun, ended);
    }
    fmt::print("\"slow_ns\": [{}], ", slow);
  }
  fmt::print("\"failure\": {}}}\n", json_quoted(measure.failure()));
}

// Runs completions until nothing is outstanding, measuring CPU from the end of the warm-up.
void run(const LoadOptions& options, std::vector<std::unique_ptr<Session>>& sessions,
         Measure& measure) {
  std::optional<CpuTimes> before;
  auto last_progress = Clock::now();
  std::vector<pollfd> events(sessions.size());
  std::size_t outstanding = 0;
  do {
    for (std::size_t i = 0; i < sessions.size(); ++i) events[i] = sessions[i]->events();
    const int ready = ::poll(events.data(), events.size(), 1000);
    if (ready < 0 && errno != EINTR) measure.fail(std::strerror(errno));
    const auto now = Clock::now();
    if (!before && now >= measure.begin()) before = CpuTimes::of(options.server_pid);
    if (ready > 0) last_progress = now;
    if (now - last_progress > kStallMax) measure.fail("no answer for half a minute");
    outstanding = 0;
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      if (events[i].revents != 0) sessions[i]->serve(events[i].revents);
      outstanding += sessions[i]->outstanding();
    }
  } while (outstanding > 0 && !measure.failed());
  const CpuTimes now = CpuTimes::of(options.server_pid);
  if (!before) {
    measure.fail("the limit of bytes was reached before the warm-up ended");
    before = now;
  }
  print(options, measure, now - *before);
}

int load(const LoadOptions& options) {
  std::vector<std::unique_ptr<Session>> sessions;
  // Both clocks begin when every session is ready.
  std::optional<Measure> measure;
  measure.emplace(options);
  for (std::size_t i = 0; i < options.sessions; ++i) {
    sessions.push_back(std::make_unique<Session>(options, *measure, i));
    if (auto connected = sessions.back()->connect(); !connected) {
      std::fprintf(stderr, "mariner-iscsi-load: %s\n", connected.error().message.c_str());
      return 3;
    }
  }
  measure.emplace(options);
  for (auto& session : sessions) session->start();
  run(options, sessions, *measure);
  if (measure->failed()) return 1;
  for (auto& session : sessions) session->logout();
  return 0;
}

// The numbers in a file, up to what is none.
std::vector<std::uint32_t> numbers_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istream_iterator<std::uint32_t>(file), {}};
}

int main(int argc, char** argv) {
  LoadOptions options;
  std::string blocks_from;
  CLI::App app{"A closed-loop load on an iSCSI LUN, for measuring"};
  const auto bytes = CLI::AsSizeValue(false);
  app.add_option("url", options.url, "iscsi://HOST:PORT/IQN/LUN")->required();
  app.add_option("--initiator", options.initiator, "the initiator's name");
  app.add_flag("--write", options.write, "write; otherwise read");
  app.add_flag("--random", options.random, "random blocks; otherwise sequential");
  app.add_flag("--fua", options.fua, "set FUA on each command");
  app.add_option("--block", options.block_bytes, "bytes of a command")
      ->transform(bytes)
      ->check(CLI::Range(512, 16 << 20));
  app.add_option("--depth", options.depth, "commands outstanding in a session")
      ->check(CLI::Range(std::size_t{1}, kDepthMax));
  app.add_option("--sessions", options.sessions)->check(CLI::Range(std::size_t{1}, kSessionsMax));
  app.add_option("--region-from", options.region_from, "where the load begins on the LUN")
      ->transform(bytes);
  app.add_option("--region-bytes", options.region_bytes, "from there; 0: up to the LUN's end")
      ->transform(bytes);
  app.add_option("--warmup", options.warmup_s, "seconds before the measured part");
  app.add_option("--seconds", options.seconds, "of the measured part");
  app.add_option("--bytes-max", options.bytes_max, "end after so many; 0: never")->transform(bytes);
  app.add_option("--immediate-data", options.immediate_data, "offer ImmediateData");
  app.add_option("--initial-r2t", options.initial_r2t, "ask for InitialR2T");
  app.add_option("--seed", options.seed, "of the blocks and their bytes");
  app.add_option("--hot-load", options.hot_load, "percent of a random load that go to hot blocks")
      ->check(CLI::Range(0, 100));
  app.add_option("--hot-blocks", options.hot_blocks, "percent of the blocks that are hot")
      ->check(CLI::Range(0, 100));
  app.add_flag("--distinct", options.distinct,
               "each block at most once, --bytes-max of them; with --random, in one session");
  app.add_option(
         "--blocks-from", blocks_from,
         "a file with numbers of blocks of the region: these, in this order, in one session")
      ->check(CLI::ExistingFile);
  app.add_flag("--stamp", options.stamp, "tell place and seed in every 4 KiB that is written");
  app.add_option("--compressible", options.compressible,
                 "write new bytes with each command, so many percent of them zeros")
      ->check(CLI::Range(0, 100));
  app.add_option("--slow", options.slow_us,
                 "tell of each command that lasts longer when it began and ended; microseconds");
  app.add_option("--server-pid", options.server_pid, "whose CPU time to measure; 0: nobody's");
  CLI11_PARSE(app, argc, argv);
  if (!blocks_from.empty()) {
    options.blocks = numbers_of(blocks_from);
    if (options.blocks.empty() || options.sessions != 1) {
      std::fprintf(stderr, "mariner-iscsi-load: --blocks-from: no numbers, or several sessions\n");
      return 2;
    }
  }
  return load(options);
}

}  // namespace
}  // namespace mariner::bench

int main(int argc, char** argv) { return mariner::bench::main(argc, argv); }

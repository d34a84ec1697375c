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
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

extern "C" {
#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>
}

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "proto/error.h"
#include "tests/bench/iscsi_unit.h"
#include "tests/bench/latency_histogram.h"

namespace mariner::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kDepthMax = 1024;
constexpr std::size_t kSessionsMax = 64;
constexpr std::chrono::seconds kStallMax{30};

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
  int server_pid = 0;
};

// What the measured part needs from all sessions, and the end of it all.
class Measure {
 public:
  Measure(double warmup_s, double seconds, std::uint64_t bytes_max)
      : begin_(Clock::now() + to_duration(warmup_s)),
        end_(begin_ + to_duration(seconds)),
        bytes_max_(bytes_max) {}

  [[nodiscard]] bool wants_more(Clock::time_point now) const {
    return !failed() && now < end_ && (bytes_max_ == 0 || bytes_begun_ < bytes_max_);
  }
  void begun(std::uint32_t bytes) { bytes_begun_ += bytes; }
  void completed(Clock::time_point issued, Clock::time_point now) {
    last_ = now;
    if (now < begin_) return;
    latencies_.record(static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(now - issued).count()));
  }
  void fail(std::string what) {
    if (failure_.empty()) failure_ = std::move(what);
  }
  [[nodiscard]] bool failed() const { return !failure_.empty(); }
  [[nodiscard]] const std::string& failure() const { return failure_; }
  [[nodiscard]] Clock::time_point begin() const { return begin_; }
  [[nodiscard]] Clock::time_point last() const { return last_; }
  [[nodiscard]] const LatencyHistogram& latencies() const { return latencies_; }

 private:
  static Clock::duration to_duration(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  Clock::time_point begin_;
  Clock::time_point end_;
  Clock::time_point last_{};
  std::uint64_t bytes_max_;
  std::uint64_t bytes_begun_ = 0;
  LatencyHistogram latencies_;
  std::string failure_;
};

// Which block comes next. Sequential sessions each have their own part of the region. Hot blocks
// lie scattered over the region, the same ones in every run. Distinct ones are of one session.
class Pattern {
 public:
  Pattern(const LoadOptions& options, std::uint64_t region_bytes, std::size_t session)
      : random_(options.random),
        hot_load_(options.hot_load),
        engine_(options.seed * 1000 + session) {
    const std::uint64_t all = region_bytes / options.block_bytes;
    count_ = random_ ? all : all / options.sessions;
    hot_count_ = count_ * options.hot_blocks / 100;
    if (hot_count_ == 0 || hot_count_ == count_) hot_load_ = 0;
    first_ = options.region_from / options.block_bytes + (random_ ? 0 : session * count_);
    while (count_ > 0 && std::gcd(stride_, count_) != 1) ++stride_;
    if (options.distinct) choose(options.bytes_max / options.block_bytes);
    if (!options.blocks.empty()) chosen_ = options.blocks;
  }
  [[nodiscard]] bool valid() const {
    return count_ > 0 && std::ranges::all_of(chosen_, [this](auto at) { return at < count_; });
  }
  std::uint64_t next() {
    if (!chosen_.empty()) return first_ + chosen_[position_++ % chosen_.size()];
    return first_ + (random_ ? scattered() : position_++ % count_);
  }

 private:
  std::uint64_t scattered() {
    if (hot_load_ == 0) return engine_() % count_;
    const bool hot = engine_() % 100 < hot_load_;
    const std::uint64_t rank =
        hot ? engine_() % hot_count_ : hot_count_ + engine_() % (count_ - hot_count_);
    return static_cast<std::uint64_t>(static_cast<__uint128_t>(rank) * stride_ % count_);
  }
  // In an order of the engine's.
  void choose(std::uint64_t count) {
    chosen_.resize(count_);
    std::iota(chosen_.begin(), chosen_.end(), 0);
    std::ranges::shuffle(chosen_, std::mt19937_64{});
    chosen_.resize(std::min(count, count_));
    std::ranges::shuffle(chosen_, engine_);
  }

  bool random_;
  unsigned hot_load_;
  std::uint64_t hot_count_ = 0;
  std::uint64_t stride_ = 2'654'435'761;  // shares no factor with the number of blocks
  std::mt19937_64 engine_;
  std::uint64_t first_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t position_ = 0;
  std::vector<std::uint32_t> chosen_;
};

class Session {
 public:
  Session(const LoadOptions& options, Measure& measure, std::size_t number)
      : options_(options), measure_(measure), number_(number) {}
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
  void renew(std::span<unsigned char> data);
  void stamp(std::span<unsigned char> data, std::uint64_t place) const;

  const LoadOptions& options_;
  Measure& measure_;
  std::size_t number_;
  std::mt19937_64 bytes_;
  std::optional<Pattern> pattern_;
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
  pattern_.emplace(
      options_, options_.region_bytes == 0 ? bytes - options_.region_from : options_.region_bytes,
      number_);
  if (!pattern_->valid()) {
    return Error{ErrorCode::kInvalidArgument,
                 "the region is smaller than a block, or has not all of --blocks-from"};
  }
  return {};
}

void Session::start() {
  bytes_.seed(options_.seed + number_);
  const auto now = Clock::now();
  for (std::size_t i = 0; i < options_.depth; ++i) {
    auto slot = std::make_unique<Slot>();
    slot->session = this;
    slot->data.resize(options_.block_bytes);
    // Not zeros, which a store may treat apart.
    for (unsigned char& byte : slot->data) byte = static_cast<unsigned char>(bytes_());
    slot->vector = {slot->data.data(), slot->data.size()};
    slots_.push_back(std::move(slot));
    send(*slots_.back(), now);
  }
}

void Session::send(Slot& slot, Clock::time_point now) {
  const std::uint64_t lba = pattern_->next() * (options_.block_bytes / unit_.lba_bytes());
  const auto block = static_cast<int>(unit_.lba_bytes());
  if (options_.compressible && options_.write) renew(slot.data);
  if (options_.stamp) stamp(slot.data, lba * unit_.lba_bytes());
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

// In each 512 bytes, as other generators of loads do: first what is random, then zeros.
void Session::renew(std::span<unsigned char> data) {
  constexpr std::size_t kPieceBytes = 512;
  const std::size_t random = kPieceBytes * (100 - *options_.compressible) / 100 / 8;
  for (std::size_t at = 0; at + kPieceBytes <= data.size(); at += kPieceBytes) {
    for (std::size_t i = 0; i < kPieceBytes / 8; ++i) {
      const std::uint64_t word = i < random ? bytes_() : 0;
      std::memcpy(&data[at + 8 * i], &word, sizeof word);
    }
  }
}

void Session::stamp(std::span<unsigned char> data, std::uint64_t place) const {
  constexpr std::size_t kPieceBytes = 4096;
  for (std::size_t at = 0; at + kPieceBytes <= data.size(); at += kPieceBytes) {
    const std::array<std::uint64_t, 2> told{place + at, options_.seed};
    std::memcpy(&data[at], told.data(), sizeof told);
  }
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

// User and system time of a process with all its threads, in seconds.
struct CpuTime {
  double user = 0;
  double system = 0;
};

CpuTime cpu_of(int pid) {
  if (pid == 0) return {};
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int i = 3; i < 14; ++i) fields >> skipped;  // proc(5): utime and stime are fields 14 and 15
  double user = 0;
  double system = 0;
  fields >> user >> system;
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return {user / ticks, system / ticks};
}

CpuTime cpu_of_self() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return {seconds(usage.ru_utime), seconds(usage.ru_stime)};
}

CpuTime operator-(CpuTime a, CpuTime b) { return {a.user - b.user, a.system - b.system}; }

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out + '"';
}

void print(const LoadOptions& options, const Measure& measure, CpuTime server, CpuTime client) {
  const LatencyHistogram& latencies = measure.latencies();
  const double seconds = std::chrono::duration<double>(measure.last() - measure.begin()).count();
  const auto operations = static_cast<double>(latencies.total());
  const double rate = seconds > 0 ? operations / seconds : 0;
  const auto us = [](double ns) { return ns / 1000; };
  const auto percentile = [&](double p) {
    return us(static_cast<double>(latencies.percentile(p)));
  };
  const auto per_operation = [&](double cpu_s) {
    return operations > 0 ? cpu_s * 1e6 / operations : 0;
  };
  fmt::print(
      "{{\"operations\": {}, \"seconds\": {:.3f}, \"rate\": {:.1f}, \"bytes_per_s\": {:.0f}, ",
      latencies.total(), seconds, rate, rate * options.block_bytes);
  fmt::print(
      "\"latency_us\": {{\"mean\": {:.1f}, \"p50\": {:.1f}, \"p90\": {:.1f}, \"p99\": {:.1f}, "
      "\"p99.9\": {:.1f}, \"max\": {:.1f}}}, ",
      us(latencies.mean()), percentile(50), percentile(90), percentile(99), percentile(99.9),
      us(static_cast<double>(latencies.max())));
  fmt::print(
      "\"server_cpu_us\": {:.2f}, \"server_user_us\": {:.2f}, \"server_system_us\": {:.2f}, "
      "\"client_cpu_us\": {:.2f}, \"failure\": {}}}\n",
      per_operation(server.user + server.system), per_operation(server.user),
      per_operation(server.system), per_operation(client.user + client.system),
      quoted(measure.failure()));
}

// Runs completions until nothing is outstanding, measuring CPU from the end of the warm-up.
void run(const LoadOptions& options, std::vector<std::unique_ptr<Session>>& sessions,
         Measure& measure) {
  std::optional<std::pair<CpuTime, CpuTime>> before;
  auto last_progress = Clock::now();
  std::vector<pollfd> events(sessions.size());
  std::size_t outstanding = 0;
  do {
    for (std::size_t i = 0; i < sessions.size(); ++i) events[i] = sessions[i]->events();
    const int ready = ::poll(events.data(), events.size(), 1000);
    if (ready < 0 && errno != EINTR) measure.fail(std::strerror(errno));
    const auto now = Clock::now();
    if (!before && now >= measure.begin()) before = {cpu_of(options.server_pid), cpu_of_self()};
    if (ready > 0) last_progress = now;
    if (now - last_progress > kStallMax) measure.fail("no answer for half a minute");
    outstanding = 0;
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      if (events[i].revents != 0) sessions[i]->serve(events[i].revents);
      outstanding += sessions[i]->outstanding();
    }
  } while (outstanding > 0 && !measure.failed());
  const CpuTime server_now = cpu_of(options.server_pid);
  const CpuTime client_now = cpu_of_self();
  if (!before) {
    measure.fail("the limit of bytes was reached before the warm-up ended");
    before = {server_now, client_now};
  }
  print(options, measure, server_now - before->first, client_now - before->second);
}

int load(const LoadOptions& options) {
  std::vector<std::unique_ptr<Session>> sessions;
  // Both clocks begin when every session is ready.
  std::optional<Measure> measure;
  measure.emplace(options.warmup_s, options.seconds, options.bytes_max);
  for (std::size_t i = 0; i < options.sessions; ++i) {
    sessions.push_back(std::make_unique<Session>(options, *measure, i));
    if (auto connected = sessions.back()->connect(); !connected) {
      std::fprintf(stderr, "mariner-iscsi-load: %s\n", connected.error().message.c_str());
      return 3;
    }
  }
  measure.emplace(options.warmup_s, options.seconds, options.bytes_max);
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

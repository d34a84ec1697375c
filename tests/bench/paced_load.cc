// mariner-paced-load: writes to an iSCSI LUN at times that are set beforehand, for measuring.
//
//   mariner-paced-load URL --interval-us 180 --count 20000 [--burst 1000 --pause-ms 1000]
//
// A write of --block bytes is due every --interval-us, whether or not those before it were
// answered; with --burst, a pause follows so many of them. Its latency counts from when it was due,
// so what waits because the LUN does not keep up counts as well. At most kQueueMax are outstanding
// (the paper's queue, dissertation 4.6.5). Blocks are random over the LUN. Prints one JSON object.
// Single-threaded, on libiscsi; between two due times it sleeps with ppoll(), so a latency has the
// kernel's timer in it, some 60 us at worst, where the LUN is idle.
#include <poll.h>

extern "C" {
#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>
}

#include <fmt/format.h>
#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "proto/error.h"
#include "tests/bench/iscsi_unit.h"
#include "tests/bench/latency_histogram.h"
#include "tests/bench/paced_times.h"

namespace mariner::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kQueueMax = 2048;
constexpr std::chrono::seconds kStallMax{30};

struct LoadOptions {
  std::string url;
  PacedTimes::Options times;
  std::uint32_t block_bytes = 4096;
  bool fua = false;
  std::uint64_t seed = 1;
};

class PacedLoad {
 public:
  explicit PacedLoad(const LoadOptions& options) : options_(options), chance_(options.seed) {}

  Result<void> connect();
  void run();
  void print() const;
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  struct Slot {
    PacedLoad* load;
    std::vector<unsigned char> data;
    scsi_iovec vector{};
    Clock::time_point due;
  };

  static void completed(iscsi_context*, int status, void* command_data, void* private_data);
  void send(Clock::time_point due);
  void wait(const PacedTimes& times, Clock::time_point begun);

  const LoadOptions& options_;
  std::mt19937_64 chance_;
  std::uint64_t blocks_ = 0;
  std::vector<std::unique_ptr<Slot>> slots_;  // all of them
  std::vector<Slot*> free_;
  LatencyHistogram latencies_;
  std::size_t late_ = 0;  // sent later than due because the queue was full
  Clock::time_point last_progress_;
  double seconds_ = 0;
  std::string failure_;
  IscsiUnit unit_;  // its end completes what is outstanding
};

Result<void> PacedLoad::connect() {
  if (auto connected =
          unit_.connect({.url = options_.url, .initiator = "iqn.2026-11.org.mariner:paced-load"});
      !connected) {
    return connected;
  }
  blocks_ = unit_.size_bytes() / options_.block_bytes;
  if (blocks_ == 0 || options_.block_bytes % unit_.lba_bytes() != 0) {
    return Error{ErrorCode::kInvalidArgument, "--block does not fit the LUN"};
  }
  for (std::size_t i = 0; i < kQueueMax; ++i) {
    auto slot = std::make_unique<Slot>();
    slot->load = this;
    slot->data.assign(options_.block_bytes, static_cast<unsigned char>(i * 37 + 1));
    slot->vector = {slot->data.data(), slot->data.size()};
    free_.push_back(slot.get());
    slots_.push_back(std::move(slot));
  }
  return {};
}

void PacedLoad::send(Clock::time_point due) {
  Slot& slot = *free_.back();
  const std::uint64_t block = std::uniform_int_distribution<std::uint64_t>(0, blocks_ - 1)(chance_);
  slot.due = due;
  const scsi_task* task = iscsi_write16_iov_task(
      unit_.context(), unit_.lun(), block * (options_.block_bytes / unit_.lba_bytes()), nullptr,
      options_.block_bytes, static_cast<int>(unit_.lba_bytes()), 0, 0, options_.fua ? 1 : 0, 0, 0,
      completed, &slot, &slot.vector, 1);
  if (task == nullptr) {
    failure_ = unit_.failure("sending a command").message;
    return;
  }
  free_.pop_back();
}

void PacedLoad::completed(iscsi_context* context, int status, void* command_data,
                          void* private_data) {
  auto& slot = *static_cast<Slot*>(private_data);
  PacedLoad& load = *slot.load;
  const auto now = Clock::now();
  if (command_data != nullptr) scsi_free_scsi_task(static_cast<scsi_task*>(command_data));
  load.free_.push_back(&slot);
  load.last_progress_ = now;
  if (status != SCSI_STATUS_GOOD) {
    load.failure_ =
        fmt::format("a command ended with status {:#x}: {}", status, iscsi_get_error(context));
    return;
  }
  load.latencies_.record(static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now - slot.due).count()));
}

// Until something can be moved, or the next write is due and there is room for it.
void PacedLoad::wait(const PacedTimes& times, Clock::time_point begun) {
  auto patience = std::chrono::nanoseconds(std::chrono::seconds(1));
  if (!times.done() && !free_.empty()) {
    patience = std::clamp(begun + times.next() - Clock::now(), std::chrono::nanoseconds(0),
                          std::chrono::nanoseconds(std::chrono::seconds(1)));
  }
  const timespec limit{.tv_sec = static_cast<time_t>(patience.count() / 1'000'000'000),
                       .tv_nsec = static_cast<long>(patience.count() % 1'000'000'000)};
  pollfd events = unit_.events();
  const int ready = ::ppoll(&events, 1, &limit, nullptr);
  if (ready < 0 && errno != EINTR) failure_ = std::strerror(errno);
  if (ready > 0 && !unit_.serve(events.revents)) failure_ = "the connection is lost";
}

void PacedLoad::run() {
  const auto begun = Clock::now();
  last_progress_ = begun;
  PacedTimes times(options_.times);
  while (failure_.empty() && !(times.done() && free_.size() == slots_.size())) {
    const auto now = Clock::now();
    bool full = false;
    while (failure_.empty() && !times.done() && begun + times.next() <= now) {
      if (free_.empty()) {
        full = true;
        break;
      }
      send(begun + times.next());
      times.advance();
    }
    if (full) ++late_;
    // Nothing is outstanding in a pause between bursts.
    if (free_.size() == slots_.size()) last_progress_ = now;
    if (now - last_progress_ > kStallMax) failure_ = "no answer for half a minute";
    wait(times, begun);
  }
  seconds_ = std::chrono::duration<double>(Clock::now() - begun).count();
  if (failure_.empty()) unit_.logout();
}

void PacedLoad::print() const {
  const auto us = [](double ns) { return ns / 1000; };
  const auto percentile = [&](double p) {
    return us(static_cast<double>(latencies_.percentile(p)));
  };
  fmt::print("{{\"operations\": {}, \"seconds\": {:.3f}, \"queue_full\": {}, ", latencies_.total(),
             seconds_, late_);
  fmt::print(
      "\"latency_us\": {{\"mean\": {:.1f}, \"p50\": {:.1f}, \"p99\": {:.1f}, \"max\": {:.1f}}}}}\n",
      us(latencies_.mean()), percentile(50), percentile(99),
      us(static_cast<double>(latencies_.max())));
}

int main(int argc, char** argv) {
  LoadOptions options;
  double interval_us = 1000;
  double pause_ms = 0;
  CLI::App app{"Writes to an iSCSI LUN at times that are set beforehand, for measuring"};
  app.add_option("url", options.url, "iscsi://HOST:PORT/IQN/LUN")->required();
  app.add_option("--interval-us", interval_us, "between two writes")->check(CLI::NonNegativeNumber);
  app.add_option("--count", options.times.count, "writes in all")->check(CLI::PositiveNumber);
  app.add_option("--burst", options.times.burst, "a pause after so many; 0: none");
  app.add_option("--pause-ms", pause_ms, "behind the last one of a burst")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--block", options.block_bytes, "bytes of a write")
      ->check(CLI::Range(512, 1 << 20));
  app.add_flag("--fua", options.fua, "set FUA on each command");
  app.add_option("--seed", options.seed, "of the blocks");
  CLI11_PARSE(app, argc, argv);
  options.times.interval = std::chrono::nanoseconds(static_cast<std::int64_t>(interval_us * 1e3));
  options.times.pause = std::chrono::nanoseconds(static_cast<std::int64_t>(pause_ms * 1e6));
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  PacedLoad load(options);
  if (auto connected = load.connect(); !connected) {
    std::fprintf(stderr, "mariner-paced-load: %s\n", connected.error().message.c_str());
    return 3;
  }
  load.run();
  if (!load.failure().empty()) {
    std::fprintf(stderr, "mariner-paced-load: %s\n", load.failure().c_str());
    return 1;
  }
  load.print();
  return 0;
}

}  // namespace
}  // namespace mariner::bench

int main(int argc, char** argv) { return mariner::bench::main(argc, argv); }

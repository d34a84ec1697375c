// mariner-views-load: what hosts of many views do, for measuring and for telling whether the views
// are exact (stamped_volume.h).
//
//   mariner-views-load write URL    writes each phase whose number comes in, and prints it when the
//                                   phase is durable
//   mariner-views-load read         logs in to each "PHASE URL" that comes in up to an empty line,
//                                   prints "ready", reads blocks of all of them at random, one LUN
//                                   after the other, until its input ends, and prints a JSON object
//   mariner-views-load first        logs in to each URL that comes in, and prints how long it took
//                                   to its first block
//
// What comes in are lines of standard input. Single-threaded over all sessions, on libiscsi.
#include <sys/epoll.h>
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
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "proto/check.h"
#include "proto/error.h"
#include "tests/bench/iscsi_unit.h"
#include "tests/bench/latency_histogram.h"
#include "tests/bench/stamped_volume.h"

namespace mariner::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kInitiator = "iqn.2026-11.org.mariner:bench-views";
constexpr std::chrono::seconds kStallMax{30};
constexpr std::uint64_t kWriteBlocks = 64;
constexpr std::size_t kWritersMax = 32;

double ms(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

struct ViewsOptions {
  StampedVolume::Options volume;
  std::string url;
  std::size_t depth = 1;  // reads outstanding, over all LUNs
  double rate = 0;        // of reads, over all LUNs; 0: as fast as `depth` allows
  bool verify = true;
};

// -- write ----------------------------------------------------------------------------------------

class PhaseWriter {
 public:
  explicit PhaseWriter(const StampedVolume& volume) : volume_(volume) {
    for (std::size_t i = 0; i < kWritersMax; ++i) {
      slots_.push_back(std::make_unique<Slot>());
      slots_.back()->writer = this;
    }
  }

  Result<void> connect(const std::string& url) {
    if (auto connected = unit_.connect({.url = url, .initiator = kInitiator}); !connected) {
      return connected;
    }
    if (volume_.options().blocks * kBlockBytes <= unit_.size_bytes()) return {};
    return Error{ErrorCode::kInvalidArgument, url + " has fewer than --blocks"};
  }
  void logout() { unit_.logout(); }

  // Durable on return.
  Result<void> write(StampedVolume::Phase phase) {
    phase_ = phase;
    next_ = 0;
    extents_ = extents_of(phase);
    for (const auto& slot : slots_) send(*slot);
    while (outstanding_ > 0 && failure_.empty()) {
      pollfd events = unit_.events();
      const int ready = ::poll(&events, 1, static_cast<int>(ms(kStallMax)));
      if (ready == 0) return Error{ErrorCode::kUnavailable, "no answer for half a minute"};
      if (ready > 0 && !unit_.serve(events.revents)) failure_ = "the connection is lost";
    }
    if (!failure_.empty()) return Error{ErrorCode::kIo, failure_};
    return {};
  }

 private:
  struct Slot {
    PhaseWriter* writer = nullptr;
    std::vector<std::byte> data;
    scsi_iovec vector{};
  };

  [[nodiscard]] std::vector<BlockRange> extents_of(StampedVolume::Phase phase) const {
    std::vector<BlockRange> extents;
    if (phase > 0) {
      for (const Lbn block : volume_.written_in(phase)) extents.push_back({block, {1}});
      return extents;
    }
    const std::uint64_t blocks = volume_.options().blocks;
    for (std::uint64_t at = 0; at < blocks; at += kWriteBlocks) {
      extents.push_back({Lbn{at}, {std::min(kWriteBlocks, blocks - at)}});
    }
    return extents;
  }

  void send(Slot& slot) {
    if (next_ == extents_.size() || !failure_.empty()) return;
    const BlockRange extent = extents_[next_++];
    slot.data.resize(extent.count.bytes());
    for (std::uint64_t i = 0; i < extent.count.value; ++i) {
      volume_.fill(StampedVolume::Block(slot.data.data() + i * kBlockBytes, kBlockBytes),
                   Lbn{extent.first.value + i}, phase_);
    }
    slot.vector = {slot.data.data(), slot.data.size()};
    const std::uint64_t lba = extent.first.byte_offset() / unit_.lba_bytes();
    const scsi_task* task = iscsi_write16_iov_task(
        unit_.context(), unit_.lun(), lba, nullptr, static_cast<std::uint32_t>(slot.data.size()),
        static_cast<int>(unit_.lba_bytes()), 0, 0, 0, 0, 0, completed, &slot, &slot.vector, 1);
    if (task == nullptr) {
      failure_ = unit_.failure("sending a command").message;
      return;
    }
    ++outstanding_;
  }

  static void completed(iscsi_context* context, int status, void* command_data,
                        void* private_data) {
    auto& slot = *static_cast<Slot*>(private_data);
    PhaseWriter& writer = *slot.writer;
    --writer.outstanding_;
    if (command_data != nullptr) scsi_free_scsi_task(static_cast<scsi_task*>(command_data));
    if (status != SCSI_STATUS_GOOD) {
      writer.failure_ =
          fmt::format("a write ended with status {:#x}: {}", status, iscsi_get_error(context));
      return;
    }
    writer.send(slot);
  }

  const StampedVolume& volume_;
  StampedVolume::Phase phase_ = 0;
  std::vector<BlockRange> extents_;  // of the phase
  std::size_t next_ = 0;             // of them
  std::vector<std::unique_ptr<Slot>> slots_;
  std::size_t outstanding_ = 0;
  std::string failure_;
  IscsiUnit unit_;  // its end completes what is outstanding
};

Result<void> write_phases(const ViewsOptions& options) {
  const StampedVolume volume(options.volume);
  PhaseWriter writer(volume);
  if (auto connected = writer.connect(options.url); !connected) return connected;
  for (StampedVolume::Phase phase = 0; std::cin >> phase;) {
    if (auto written = writer.write(phase); !written) return written;
    std::cout << phase << std::endl;
  }
  writer.logout();
  return {};
}

// -- read -----------------------------------------------------------------------------------------

class ViewReader;

// A LUN that is read, one block at a time.
struct ReadUnit {
  ViewReader* reader = nullptr;
  std::string url;
  StampedVolume::Phase phase = 0;
  std::uint64_t reads = 0;
  std::uint64_t block = 0;
  bool busy = false;
  std::uint32_t awaited = 0;  // as epoll knows it
  Clock::time_point issued;
  alignas(8) std::array<std::byte, kBlockBytes> data;
  scsi_iovec vector{};
  IscsiUnit unit{};  // its end completes what is outstanding
};

class ViewReader {
 public:
  explicit ViewReader(const ViewsOptions& options)
      : options_(options), volume_(options.volume), random_(options.volume.seed) {}
  ~ViewReader() {
    units_.clear();
    if (epoll_ >= 0) ::close(epoll_);
  }
  ViewReader(const ViewReader&) = delete;
  ViewReader& operator=(const ViewReader&) = delete;

  Result<void> run();

 private:
  Result<void> connect();
  Result<void> read();
  void send_more(Clock::time_point now);
  void send(ReadUnit& unit, Clock::time_point now);
  void await(ReadUnit& unit);
  static void completed(iscsi_context* context, int status, void* command_data, void* private_data);
  void print(double seconds) const;
  void fail(const std::string& what) {
    if (failure_.empty()) failure_ = what;
  }

  const ViewsOptions options_;
  const StampedVolume volume_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<ReadUnit>> units_;
  int epoll_ = -1;
  std::size_t next_ = 0;  // of units_
  std::size_t outstanding_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t mismatches_ = 0;
  std::string mismatch_;  // the first
  std::string failure_;
  Clock::time_point begin_;
  LatencyHistogram latencies_;
};

Result<void> ViewReader::connect() {
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) return errno_error(errno, "epoll_create1");
  epoll_event input{.events = EPOLLIN, .data = {.ptr = nullptr}};
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, STDIN_FILENO, &input) != 0) {
    return errno_error(errno, "standard input");
  }
  for (std::string line; std::getline(std::cin, line) && !line.empty();) {
    auto unit = std::make_unique<ReadUnit>();
    const std::size_t space = line.find(' ');
    if (space == std::string::npos) {
      return Error{ErrorCode::kInvalidArgument, line + ": expected a phase and a URL"};
    }
    unit->reader = this;
    unit->phase = static_cast<StampedVolume::Phase>(std::stoul(line.substr(0, space)));
    unit->url = line.substr(space + 1);
    unit->vector = {unit->data.data(), unit->data.size()};
    // Each is a host of its own: several sessions of one would reinstate each other.
    const std::string name = kInitiator + std::to_string(units_.size());
    auto connected = unit->unit.connect({.url = unit->url, .initiator = name});
    if (!connected) return connected;
    if (options_.volume.blocks * kBlockBytes > unit->unit.size_bytes()) {
      return Error{ErrorCode::kInvalidArgument, unit->url + " has fewer than --blocks"};
    }
    epoll_event event{.events = EPOLLIN, .data = {.ptr = unit.get()}};
    unit->awaited = EPOLLIN;
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, unit->unit.events().fd, &event) != 0) {
      return errno_error(errno, "epoll_ctl");
    }
    units_.push_back(std::move(unit));
  }
  if (units_.empty()) return Error{ErrorCode::kInvalidArgument, "there is nothing to read"};
  return {};
}

void ViewReader::await(ReadUnit& unit) {
  const auto wanted = static_cast<std::uint32_t>(unit.unit.events().events);  // POLLIN is EPOLLIN
  if (wanted == unit.awaited) return;
  epoll_event event{.events = wanted, .data = {.ptr = &unit}};
  if (::epoll_ctl(epoll_, EPOLL_CTL_MOD, unit.unit.events().fd, &event) != 0) fail("epoll_ctl");
  unit.awaited = wanted;
}

void ViewReader::send(ReadUnit& unit, Clock::time_point now) {
  unit.block = random_() % options_.volume.blocks;
  unit.issued = now;
  const IscsiUnit& lun = unit.unit;
  const scsi_task* task = iscsi_read16_iov_task(
      lun.context(), lun.lun(), Lbn{unit.block}.byte_offset() / lun.lba_bytes(), kBlockBytes,
      static_cast<int>(lun.lba_bytes()), 0, 0, 0, 0, 0, completed, &unit, &unit.vector, 1);
  if (task == nullptr) return fail(lun.failure("sending a command").message);
  unit.busy = true;
  ++sent_;
  ++outstanding_;
  if (!unit.unit.serve(POLLOUT)) fail("the connection is lost");
  await(unit);
}

// To one unit after the other, so that all are read.
void ViewReader::send_more(Clock::time_point now) {
  const auto due = options_.rate == 0
                       ? UINT64_MAX
                       : static_cast<std::uint64_t>(ms(now - begin_) / 1000 * options_.rate) + 1;
  while (failure_.empty() && outstanding_ < std::min(options_.depth, units_.size()) &&
         sent_ < due) {
    while (units_[next_]->busy) next_ = (next_ + 1) % units_.size();
    send(*units_[next_], now);
    next_ = (next_ + 1) % units_.size();
  }
}

void ViewReader::completed(iscsi_context* context, int status, void* command_data,
                           void* private_data) {
  auto& unit = *static_cast<ReadUnit*>(private_data);
  ViewReader& reader = *unit.reader;
  if (command_data != nullptr) scsi_free_scsi_task(static_cast<scsi_task*>(command_data));
  unit.busy = false;
  --reader.outstanding_;
  if (status != SCSI_STATUS_GOOD) {
    return reader.fail(fmt::format("{}: a read ended with status {:#x}: {}", unit.url, status,
                                   iscsi_get_error(context)));
  }
  ++unit.reads;
  reader.latencies_.record(static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - unit.issued).count()));
  if (!reader.options_.verify || reader.volume_.shows(unit.data, Lbn{unit.block}, unit.phase)) {
    return;
  }
  if (reader.mismatches_++ == 0) {
    reader.mismatch_ = fmt::format("block {} of the view behind phase {}", unit.block, unit.phase);
  }
}

Result<void> ViewReader::read() {
  begin_ = Clock::now();
  auto last_progress = begin_;
  std::array<epoll_event, 64> events;
  for (bool over = false; !over && failure_.empty();) {
    send_more(Clock::now());
    const int wait_ms = options_.rate == 0 ? 1000 : 1;
    const int ready = ::epoll_wait(epoll_, events.data(), events.size(), wait_ms);
    if (ready < 0 && errno != EINTR) return errno_error(errno, "epoll_wait");
    const auto now = Clock::now();
    if (ready > 0 || outstanding_ == 0) last_progress = now;
    if (now - last_progress > kStallMax) fail("no answer for half a minute");
    for (int i = 0; i < ready; ++i) {
      auto* unit = static_cast<ReadUnit*>(events.at(static_cast<std::size_t>(i)).data.ptr);
      if (unit == nullptr) {
        over = true;
        continue;
      }
      if (!unit->unit.serve(static_cast<short>(events.at(static_cast<std::size_t>(i)).events))) {
        fail(unit->url + ": the connection is lost");
      }
      await(*unit);
    }
  }
  print(ms(Clock::now() - begin_) / 1000);
  if (!failure_.empty()) return Error{ErrorCode::kIo, failure_};
  return {};
}

void ViewReader::print(double seconds) const {
  const auto [least, most] =
      std::minmax_element(units_.begin(), units_.end(),
                          [](const auto& a, const auto& b) { return a->reads < b->reads; });
  const auto us = [&](double percent) {
    return static_cast<double>(latencies_.percentile(percent)) / 1000;
  };
  fmt::print(
      "{{\"units\": {}, \"operations\": {}, \"seconds\": {:.3f}, \"rate\": {:.1f}, "
      "\"least_reads\": {}, \"most_reads\": {}, \"mismatches\": {}, \"mismatch\": \"{}\", "
      "\"latency_us\": {{\"p50\": {:.1f}, \"p99\": {:.1f}, \"max\": {:.1f}}}}}\n",
      units_.size(), latencies_.total(), seconds, static_cast<double>(latencies_.total()) / seconds,
      (*least)->reads, (*most)->reads, mismatches_, mismatch_, us(50), us(99), us(100));
}

Result<void> ViewReader::run() {
  if (auto connected = connect(); !connected) return connected;
  std::cout << "ready" << std::endl;
  return read();
}

// -- first ----------------------------------------------------------------------------------------

Result<void> read_first_blocks() {
  for (std::string url; std::getline(std::cin, url);) {
    const auto begun = Clock::now();
    IscsiUnit unit;
    if (auto ready = unit.connect({.url = url, .initiator = kInitiator}); !ready) return ready;
    scsi_task* task = iscsi_read16_sync(unit.context(), unit.lun(), 0, kBlockBytes,
                                        static_cast<int>(unit.lba_bytes()), 0, 0, 0, 0, 0);
    const auto ended = Clock::now();
    const bool good = task != nullptr && task->status == SCSI_STATUS_GOOD;
    if (task != nullptr) scsi_free_scsi_task(task);
    if (!good) return unit.failure(url);
    unit.logout();
    std::cout << ms(ended - begun) << std::endl;
  }
  return {};
}

int main(int argc, char** argv) {
  ViewsOptions options;
  CLI::App app{"Hosts of many views, for measuring"};
  app.require_subcommand(1);
  const auto add_volume = [&options](CLI::App& verb) {
    verb.add_option("--seed", options.volume.seed);
    verb.add_option("--blocks", options.volume.blocks, "of the volume")->required();
    verb.add_option("--phase-blocks", options.volume.phase_blocks, "that a phase writes")
        ->required();
  };
  Result<void> done;
  auto& write = *app.add_subcommand("write", "write phases");
  write.add_option("url", options.url, "iscsi://HOST:PORT/IQN/LUN")->required();
  add_volume(write);
  write.callback([&] { done = write_phases(options); });
  auto& read = *app.add_subcommand("read", "read views");
  add_volume(read);
  read.add_option("--phases", options.volume.phases)->required();
  read.add_option("--depth", options.depth, "reads outstanding in all; 0: sessions that are idle");
  read.add_option("--rate", options.rate, "reads per second in all; 0: as the depth allows");
  read.add_flag("!--unverified", options.verify, "the contents do not matter");
  read.callback([&] { done = ViewReader(options).run(); });
  app.add_subcommand("first", "read first blocks")->callback([&] { done = read_first_blocks(); });
  CLI11_PARSE(app, argc, argv);
  if (done) return 0;
  std::fprintf(stderr, "mariner-views-load: %s\n", done.error().message.c_str());
  return 1;
}

}  // namespace
}  // namespace mariner::bench

int main(int argc, char** argv) { return mariner::bench::main(argc, argv); }

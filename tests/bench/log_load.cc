// mariner-log-load: a closed loop of writers on a log, for measuring.
//
//   mariner-log-load --mode ours --folder DIR --depth 32 --bytes 4K --seconds 15
//
// Keeps `depth` records outstanding: each writer appends its next one when its last is durable.
// Prints one JSON object: rate, latency percentiles, sizes of batches, CPU time of this process for
// one record, and for our log where the time of a record went. Modes: `ours` is the log as the
// daemon runs it; `append` is a file that grows, in its place (append_log.h); `naive` and
// `naive-group` are the rivals of naive_log.h, a thread for each writer. Ends at --seconds, or
// before when the log has no more space.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "proto/check.h"
#include "proto/crc32c.h"
#include "proto/payload.h"
#include "server/node/event_loop.h"
#include "tests/bench/bench_log.h"
#include "tests/bench/indexed_load.h"
#include "tests/bench/json_text.h"
#include "tests/bench/latency_json.h"
#include "tests/bench/load_measure.h"
#include "tests/bench/naive_log.h"
#include "tests/bench/vanilla_load.h"

namespace mariner::bench {
namespace {

constexpr std::chrono::microseconds kBusyPoll{200};

struct LoadOptions {
  std::string mode = "ours";
  std::string folder;
  std::size_t depth = 1;
  std::uint32_t bytes = kBlockBytes;  // of a record's payload
  double warmup_s = 1;
  double seconds = 10;  // measured, after the warm-up
  std::uint64_t log_bytes = std::uint64_t{1} << 30;
  std::uint64_t track_bytes = std::uint64_t{64} << 20;
  std::uint64_t seed = 1;
  std::string durability = "auto";  // of our log, as [log] durability
  std::optional<std::uint64_t> scrub_rate;
  // With the version indexes: their memory, and how many versions they have before.
  std::string index = "bosc";
  std::uint64_t index_memory = 0;
  std::uint64_t index_versions = 0;
};

// What is known besides the measure, differently in each mode.
struct LogFigures {
  std::uint64_t written_bytes = 0;
  std::uint64_t limit_bytes = 0;
  std::uint64_t turns = 0;  // of the event loop
  bool ran_full = false;
  std::string durability = "fua";
  std::uint64_t releases = 0;
  std::uint64_t initialised_tracks = 0;
  std::uint64_t scrubbed_bytes = 0;
};

// A writer's payloads, written one after another, so that it is not always the same bytes of cache.
class Payloads {
 public:
  Payloads(std::uint32_t bytes, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (Payload& payload : payloads_) {
      payload = Payload::allocate(bytes);
      for (std::byte& byte : payload.bytes()) byte = static_cast<std::byte>(random());
    }
  }
  [[nodiscard]] const Payload& next() { return payloads_[position_++ % std::size(payloads_)]; }

 private:
  Payload payloads_[8];
  std::size_t position_ = 0;
};

// The closed loop on our log: all writers on the event loop's thread.
class Writers {
 public:
  // `index` may be null.
  Writers(const LoadOptions& options, node::EventLoop& loop, BenchLog& log, IndexedLoad* index)
      : loop_(loop),
        log_(log),
        index_(index),
        measure_(loop.monotonic_time(), options.warmup_s, options.seconds) {
    for (std::size_t i = 0; i < options.depth; ++i) {
      writers_.push_back({Payloads(options.bytes, options.seed * 1000 + i), Nanoseconds{0}});
    }
    log_.set_observer([this](const BenchLog::BatchTimes& batch) {
      measure_.batch(batch.durable, batch.records, batch.bytes);
    });
  }

  // Until the last record is durable.
  void run() {
    // The clocks begin when every page has been touched.
    loop_.post([this] {
      outstanding_ = writers_.size();
      for (Writer& writer : writers_) append(writer);
    });
    loop_.run();
    measure_.finish();
  }
  [[nodiscard]] const LoadMeasure& measure() const { return measure_; }
  [[nodiscard]] bool ran_full() const { return ran_full_; }

 private:
  struct Writer {
    Payloads payloads;
    Nanoseconds appended;
  };

  void append(Writer& writer) {
    const Payload& payload = writer.payloads.next();
    writer.appended = loop_.monotonic_time();
    log_.append({payload, 0, payload.size()},
                [this, &writer](const BenchLog::Outcome& outcome) { completed(writer, outcome); });
  }

  void completed(Writer& writer, const BenchLog::Outcome& outcome) {
    const Nanoseconds now = loop_.monotonic_time();
    if (outcome) {
      const BenchLog::BatchTimes& batch = log_.batch();
      measure_.completed({writer.appended, batch.dispatched, batch.durable, now});
    } else {
      measure_.fail(to_string(outcome.error()));
    }
    ran_full_ = ran_full_ || log_.full();
    if (!ran_full_ && measure_.wants_more(now)) {
      if (index_ == nullptr || index_->has_room()) return append(writer);
      return index_->when_room([this, &writer] { append(writer); });
    }
    if (--outstanding_ == 0) loop_.stop();
  }

  node::EventLoop& loop_;
  BenchLog& log_;
  IndexedLoad* const index_;
  LoadMeasure measure_;
  std::vector<Writer> writers_;
  std::size_t outstanding_ = 0;
  bool ran_full_ = false;
};

// The closed loop on a blocking log: a thread for each writer.
class WriterThreads {
 public:
  WriterThreads(const LoadOptions& options, NaiveLog& log) : options_(options), log_(log) {
    for (std::size_t i = 0; i < options.depth; ++i) {
      payloads_.emplace_back(options.bytes, options.seed * 1000 + i);
    }
    measure_.emplace(now(), options.warmup_s, options.seconds);
  }

  void run() {
    {
      std::vector<std::jthread> threads;
      for (Payloads& payloads : payloads_) {
        threads.emplace_back([this, &payloads] { write(payloads); });
      }
    }
    measure_->finish();
  }
  [[nodiscard]] const LoadMeasure& measure() const { return *measure_; }
  [[nodiscard]] std::uint64_t written_bytes() const { return written_bytes_; }
  [[nodiscard]] bool ran_full() const { return written_bytes_ >= options_.log_bytes; }

 private:
  static Nanoseconds now() { return std::chrono::steady_clock::now().time_since_epoch(); }

  void write(Payloads& payloads) {
    for (bool more = true; more;) {
      const Nanoseconds began = now();
      const Result<void> result = log_.append(payloads.next().bytes());
      const Nanoseconds ended = now();
      const std::lock_guard lock(mutex_);
      if (result) {
        measure_->completed(began, ended);
      } else {
        measure_->fail(to_string(result.error()));
      }
      written_bytes_ += options_.bytes;
      more = !ran_full() && measure_->wants_more(ended);
    }
  }

  const LoadOptions& options_;
  NaiveLog& log_;
  std::vector<Payloads> payloads_;
  std::mutex mutex_;  // of what follows
  std::optional<LoadMeasure> measure_;
  std::uint64_t written_bytes_ = 0;
};

// What the checksum of a record costs here, by itself: part of the CPU time of each.
double crc_us(std::uint32_t bytes) {
  constexpr int kRounds = 2000;
  Payloads payloads(bytes, 1);
  std::uint32_t crc = 0;
  const CpuTime before = CpuTime::of_self();
  const auto began = std::chrono::steady_clock::now();
  int rounds = 0;
  do {
    for (int i = 0; i < kRounds / 10; ++i) crc ^= crc32c(payloads.next().bytes());
    rounds += kRounds / 10;
  } while (rounds < kRounds ||
           std::chrono::steady_clock::now() - began < std::chrono::milliseconds(20));
  // Nobody needs the value, but the compiler must not know that.
  [[maybe_unused]] static volatile std::uint32_t used;
  used = crc;
  const CpuTime spent = CpuTime::of_self() - before;
  return spent.total_s() * 1e6 / rounds;
}

int print(const LoadOptions& options, const LoadMeasure& measure, const LogFigures& figures) {
  const auto records = static_cast<double>(measure.latency().total());
  const double rate = measure.seconds() > 0 ? records / measure.seconds() : 0;
  const auto each = [&](double value) { return records > 0 ? value / records : 0; };
  fmt::print("{{\"mode\": \"{}\", \"depth\": {}, \"bytes\": {}, ", options.mode, options.depth,
             options.bytes);
  fmt::print("\"operations\": {}, \"seconds\": {:.3f}, \"rate\": {:.1f}, \"bytes_per_s\": {:.0f}, ",
             measure.latency().total(), measure.seconds(), rate, rate * options.bytes);
  fmt::print("\"latency_us\": {}, ", latency_us_json(measure.latency()));
  if (measure.batch_records().total() > 0) {
    fmt::print("\"parts_us\": {{\"gathering\": {}, \"writing\": {}, \"completing\": {}}}, ",
               latency_us_json(measure.gathering()), latency_us_json(measure.writing()),
               latency_us_json(measure.completing()));
    fmt::print(
        "\"batches\": {{\"count\": {}, \"records_mean\": {:.2f}, \"records_p50\": {}, "
        "\"records_max\": {}, \"bytes_mean\": {:.0f}}}, \"turns\": {}, ",
        measure.batch_records().total(), measure.batch_records().mean(),
        measure.batch_records().percentile(50), measure.batch_records().max(),
        measure.batch_bytes().mean(), figures.turns);
  }
  fmt::print(
      "\"cpu_us\": {{\"all\": {:.3f}, \"user\": {:.3f}, \"system\": {:.3f}, \"crc\": {:.3f}}}, "
      "\"context_switches\": {:.3f}, ",
      each(1e6 * measure.cpu().total_s()), each(1e6 * measure.cpu().user_s),
      each(1e6 * measure.cpu().system_s), crc_us(options.bytes),
      each(static_cast<double>(measure.cpu().context_switches)));
  fmt::print(
      "\"written_bytes\": {}, \"limit_bytes\": {}, \"ran_full\": {}, \"durability\": {}, "
      "\"releases\": {}, \"initialised_tracks\": {}, \"scrubbed_bytes\": {}, \"failure\": {}}}\n",
      figures.written_bytes, figures.limit_bytes, figures.ran_full, json_quoted(figures.durability),
      figures.releases, figures.initialised_tracks, figures.scrubbed_bytes,
      json_quoted(measure.failure()));
  return measure.failure().empty() ? 0 : 1;
}

int refuse(const Error& error) {
  std::fprintf(stderr, "mariner-log-load: %s\n", error.message.c_str());
  return 3;
}

int load_ours(const LoadOptions& options) {
  node::EventLoop loop;
  // A lone write is to show what the log takes: as with [server] busy_poll = "200us".
  if (options.depth == 1) loop.set_busy_poll(node::BusyPoll(kBusyPoll));
  const std::uint64_t outstanding = std::uint64_t{options.bytes} * options.depth;
  std::optional<logging::DurableWay> way;
  if (options.durability == "fua") way = logging::DurableWay::kFua;
  if (options.durability == "flush") way = logging::DurableWay::kFlush;
  auto log = BenchLog::create({options.folder, options.log_bytes, options.track_bytes, outstanding,
                               way, options.scrub_rate, options.mode == "append"},
                              loop);
  if (!log) return refuse(log.error());
  if ((*log)->full()) {
    return refuse({ErrorCode::kInvalidArgument, "--log-bytes has no space for this load"});
  }
  std::unique_ptr<IndexedLoad> index;
  std::unique_ptr<VanillaLoad> vanilla;
  if (options.index_memory > 0 && options.index == "vanilla") {
    auto made =
        VanillaLoad::create({options.folder, options.index_memory, options.index_versions}, **log);
    if (!made) return refuse(made.error());
    vanilla = *std::move(made);
  } else if (options.index_memory > 0) {
    auto made = IndexedLoad::create({options.folder, options.index_memory, options.index_versions},
                                    loop, **log);
    if (!made) return refuse(made.error());
    index = *std::move(made);
  }
  Writers writers(options, loop, **log, index.get());
  writers.run();
  if (index) {
    const index::BoscStatistics& s = index->store().statistics();
    std::fprintf(stderr,
                 "index: %llu sweeps, %llu blocks committed, %llu MB written, %llu MB read\n",
                 static_cast<unsigned long long>(s.sweeps),
                 static_cast<unsigned long long>(s.blocks_committed),
                 static_cast<unsigned long long>(s.bytes_written / 1'000'000),
                 static_cast<unsigned long long>(s.bytes_read / 1'000'000));
  }
  return print(options, writers.measure(),
               {(*log)->written_bytes(), (*log)->limit_bytes(), loop.turns(), writers.ran_full(),
                options.mode == "append" ? "fdatasync" : to_string((*log)->durable_choice()),
                (*log)->releases(), (*log)->initialised_tracks(), (*log)->scrubbed_bytes()});
}

int load_naive(const LoadOptions& options, NaiveLog::Commit commit) {
  const std::string path = options.folder + "/naive";
  auto log = NaiveLog::create(path, commit);
  if (!log) return refuse(log.error());
  WriterThreads writers(options, **log);
  writers.run();
  const int result = print(options, writers.measure(),
                           {writers.written_bytes(), options.log_bytes, 0, writers.ran_full()});
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return result;
}

int main(int argc, char** argv) {
  LoadOptions options;
  CLI::App app{"A closed loop of writers on a log, for measuring"};
  const auto size = CLI::AsSizeValue(false);
  app.add_option("--mode", options.mode, "whose log")
      ->check(CLI::IsMember({"ours", "append", "naive", "naive-group"}));
  app.add_option("--folder", options.folder, "where the log's file is; ours is kept there")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--depth", options.depth, "writers, each with one record outstanding")
      ->check(CLI::Range(std::size_t{1}, NaiveLog::kWritersMax));
  app.add_option("--bytes", options.bytes, "of a record's payload, whole blocks of 4 KiB")
      ->transform(size)
      ->check(CLI::Range(kBlockBytes, 4u << 20));
  app.add_option("--seconds", options.seconds, "of the measured part");
  app.add_option("--warmup", options.warmup_s, "seconds before the measured part");
  app.add_option("--log-bytes", options.log_bytes, "of the log's file")->transform(size);
  app.add_option("--track-bytes", options.track_bytes)
      ->transform(size)
      ->check(CLI::Range(logging::kTrackBytesMin, logging::kTrackBytesMax));
  app.add_option("--durability", options.durability, "how our log makes a write durable")
      ->check(CLI::IsMember({"auto", "fua", "flush"}));
  app.add_option("--scrub-rate", options.scrub_rate,
                 "initialise the log meanwhile, and verify it at so many bytes per second")
      ->transform(size);
  app.add_option("--index-memory", options.index_memory, "with version indexes of so much memory")
      ->transform(size);
  app.add_option("--index", options.index)->check(CLI::IsMember({"bosc", "vanilla"}));
  app.add_option("--index-versions", options.index_versions, "that these have before");
  app.add_option("--seed", options.seed, "of the payloads' bytes");
  CLI11_PARSE(app, argc, argv);
  if (options.bytes % kBlockBytes != 0) {
    return refuse({ErrorCode::kInvalidArgument, "--bytes: expected whole blocks of 4096 bytes"});
  }
  if (options.mode == "ours" || options.mode == "append") return load_ours(options);
  return load_naive(options,
                    options.mode == "naive" ? NaiveLog::Commit::kEach : NaiveLog::Commit::kGroup);
}

}  // namespace
}  // namespace mariner::bench

int main(int argc, char** argv) { return mariner::bench::main(argc, argv); }

// mariner-index-load: versions into an index, and lookups beside them, for measuring.
//
//   mariner-index-load --engine mariner --folder DIR --memory-mib 512 --versions 1000000 --seconds
//   20
//
// Fills the engine with --versions versions, sorted; inserts by --pattern until the engine is in
// its steady state (--warmup, and three commit cycles where there is such a thing, at most
// --warmup-max); then measures inserts for --seconds with lookups beside them, and lookups and
// scans alone after that. Prints one JSON object. Engines: mariner, vanilla, rocksdb (where it is
// built).
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "proto/check.h"
#include "tests/bench/bosc_index.h"
#include "tests/bench/index_workload.h"
#include "tests/bench/latency_histogram.h"
#include "tests/bench/load_measure.h"
#include "tests/bench/vanilla_index.h"
#ifdef MARINER_ROCKSDB
#include "tests/bench/rocksdb_index.h"
#endif

namespace mariner::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct LoadOptions {
  std::string engine = "mariner";
  std::string folder;
  std::uint64_t memory_mib = 512;
  std::uint32_t block_bytes = 16384;
  std::uint64_t versions = 0;         // before anything is measured
  std::uint64_t blocks = 1ull << 28;  // of the volume: 1 TiB
  std::string pattern = "uniform";
  double warmup_s = 10;
  double warmup_max_s = 120;
  double seconds = 20;
  double rest_s = 3;
  double rate = 0;      // versions a second; 0: as many as it takes
  double settle_s = 0;  // with a rate: at it, before it is measured
  std::uint64_t finds_per_s = 200;
  std::uint64_t finds = 3'000;
  std::uint64_t scans = 200;
  std::uint64_t scanned_blocks = 3'000;
  bool window = false;  // as many versions as it is filled with are kept
  std::uint64_t seed = 1;
  unsigned commit_threads = 1;
  unsigned runs = 4;
};

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

std::uint64_t ns_since(Clock::time_point then) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - then).count());
}

std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

Result<std::unique_ptr<IndexEngine>> make_engine(const LoadOptions& options) {
  const std::size_t memory = options.memory_mib << 20;
  // Twice what the filled index takes, both places of each block, and what comes.
  const std::uint64_t disk = (options.versions * 128 + (std::uint64_t{24} << 30)) >> 20 << 20;
  if (options.engine == "mariner") {
    BoscIndex::Options mariner;
    mariner.path = options.folder + "/index.bin";
    mariner.disk_bytes = disk;
    mariner.block_bytes = options.block_bytes;
    mariner.store.memory_bytes = memory;
    mariner.store.cache_bytes = memory / 8;
    mariner.store.commit_threads = options.commit_threads;
    mariner.store.runs_in_flight = options.runs;
    if (options.window) mariner.window_versions = options.versions;
    auto made = BoscIndex::create(mariner);
    if (!made) return made.error();
    return std::unique_ptr<IndexEngine>(*std::move(made));
  }
  if (options.engine == "vanilla") {
    auto made = VanillaIndex::create({.path = options.folder + "/index.bin",
                                      .file_bytes = disk / 2,
                                      .block_bytes = options.block_bytes,
                                      .memory_bytes = memory});
    if (!made) return made.error();
    return std::unique_ptr<IndexEngine>(*std::move(made));
  }
#ifdef MARINER_ROCKSDB
  if (options.engine == "rocksdb") {
    RocksDbOptions rocksdb;
    rocksdb.path = options.folder + "/index.rocksdb";
    rocksdb.memory_bytes = memory;
    rocksdb.newest_first = true;
    auto made = RocksDbIndex::create(rocksdb);
    if (!made) return made.error();
    return std::unique_ptr<IndexEngine>(*std::move(made));
  }
#endif
  return Error{ErrorCode::kInvalidArgument, "there is no engine \"" + options.engine + "\" here"};
}

std::string histogram_json(const LatencyHistogram& latency) {
  return fmt::format(
      R"({{"count": {}, "mean_us": {:.1f}, "p50_us": {:.1f}, "p99_us": {:.1f}, )"
      R"("max_us": {:.1f}}})",
      latency.total(), latency.mean() / 1e3, static_cast<double>(latency.percentile(50)) / 1e3,
      static_cast<double>(latency.percentile(99)) / 1e3, static_cast<double>(latency.max()) / 1e3);
}

class Load {
 public:
  Load(const LoadOptions& options, IndexEngine& engine)
      : options_(options),
        engine_(engine),
        inserts_({pattern(), options.blocks, options.seed}),
        finds_({pattern(), options.blocks, options.seed + 1}) {}

  Result<std::string> run() {
    const std::uint64_t resident_before = resident_bytes();
    auto began = Clock::now();
    if (Result<void> r = fill(); !r) return r.error();
    const double fill_s = seconds_since(began);
    const EngineCounts filled = engine_.counts();

    began = Clock::now();
    while (!is_steady(seconds_since(began), filled)) {
      for (int i = 0; i < 32; ++i) insert_some();
    }
    // At a lower rate another state is steady: what full speed has left pending is to be committed.
    const std::uint64_t settling = sequence_;
    const auto settling_since = Clock::now();
    while (options_.rate > 0 && seconds_since(settling_since) < options_.settle_s) {
      if (is_due(sequence_ - settling, seconds_since(settling_since))) {
        insert_some();
      } else {
        engine_.poll();
      }
    }
    const double warmup_s = seconds_since(began);

    const EngineCounts before = engine_.counts();
    const CpuTime cpu_before = CpuTime::of_self();
    const std::uint64_t first = sequence_;
    began = Clock::now();
    finding_since_ = began;
    std::uint64_t resident_max = 0;
    while (seconds_since(began) < options_.seconds) {
      if (is_due(sequence_ - first, seconds_since(began))) {
        insert_some();
      } else {
        engine_.poll();
      }
      find_beside();
      if (sequence_ % 65'536 < 32) resident_max = std::max(resident_max, resident_bytes());
    }
    const double measured_s = seconds_since(began);
    const CpuTime cpu = CpuTime::of_self() - cpu_before;
    const EngineCounts after = engine_.counts();
    resident_max = std::max(resident_max, resident_bytes());
    const double versions = static_cast<double>(sequence_ - first);
    while (outstanding_ > 0) engine_.poll();
    // What goes on in the background has come to rest, mostly.
    for (began = Clock::now(); seconds_since(began) < options_.rest_s;) engine_.poll();

    find_alone();
    scan_alone();
    const auto each = [&](std::uint64_t a, std::uint64_t b) {
      return static_cast<double>(b - a) / versions;
    };
    return fmt::format(
        R"({{"engine": "{}", "pattern": "{}", "memory_mib": {}, "block_bytes": {}, "filled": {}, )"
        R"("fill_s": {:.1f}, "warmup_s": {:.1f}, "cycles": {}, "measured_s": {:.2f}, "versions": {:.0f}, )"
        R"("versions_per_s": {:.0f}, "cpu_us": {:.3f}, "user_us": {:.3f}, "read_bytes": {:.1f}, )"
        R"("written_bytes": {:.1f}, "reads": {:.4f}, "writes": {:.4f}, "disk_bytes": {}, )"
        R"("engine_memory_bytes": {}, "node_bytes": {}, "resident_bytes": {}, )"
        R"("find_during": {}, "find_after": {}, "scan_after": {}, "failure": ""}})",
        engine_.name(), options_.pattern, options_.memory_mib, options_.block_bytes,
        options_.versions, fill_s, warmup_s, after.cycles - filled.cycles, measured_s, versions,
        versions / measured_s, cpu.total_s() / versions * 1e6, cpu.user_s / versions * 1e6,
        each(before.bytes_read, after.bytes_read), each(before.bytes_written, after.bytes_written),
        each(before.reads, after.reads), each(before.writes, after.writes), after.disk_bytes,
        after.memory_bytes, after.node_bytes, resident_max - resident_before,
        histogram_json(during_), histogram_json(alone_), histogram_json(scans_));
  }

 private:
  [[nodiscard]] BlockWorkload::Pattern pattern() const {
    if (options_.pattern == "hot") return BlockWorkload::Pattern::kKeyRangeHot;
    if (options_.pattern == "clustered") return BlockWorkload::Pattern::kClustered;
    if (options_.pattern == "sequential") return BlockWorkload::Pattern::kSequential;
    return BlockWorkload::Pattern::kUniform;
  }

  // One version of blocks that are spread evenly, written in an order without a pattern; of the
  // newest eighth the entries by time, too.
  Result<void> fill() {
    __extension__ using Wide = unsigned __int128;
    const std::uint64_t versions = options_.versions;
    std::uint64_t stride = 0x9E3779B97F4A7C15 % versions;
    while (std::gcd(stride, versions) != 1) ++stride;
    const auto block_of = [&](std::uint64_t i) {
      return static_cast<std::uint64_t>(Wide{i} * options_.blocks / versions);
    };
    std::uint64_t by_block = 0;
    std::uint64_t sequence = 0;  // of block number by_block, less one
    // The same the other way round: the block of each sequence number.
    const std::uint64_t inverse = inverse_of(stride, versions);
    std::uint64_t by_time = versions - versions / 8;
    const Result<void> filled = engine_.load(
        [&]() -> std::optional<BenchVersion> {
          if (by_block == versions) return std::nullopt;
          const BenchVersion version{block_of(by_block), sequence + 1, sequence};
          ++by_block;
          sequence = (sequence + stride) % versions;
          return version;
        },
        [&]() -> std::optional<BenchVersion> {
          if (by_time == versions) return std::nullopt;
          const auto i = static_cast<std::uint64_t>(Wide{by_time} * inverse % versions);
          const BenchVersion version{block_of(i), by_time + 1, by_time};
          ++by_time;
          return version;
        });
    sequence_ = versions;
    return filled;
  }
  // x with x * number = 1 modulo `modulus`, to which the number is prime.
  static std::uint64_t inverse_of(std::uint64_t number, std::uint64_t modulus) {
    __extension__ using Wide = __int128;
    Wide a = number;
    Wide b = modulus;
    Wide x = 1;
    Wide y = 0;
    while (b != 0) {
      const Wide quotient = a / b;
      a = std::exchange(b, a - quotient * b);
      x = std::exchange(y, x - quotient * y);
    }
    return static_cast<std::uint64_t>(x < 0 ? x + static_cast<Wide>(modulus) : x);
  }

  [[nodiscard]] bool is_steady(double seconds, const EngineCounts& filled) const {
    if (seconds < options_.warmup_s) return false;
    if (seconds >= options_.warmup_max_s || options_.engine != "mariner") return true;
    return engine_.counts().cycles - filled.cycles >= 3;
  }

  [[nodiscard]] bool is_due(std::uint64_t inserted, double seconds) const {
    return options_.rate == 0 || static_cast<double>(inserted) < options_.rate * seconds;
  }

  void insert_some() {
    for (int i = 0; i < 32; ++i) {
      ++sequence_;
      engine_.insert({inserts_.next(), sequence_, sequence_});
    }
  }

  // At a fixed rate, however slow the answers are.
  void find_beside() {
    const auto due = static_cast<std::uint64_t>(seconds_since(finding_since_) *
                                                static_cast<double>(options_.finds_per_s));
    for (; begun_ < due && outstanding_ < 512; ++begun_) {
      ++outstanding_;
      const auto began = Clock::now();
      engine_.begin_find(finds_.next(), sequence_, [this, began](std::optional<BenchVersion>) {
        --outstanding_;
        during_.record(ns_since(began));
      });
    }
  }

  void find_alone() {
    for (std::uint64_t i = 0; i < options_.finds; ++i) {
      const auto began = Clock::now();
      engine_.find(finds_.next(), sequence_);
      alone_.record(ns_since(began));
    }
  }

  void scan_alone() {
    for (std::uint64_t i = 0; i < options_.scans; ++i) {
      const std::uint64_t first = finds_.next();
      const auto began = Clock::now();
      engine_.scan(first, options_.scanned_blocks);
      scans_.record(ns_since(began));
    }
  }

  const LoadOptions& options_;
  IndexEngine& engine_;
  BlockWorkload inserts_;
  BlockWorkload finds_;
  std::uint64_t sequence_ = 0;
  Clock::time_point finding_since_;
  std::uint64_t begun_ = 0;
  std::uint64_t outstanding_ = 0;
  LatencyHistogram during_;
  LatencyHistogram alone_;
  LatencyHistogram scans_;
};

int run(int argc, char** argv) {
  LoadOptions options;
  CLI::App app{"versions into an index, for measuring"};
  app.add_option("--engine", options.engine);
  app.add_option("--folder", options.folder)->required();
  app.add_option("--memory-mib", options.memory_mib);
  app.add_option("--block-bytes", options.block_bytes);
  app.add_option("--versions", options.versions)->required();
  app.add_option("--blocks", options.blocks);
  app.add_option("--pattern", options.pattern);
  app.add_option("--warmup", options.warmup_s);
  app.add_option("--warmup-max", options.warmup_max_s);
  app.add_option("--seconds", options.seconds);
  app.add_option("--rest", options.rest_s);
  app.add_option("--rate", options.rate);
  app.add_option("--settle", options.settle_s);
  app.add_option("--finds-per-s", options.finds_per_s);
  app.add_option("--finds", options.finds);
  app.add_option("--scans", options.scans);
  app.add_option("--scanned-blocks", options.scanned_blocks);
  app.add_flag("--window", options.window);
  app.add_option("--seed", options.seed);
  app.add_option("--commit-threads", options.commit_threads);
  app.add_option("--runs", options.runs);
  CLI11_PARSE(app, argc, argv);
  Result<std::unique_ptr<IndexEngine>> engine = make_engine(options);
  Result<std::string> told = engine ? Load(options, **engine).run() : engine.error();
  if (engine) engine->reset();
  std::error_code ignored;
  std::filesystem::remove(options.folder + "/index.bin", ignored);
  std::filesystem::remove_all(options.folder + "/index.rocksdb", ignored);
  if (!told) {
    fmt::print(stderr, "{}\n", told.error().message);
    return 1;
  }
  fmt::print("{}\n", *told);
  return 0;
}

}  // namespace
}  // namespace mariner::bench

int main(int argc, char** argv) { return mariner::bench::run(argc, argv); }

// mariner-row-load: the papers' workloads on an index of rows, for measuring.
//
//   mariner-row-load --engine bosc --log writer --folder DIR --memory-mib 128 --index-mib 2048
//       --phases insert,update
//
// Fills the engine; then, for each of the phases (row_workload.h), one after another on the same
// index (an insert phase is warmed up with updates), brings updates past the log until the engine
// is in its steady state (--cycles commit cycles, or where there is no such thing until its memory
// is full; at most --warmup-max), then for --warmup as they are measured, and measures for
// --seconds, or until one cycle is complete, but no longer than three times that. Prints one JSON
// object.
//
// Engines: bosc, multi-queue, one-queue, vanilla. Logs: none, writer (Mariner's), append (a file
// that grows). With a log, updates count when they are durable, and at most --depth are under way.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "proto/check.h"
#include "tests/bench/append_log.h"
#include "tests/bench/load_measure.h"
#include "tests/bench/logged_rows.h"
#include "tests/bench/row_engines.h"
#include "tests/bench/row_workload.h"
#include "tests/bench/writer_log.h"

namespace mariner::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct LoadOptions {
  std::string engine = "bosc";
  std::string log = "none";
  std::string folder;
  std::vector<std::string> phases{"insert"};
  std::uint64_t memory_mib = 128;
  std::uint64_t index_mib = 1024;
  std::uint64_t warehouses = 10;  // of TPC-C, in its place
  std::uint32_t block_bytes = 65536;
  std::size_t record_bytes = 64;
  // So many that the log's latency, on the index's own disk, is not what limits them.
  std::size_t depth = 2048;
  double warmup_s = 1;
  double warmup_max_s = 10;
  double seconds = 5;
  std::uint64_t cycles = 2;
  std::uint64_t log_bytes = std::uint64_t{1} << 30;
  std::uint64_t seed = 1;
};

constexpr std::uint32_t kFill = 50;   // percent, of the leaves of the initial index (3.4.3)
constexpr std::size_t kApplied = 32;  // updates at a time
constexpr std::uint64_t kLogTrackBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kDiskSpareBytes = std::uint64_t{24} << 30;  // of a sparse file

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

class Load {
 public:
  // With a log, `logged` is `bare` with `log` in front of it.
  Load(const LoadOptions& options, RowEngine& bare, LoggedRows* logged, UpdateLog* log)
      : options_(options),
        bare_(bare),
        engine_(logged == nullptr ? bare : *logged),
        logged_(logged),
        log_(log),
        value_(options.record_bytes - index::kKeyBytes, std::byte{0x5a}) {}

  void fill(const RowWorkload& workload) {
    // Rows come by a callback, and the engine asks for them: they go over a buffer, in portions.
    std::vector<index::IndexKey> keys;
    workload.initial_rows([&](index::IndexKey key) { keys.push_back(key); });
    rows_ = keys.size();
    std::size_t at = 0;
    engine_.load(0, [&]() -> std::optional<RowEngine::Row> {
      if (at == keys.size()) return std::nullopt;
      return RowEngine::Row{keys[at++], value_};
    });
  }

  // Warmed up with `warming`, which ends after `cycles`.
  std::string run(const std::string& name, RowWorkload& workload, RowWorkload& warming,
                  std::uint64_t cycles) {
    const EngineCounts began_with = engine_.counts();
    auto began = Clock::now();
    while (!is_steady(seconds_since(began), began_with, cycles)) warm_up(warming);
    const double warmup_s = seconds_since(began);
    for (began = Clock::now(); seconds_since(began) < options_.warmup_s;) some(workload);

    const EngineCounts before = engine_.counts();
    const std::uint64_t log_before = log_ == nullptr ? 0 : log_->written_bytes();
    const CpuTime cpu_before = CpuTime::of_self();
    const std::uint64_t first = updates();
    const std::uint64_t reads_first = reads_;
    if (logged_ != nullptr) logged_->forget_latency();
    reading_ = {};
    began = Clock::now();
    while (!is_measured(seconds_since(began), before)) some(workload);
    const double measured_s = seconds_since(began);
    const CpuTime cpu = CpuTime::of_self() - cpu_before;
    const EngineCounts after = engine_.counts();
    const std::uint64_t log_bytes = log_ == nullptr ? 0 : log_->written_bytes() - log_before;
    const auto count = static_cast<double>(updates() - first);
    const auto reads = static_cast<double>(reads_ - reads_first);
    // What is under way belongs to no phase.
    while (outstanding_reads_ > 0) engine_.poll();
    if (logged_ != nullptr) logged_->settle();
    const auto each = [&](std::uint64_t a, std::uint64_t b) {
      return static_cast<double>(b - a) / std::max(count, 1.0);
    };
    return fmt::format(
        R"({{"phase": "{}", "warmup_s": {:.1f}, "measured_s": {:.2f}, "cycles": {}, )"
        R"("updates": {:.0f}, "updates_per_s": {:.1f}, "reads_per_s": {:.1f}, )"
        R"("cpu_us": {:.3f}, "written_bytes": {:.1f}, "read_bytes": {:.1f}, "log_bytes": {:.1f}, )"
        R"("disk_bytes": {}, "engine_memory_bytes": {}, "node_bytes": {}, "durable_us": {}, )"
        R"("find_us": {}}})",
        name, warmup_s, measured_s, after.cycles - before.cycles, count, count / measured_s,
        reads / measured_s, cpu.total_s() * 1e6 / std::max(count, 1.0),
        each(before.bytes_written, after.bytes_written), each(before.bytes_read, after.bytes_read),
        static_cast<double>(log_bytes) / std::max(count, 1.0), after.disk_bytes, after.memory_bytes,
        after.node_bytes, percentiles(logged_ == nullptr ? LatencyHistogram{} : logged_->latency()),
        percentiles(reading_));
  }

  [[nodiscard]] std::uint64_t rows() const { return rows_; }

 private:
  [[nodiscard]] std::uint64_t updates() const {
    return logged_ == nullptr ? brought_ : logged_->applied();
  }

  static std::string percentiles(const LatencyHistogram& times) {
    return fmt::format(R"({{"mean": {:.1f}, "p50": {:.1f}, "p99": {:.1f}}})", times.mean() / 1e3,
                       static_cast<double>(times.percentile(50)) / 1e3,
                       static_cast<double>(times.percentile(99)) / 1e3);
  }

  [[nodiscard]] bool has_cycles() const {
    return options_.engine == "bosc" || options_.engine == "multi-queue";
  }
  [[nodiscard]] bool is_steady(double seconds, const EngineCounts& then,
                               std::uint64_t cycles) const {
    if (seconds >= options_.warmup_max_s) return true;
    const EngineCounts now = engine_.counts();
    if (has_cycles()) return now.cycles - then.cycles >= cycles;
    return now.bytes_written > then.bytes_written;  // its memory is full
  }
  [[nodiscard]] bool is_measured(double seconds, const EngineCounts& then) const {
    if (seconds < options_.seconds) return false;
    return !has_cycles() || seconds >= 3 * options_.seconds ||
           engine_.counts().cycles > then.cycles;
  }

  // Brings some updates, past the log.
  void warm_up(RowWorkload& workload) {
    while (updates_.size() < kApplied) {
      const RowWorkload::Access access = workload.next();
      if (access.kind != RowWorkload::Kind::kRead) gather(access);
    }
    bare_.apply(updates_);
    updates_.clear();
  }
  void gather(const RowWorkload::Access& access) {
    const bool erases = access.kind == RowWorkload::Kind::kDelete;
    updates_.push_back({0, access.key, erases ? RowEngine::Value{} : value_});
  }

  // Brings some accesses: updates together, as long as no read comes between them.
  void some(RowWorkload& workload) {
    for (std::size_t i = 0; i < kApplied; ++i) {
      const RowWorkload::Access access = workload.next();
      if (access.kind == RowWorkload::Kind::kRead) {
        bring();
        read(access.key);
        continue;
      }
      gather(access);
    }
    bring();
  }
  void bring() {
    if (updates_.empty()) return;
    engine_.apply(updates_);
    brought_ += updates_.size();
    updates_.clear();
  }
  void read(index::IndexKey key) {
    while (outstanding_reads_ >= options_.depth) engine_.poll();
    ++outstanding_reads_;
    engine_.begin_find(
        0, {key, key}, [this, began = Clock::now()](const std::optional<index::IndexRecord>&) {
          --outstanding_reads_;
          ++reads_;
          reading_.record(static_cast<std::uint64_t>((Clock::now() - began).count()));
        });
  }

  const LoadOptions& options_;
  RowEngine& bare_;
  RowEngine& engine_;
  LoggedRows* const logged_;
  UpdateLog* const log_;
  const std::vector<std::byte> value_;
  std::vector<RowUpdate> updates_;
  std::uint64_t rows_ = 0;
  std::uint64_t brought_ = 0;
  std::uint64_t reads_ = 0;
  std::size_t outstanding_reads_ = 0;
  LatencyHistogram reading_;
};

// How many rows fill an index of that size.
std::uint64_t rows_for(const LoadOptions& options) {
  const index::LeafShape shape{options.block_bytes - index::kIndexBlockHeaderBytes,
                               options.record_bytes - index::kKeyBytes};
  const std::uint64_t each = shape.capacity() * kFill / 100;
  return std::max<std::uint64_t>((options.index_mib << 20) / options.block_bytes * each, 1);
}

Result<std::unique_ptr<UpdateLog>> make_log(const LoadOptions& options, RingLoop& loop) {
  if (options.log == "writer") {
    auto log =
        WriterLog::create({options.folder + "/row-log", options.log_bytes, kLogTrackBytes}, loop);
    if (!log) return log.error();
    return std::unique_ptr<UpdateLog>(*std::move(log));
  }
  if (options.log == "append") {
    auto log = AppendLog::create(options.folder + "/row-append-log", loop);
    if (!log) return log.error();
    return std::unique_ptr<UpdateLog>(*std::move(log));
  }
  return std::unique_ptr<UpdateLog>();
}

Result<std::string> measure(const LoadOptions& options) {
  auto loop = RingLoop::create();
  if (!loop) return loop.error();
  RowEngineOptions shape;
  shape.path = options.folder + "/rows.bin";
  shape.disk_bytes = ((options.index_mib << 22) + kDiskSpareBytes) >> 20 << 20;
  shape.block_bytes = options.block_bytes;
  shape.memory_bytes = options.memory_mib << 20;
  shape.tables = {{.value_bytes = options.record_bytes - index::kKeyBytes, .load_fill = kFill}};
  auto rows = make_row_engine(options.engine, shape, **loop);
  if (!rows) return rows.error();
  auto log = make_log(options, **loop);
  if (!log) return log.error();
  std::unique_ptr<LoggedRows> logged;
  if (*log) {
    logged = std::make_unique<LoggedRows>(
        LoggedRows::Parts{**rows, **log, **loop},
        LoggedRows::Options{options.depth, shape.tables.front().value_bytes});
  }
  Load load(options, **rows, logged.get(), log->get());
  std::string told;
  double fill_s = 0;
  for (const std::string& name : options.phases) {
    const auto pattern = RowWorkload::pattern_of(name);
    if (!pattern) return Error{ErrorCode::kInvalidArgument, "there is no phase \"" + name + "\""};
    RowWorkload::Options work{.pattern = *pattern,
                              .rows = rows_for(options),
                              .warehouses = options.warehouses,
                              .seed = options.seed};
    RowWorkload workload(work);
    // Updates fill the queues as inserts do, without making the index larger. What is consecutive
    // needs queues of its own.
    using Pattern = RowWorkload::Pattern;
    const bool consecutive = *pattern == Pattern::kClustered || *pattern == Pattern::kSequential;
    if (*pattern == Pattern::kInsert) work.pattern = Pattern::kUpdate;
    RowWorkload updates(work);
    const bool by_itself = work.pattern == *pattern;
    if (told.empty()) {
      const auto began = Clock::now();
      load.fill(workload);
      fill_s = seconds_since(began);
    }
    told += (told.empty() ? "" : ", ") + load.run(name, workload, by_itself ? workload : updates,
                                                  consecutive ? 1 : options.cycles);
  }
  return fmt::format(
      R"({{"engine": "{}", "log": "{}", "memory_mib": {}, "block_bytes": {}, "record_bytes": {}, )"
      R"("rows": {}, "fill_s": {:.1f}, "phases": [{}], "failure": ""}})",
      options.engine, options.log, options.memory_mib, options.block_bytes, options.record_bytes,
      load.rows(), fill_s, told);
}

int main(int argc, char** argv) {
  LoadOptions options;
  CLI::App app{"the papers' workloads on an index of rows, for measuring"};
  app.add_option("--engine", options.engine)
      ->check(CLI::IsMember({"bosc", "multi-queue", "one-queue", "vanilla"}));
  app.add_option("--log", options.log)->check(CLI::IsMember({"none", "writer", "append"}));
  app.add_option("--folder", options.folder)->required()->check(CLI::ExistingDirectory);
  app.add_option("--phases", options.phases, "of one kind: TPC-C or not")->delimiter(',');
  app.add_option("--memory-mib", options.memory_mib)->check(CLI::PositiveNumber);
  app.add_option("--index-mib", options.index_mib)->check(CLI::PositiveNumber);
  app.add_option("--warehouses", options.warehouses)->check(CLI::PositiveNumber);
  app.add_option("--block-bytes", options.block_bytes);
  app.add_option("--record-bytes", options.record_bytes, "key and value")
      ->check(CLI::Range(24, 4096));
  app.add_option("--depth", options.depth, "updates under way, and lookups")
      ->check(CLI::Range(1, 3072));
  app.add_option("--warmup", options.warmup_s);
  app.add_option("--warmup-max", options.warmup_max_s);
  app.add_option("--cycles", options.cycles);
  app.add_option("--seconds", options.seconds);
  app.add_option("--log-bytes", options.log_bytes)->transform(CLI::AsSizeValue(false));
  app.add_option("--seed", options.seed);
  CLI11_PARSE(app, argc, argv);
  const Result<std::string> told = measure(options);
  if (!told) {
    fmt::print(stderr, "mariner-row-load: {}\n", told.error().message);
    return 1;
  }
  fmt::print("{}\n", *told);
  return 0;
}

}  // namespace
}  // namespace mariner::bench

int main(int argc, char** argv) { return mariner::bench::main(argc, argv); }

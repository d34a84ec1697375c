// mariner-index-recovery: how long a start takes with a version index on disk, for measuring.
//
//   mariner-index-recovery --folder DIR --versions 20000000 --pending 100000,500000 --rounds 5
//
// Makes an index of that many versions, committed, and for each of --pending a log behind it that
// many of whose records (4 KiB each, in batches of 32) the index does not have, after --committed
// ones that it has. Then starts so many times: opens the index, with its internal nodes; recovers
// the log with the daemon's threads, and gives the index what it lacks. Files are read with
// O_DIRECT, so that no page cache helps. Each start is verified: the newest version of some blocks
// is looked up. Prints one JSON object.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "logging/recovery.h"
#include "logging/track_finder.h"
#include "proto/check.h"
#include "tests/bench/filled_index.h"
#include "tests/bench/made_log.h"

namespace mariner::bench {
namespace {

using Clock = std::chrono::steady_clock;
using logging::FileDisk;

struct Options {
  std::string folder;
  std::uint64_t versions = 20'000'000;
  std::vector<std::uint64_t> pending{500'000};
  std::uint64_t committed = 0;
  std::uint32_t block_bytes = 16384;
  std::size_t memory_mib = 256;
  unsigned rounds = 5;
  unsigned threads = 4;  // the daemon's
};

constexpr std::size_t kInsertedAtOnce = 512;
constexpr std::uint64_t kLookedUp = 64;  // one of so many, at most kLookupsMax
constexpr std::size_t kLookupsMax = 500;

double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

std::string list_of(const std::vector<double>& values) {
  return fmt::format("[{:.4f}]", fmt::join(values, ", "));
}

struct Start {
  double youngest_s = 0;  // to find the youngest track alone, which is part of the next but one
  double open_s = 0;      // superblock, checkpoint, internal nodes
  double learn_s = 0;     // what the index learns from its leaves
  std::uint64_t learn_bytes = 0;
  double replay_s = 0;  // the log, and what the index lacks of it
  std::uint64_t records = 0;
  std::uint64_t queued = 0;
  std::uint64_t node_bytes = 0;
  std::uint64_t leaves_bytes = 0;
};

Result<void> verify(OpenedIndex& opened, const std::vector<index::StoredIndex::Logged>& some) {
  for (const auto& [record, location] : some) {
    const auto found = opened.locate(record.extent, record.sequence);
    if (!found) return found.error();
    if (found->size() != 1 || found->front().sequence != record.sequence ||
        found->front().location != location) {
      return Error{ErrorCode::kCorrupt, "the index does not have what the log has"};
    }
  }
  return {};
}

Result<Start> start(const Options& options, const FilledIndexOptions& filled, FileDisk& log,
                    std::uint64_t pending) {
  Start start;
  const auto superblock = logging::read_superblock(log);
  if (!superblock) return superblock.error();
  auto began = Clock::now();
  if (const auto end = logging::find_taken_end(log, *superblock, logging::TrackList(*superblock));
      !end) {
    return end.error();
  }
  start.youngest_s = seconds_since(began);

  began = Clock::now();
  auto opened = OpenedIndex::open(filled);
  if (!opened) return opened.error();
  start.learn_s = std::chrono::duration<double>((*opened)->learning()).count();
  start.open_s = seconds_since(began) - start.learn_s;
  start.learn_bytes = (*opened)->store().statistics().bytes_read;

  began = Clock::now();
  index::StoredIndex& index = (*opened)->index();
  const std::uint64_t frontier = (*opened)->store().frontier();
  std::vector<index::StoredIndex::Logged> batch;
  std::vector<index::StoredIndex::Logged> looked_up;
  const auto give = [&] {
    if (batch.empty()) return;
    index.insert_all(batch);
    (*opened)->store().set_used_through(batch.back().record.ordinal);
    start.queued += batch.size();
    batch.clear();
  };
  const logging::LogDiskRef ref{log, *superblock};
  const auto recovered = logging::recover_log(
      {&ref, 1}, options.threads,
      [&](const logging::Record& record, const logging::LogLocation& location) {
        ++start.records;
        if (record.ordinal <= frontier) return;
        if (record.ordinal % kLookedUp == 0 && looked_up.size() < kLookupsMax) {
          looked_up.push_back({record, location});
        }
        batch.push_back({record, location});
        if (batch.size() == kInsertedAtOnce) give();
      });
  give();
  start.replay_s = seconds_since(began);
  if (!recovered) return recovered.error();
  if (start.queued != pending || start.records != pending + options.committed ||
      !recovered->damage.empty()) {
    return Error{ErrorCode::kCorrupt, "the log that was made is not the one that was found"};
  }
  if (!(*opened)->store().has_room()) {
    return Error{ErrorCode::kInvalidArgument, "--memory-mib is too little for what is pending"};
  }
  if (auto r = verify(**opened, looked_up); !r) return r.error();
  start.node_bytes = (*opened)->store().state_bytes();
  start.leaves_bytes =
      std::uint64_t{(*opened)->store().allocated_blocks()} * (*opened)->store().block_bytes();
  return start;
}

Result<std::string> measure(const Options& options, const FilledIndexOptions& filled,
                            std::uint64_t pending) {
  const std::string path = options.folder + "/index-recovery-log";
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  const MadeLog made{.records = pending + options.committed,
                     .first = options.versions - options.committed + 1};
  if (auto r = FileDisk::create(path, FileDisk::Caching::kDirect, made.disk_bytes()); !r) {
    return r.error();
  }
  auto log = FileDisk::open(path, FileDisk::Caching::kDirect, nullptr);
  if (!log) return log.error();
  if (auto superblock = make_log(**log, made); !superblock) return superblock.error();
  std::vector<double> youngest;
  std::vector<double> open;
  std::vector<double> learn;
  std::vector<double> replay;
  Start last;
  for (unsigned round = 0; round < options.rounds; ++round) {
    auto one = start(options, filled, **log, pending);
    if (!one) return one.error();
    last = *one;
    youngest.push_back(last.youngest_s);
    open.push_back(last.open_s);
    learn.push_back(last.learn_s);
    replay.push_back(last.replay_s);
  }
  log->reset();
  std::filesystem::remove(path, ignored);
  return fmt::format(
      R"({{"pending": {}, "records": {}, "queued": {}, "youngest_s": {}, "open_s": {}, )"
      R"("learn_s": {}, "learn_bytes": {}, "replay_s": {}, "state_bytes": {}, "index_bytes": {}}})",
      pending, last.records, last.queued, list_of(youngest), list_of(open), list_of(learn),
      last.learn_bytes, list_of(replay), last.node_bytes, last.leaves_bytes);
}

Result<std::string> measure_all(const Options& options) {
  const FilledIndexOptions filled{.path = options.folder + "/index-recovery",
                                  .versions = options.versions,
                                  .block_bytes = options.block_bytes,
                                  .memory_bytes = options.memory_mib << 20};
  const auto began = Clock::now();
  if (auto r = make_filled_index(filled); !r) return r.error();
  const double fill_s = seconds_since(began);
  std::string told;
  for (const std::uint64_t pending : options.pending) {
    auto one = measure(options, filled, pending);
    if (!one) return one.error();
    told += (told.empty() ? "" : ", ") + *one;
  }
  return fmt::format(
      R"({{"versions": {}, "committed": {}, "memory_mib": {}, "threads": {}, "fill_s": {:.1f}, )"
      R"("starts": [{}], "failure": ""}})",
      options.versions, options.committed, options.memory_mib, options.threads, fill_s, told);
}

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"How long a start takes with a version index on disk, for measuring"};
  app.add_option("--folder", options.folder)->required()->check(CLI::ExistingDirectory);
  app.add_option("--versions", options.versions, "in the index")
      ->check(CLI::Range(std::uint64_t{1'000}, std::uint64_t{1} << 27));
  app.add_option("--pending", options.pending, "in the log, but not in the index")->delimiter(',');
  app.add_option("--committed", options.committed, "in the log and in the index");
  app.add_option("--block-bytes", options.block_bytes);
  app.add_option("--memory-mib", options.memory_mib);
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 1000));
  app.add_option("--threads", options.threads)->check(CLI::Range(0, 64));
  CLI11_PARSE(app, argc, argv);
  if (options.committed > options.versions) {
    std::fprintf(stderr, "mariner-index-recovery: more is committed than there is\n");
    return 2;
  }
  const Result<std::string> told = measure_all(options);
  std::error_code ignored;
  std::filesystem::remove(options.folder + "/index-recovery", ignored);
  std::filesystem::remove(options.folder + "/index-recovery-log", ignored);
  if (!told) {
    std::fprintf(stderr, "mariner-index-recovery: %s\n", told.error().message.c_str());
    return 1;
  }
  fmt::print("{}\n", *told);
  return 0;
}

}  // namespace
}  // namespace mariner::bench

int main(int argc, char** argv) { return mariner::bench::main(argc, argv); }

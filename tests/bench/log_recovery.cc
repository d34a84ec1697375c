// mariner-log-recovery: how long it takes to find a log again, for measuring.
//
//   mariner-log-recovery records --folder DIR --records 1000000 --rounds 5
//   mariner-log-recovery tracks --tracks 1000000
//
// `records` makes a log of that many records of 4 KiB in batches of 32, and recovers it so many
// times as the daemon does at its start: with the same threads, into an index of versions that has
// nothing yet and takes all of it into its queues. The file is read with O_DIRECT, so that no page
// cache helps. `tracks` counts how many tracks the search for the youngest one reads, at every fill
// level of a large log. Each prints one JSON object.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "index/index_file.h"
#include "index/stored_index.h"
#include "logging/file_disk.h"
#include "logging/recovery.h"
#include "proto/check.h"
#include "tests/bench/made_log.h"
#include "tests/support/manual_executor.h"
#include "tests/support/watched_disk.h"

namespace mariner::bench {
namespace {

using logging::FileDisk;

struct Options {
  std::string folder;
  std::uint64_t records = 1'000'000;
  std::uint64_t tracks = 1'000'000;
  unsigned rounds = 5;
  unsigned threads = 4;  // the daemon's
  bool keep = false;
};

int refuse(const Error& error) {
  std::fprintf(stderr, "mariner-log-recovery: %s\n", to_string(error).c_str());
  return 3;
}

double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

std::string list_of(const std::vector<double>& values) {
  return fmt::format("[{:.4f}]", fmt::join(values, ", "));
}

// Makes the log, unless a whole one of the same size is there.
Result<void> prepare(const std::string& path, const MadeLog& log) {
  std::error_code error;
  if (std::filesystem::exists(path, error) &&
      std::filesystem::file_size(path, error) == log.disk_bytes()) {
    return {};
  }
  const std::string fresh = path + ".new";
  std::filesystem::remove(fresh, error);
  if (auto r = FileDisk::create(fresh, FileDisk::Caching::kDirect, log.disk_bytes()); !r) return r;
  {
    auto disk = FileDisk::open(fresh, FileDisk::Caching::kDirect, nullptr);
    if (!disk) return disk.error();
    if (auto made = make_log(**disk, log); !made) return made.error();
  }
  std::filesystem::rename(fresh, path, error);
  if (error) return errno_error(error.value(), path + ": rename");
  return {};
}

// An index in a fresh file.
class FreshIndex {
 public:
  static Result<std::unique_ptr<FreshIndex>> create(const std::string& path) {
    std::unique_ptr<FreshIndex> fresh(new FreshIndex);
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    constexpr std::uint64_t kFileBytes = 4ull << 30;  // sparse
    if (auto r = FileDisk::create(path, FileDisk::Caching::kBuffered, kFileBytes); !r) {
      return r.error();
    }
    auto disk = FileDisk::open(path, FileDisk::Caching::kDirect, nullptr);
    if (!disk) return disk.error();
    fresh->disk_ = *std::move(disk);
    std::filesystem::remove(path, ignored);
    if (auto r = index::format_index_file(*fresh->disk_, {}); !r) return r.error();
    index::BoscOptions options;
    options.memory_bytes = std::size_t{1} << 30;
    auto store = index::Bosc::open(fresh->executor_, *fresh->disk_, options);
    if (!store) return store.error();
    fresh->store_ = *std::move(store);
    auto index = index::StoredIndex::open(*fresh->store_, VolumeId{1});
    if (!index) return index.error();
    fresh->index_ = *std::move(index);
    return fresh;
  }
  ~FreshIndex() {
    store_->drain(nullptr);
    store_.reset();  // before its functions
  }
  [[nodiscard]] index::StoredIndex& index() { return *index_; }

 private:
  FreshIndex() = default;
  test::ManualExecutor executor_;
  std::unique_ptr<FileDisk> disk_;
  std::unique_ptr<index::Bosc> store_;
  std::unique_ptr<index::StoredIndex> index_;
};

int recover_records(const Options& options) {
  const std::string path = options.folder + "/recovery-log";
  const MadeLog log{.records = options.records};
  if (auto r = prepare(path, log); !r) return refuse(r.error());
  auto file = FileDisk::open(path, FileDisk::Caching::kDirect, nullptr);
  if (!file) return refuse(file.error());
  std::vector<double> replayed;  // with the index
  std::vector<double> scanned;   // without
  std::uint64_t reads = 0;
  std::uint64_t bytes_read = 0;
  for (unsigned round = 0; round < 2 * options.rounds; ++round) {
    const bool with_index = round % 2 == 0;
    test::WatchedDisk disk(**file);
    auto fresh = FreshIndex::create(options.folder + "/recovery-index");
    if (!fresh) return refuse(fresh.error());
    const auto began = std::chrono::steady_clock::now();
    const auto superblock = logging::read_superblock(disk);
    if (!superblock) return refuse(superblock.error());
    const logging::LogDiskRef ref{disk, *superblock};
    const auto recovered = logging::recover_log(
        {&ref, 1}, options.threads,
        [&](const logging::Record& record, const logging::LogLocation& location) {
          if (with_index) (*fresh)->index().insert(record, location);
        });
    (*fresh)->index().flush();
    (with_index ? replayed : scanned).push_back(seconds_since(began));
    if (!recovered) return refuse(recovered.error());
    if (recovered->records != options.records || !recovered->damage.empty()) {
      return refuse({ErrorCode::kCorrupt, "the log that was made is not the one that was found"});
    }
    reads = disk.reads().size();
    bytes_read = disk.bytes_read();
  }
  fmt::print(
      "{{\"records\": {}, \"log_bytes\": {}, \"threads\": {}, \"replay_s\": {}, \"scan_s\": {}, "
      "\"reads\": {}, \"bytes_read\": {}, \"failure\": \"\"}}\n",
      options.records, log.disk_bytes(), options.threads, list_of(replayed), list_of(scanned),
      reads, bytes_read);
  file->reset();
  std::error_code ignored;
  if (!options.keep) std::filesystem::remove(path, ignored);
  return 0;
}

// An empty log, a full one, and levels in between that bring the search to every place.
std::vector<std::uint64_t> fill_levels(std::uint64_t tracks) {
  std::vector<std::uint64_t> levels{0, 1, 2, 3, tracks / 3, tracks / 2, tracks - 1, tracks};
  for (std::uint64_t i = 0; i < 1000; ++i) levels.push_back(i * tracks / 1000 + i % 7);
  return levels;
}

int find_youngest(const Options& options) {
  const logging::Superblock superblock = superblock_of(options.tracks);
  const logging::TrackList tracks(superblock);
  const auto began = std::chrono::steady_clock::now();
  std::uint64_t most = 0;
  std::uint64_t total = 0;
  const std::vector<std::uint64_t> levels = fill_levels(options.tracks);
  for (const std::uint64_t taken : levels) {
    HeaderDisk headers(superblock, taken);
    test::WatchedDisk disk(headers);
    const auto end = logging::find_taken_end(disk, superblock, tracks);
    if (!end) return refuse(end.error());
    CHECK(end->end == taken + 1 && end->track_reads == disk.reads().size());
    most = std::max(most, disk.reads().size());
    total += disk.reads().size();
  }
  fmt::print(
      "{{\"tracks\": {}, \"levels\": {}, \"reads_max\": {}, \"reads_mean\": {:.2f}, "
      "\"seconds\": {:.3f}, \"failure\": \"\"}}\n",
      options.tracks, levels.size(), most,
      static_cast<double>(total) / static_cast<double>(levels.size()), seconds_since(began));
  return 0;
}

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"How long it takes to find a log again, for measuring"};
  app.require_subcommand(1);
  CLI::App* records = app.add_subcommand("records", "recover a log of many records");
  records->add_option("--folder", options.folder, "where the log's file is made")
      ->required()
      ->check(CLI::ExistingDirectory);
  records->add_option("--records", options.records)->check(CLI::Range(1, 100'000'000));
  records->add_option("--rounds", options.rounds)->check(CLI::Range(1, 1000));
  records->add_option("--threads", options.threads)->check(CLI::Range(0, 64));
  records->add_flag("--keep", options.keep, "leave the file for another run");
  CLI::App* tracks = app.add_subcommand("tracks", "find the youngest of many tracks");
  tracks->add_option("--tracks", options.tracks)->check(CLI::Range(4, 100'000'000));
  CLI11_PARSE(app, argc, argv);
  return records->parsed() ? recover_records(options) : find_youngest(options);
}

}  // namespace
}  // namespace mariner::bench

int main(int argc, char** argv) { return mariner::bench::main(argc, argv); }

// mariner-versioned-store-load: RocksDB as a store that remembers every write, for measuring.
//
//   mariner-versioned-store-load FOLDER --writers 32 --seconds 15 ...
//
// So many threads write 4 KiB blocks at random, each write durable before the next one of its
// thread (sync), and each a version of its own: the key is the block and a number that counts up,
// big-endian. Nothing is ever removed. Prints one JSON object as mariner-iscsi-load does.
//
// Tuned as a careful user would: values in blob files, so that compaction does not move them; the
// write-ahead log's files used again, so that a sync writes no metadata; no compression; direct
// I/O behind the memtables. --blobs off keeps the values in the sorted files.
#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/table.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/bench/json_text.h"
#include "tests/bench/latency_json.h"
#include "tests/bench/load_measure.h"

namespace mariner::bench {
namespace {

constexpr std::size_t kBlockBytes = 4096;

struct Options {
  std::string folder;
  unsigned writers = 32;
  std::uint64_t region_bytes = 1ull << 30;
  std::uint64_t memory_bytes = 512ull << 20;  // of all memtables
  double warmup_s = 1;
  double seconds = 10;
  std::uint64_t seed = 1;
  bool blobs = true;
};

Nanoseconds now() {
  return std::chrono::duration_cast<Nanoseconds>(
      std::chrono::steady_clock::now().time_since_epoch());
}

rocksdb::Options tuned(const Options& options) {
  constexpr int kMemtables = 4;
  rocksdb::Options tuned;
  tuned.create_if_missing = true;
  tuned.error_if_exists = true;
  tuned.max_background_jobs = static_cast<int>(std::max(std::thread::hardware_concurrency(), 2u));
  tuned.write_buffer_size = options.memory_bytes / kMemtables;
  tuned.max_write_buffer_number = kMemtables;
  tuned.compression = rocksdb::kNoCompression;
  tuned.use_direct_reads = true;
  tuned.use_direct_io_for_flush_and_compaction = true;
  tuned.enable_pipelined_write = true;
  tuned.recycle_log_file_num = kMemtables;
  tuned.level_compaction_dynamic_level_bytes = true;
  tuned.max_bytes_for_level_base = 4 * tuned.write_buffer_size;
  tuned.enable_blob_files = options.blobs;
  tuned.min_blob_size = kBlockBytes / 2;
  return tuned;
}

class Load {
 public:
  Load(rocksdb::DB& db, const Options& options)
      : db_(db), options_(options), measure_(now(), options.warmup_s, options.seconds) {}

  const LoadMeasure& run() {
    {
      std::vector<std::jthread> writers;
      for (unsigned i = 0; i < options_.writers; ++i) {
        writers.emplace_back([this, i] { write(options_.seed + i); });
      }
    }
    measure_.finish();
    return measure_;
  }

 private:
  void write(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::string value(kBlockBytes, '\0');
    for (char& byte : value) byte = static_cast<char>(random());
    rocksdb::WriteOptions durable;
    durable.sync = true;
    const std::uint64_t blocks = options_.region_bytes / kBlockBytes;
    for (bool more = true; more;) {
      std::string key;
      for (const std::uint64_t part : {random() % blocks, version_.fetch_add(1)}) {
        for (int shift = 56; shift >= 0; shift -= 8) key += static_cast<char>(part >> shift);
      }
      const Nanoseconds began = now();
      const rocksdb::Status status = db_.Put(durable, key, value);
      const Nanoseconds ended = now();
      const std::scoped_lock lock(mutex_);
      if (!status.ok()) measure_.fail(status.ToString());
      measure_.completed(began, ended);
      more = measure_.wants_more(ended);
    }
  }

  rocksdb::DB& db_;
  const Options& options_;
  std::atomic<std::uint64_t> version_{1};
  std::mutex mutex_;
  LoadMeasure measure_;  // guarded by mutex_
};

int print(const LoadMeasure& measure) {
  const double seconds = measure.seconds();
  const auto operations = static_cast<double>(measure.latency().total());
  const double rate = seconds > 0 ? operations / seconds : 0;
  fmt::print("{{\"operations\": {:.0f}, \"seconds\": {:.3f}, \"rate\": {:.1f}, ", operations,
             seconds, rate);
  fmt::print("\"bytes_per_s\": {:.0f}, \"server_cpu_us\": {:.2f}, ", rate * kBlockBytes,
             operations > 0 ? measure.cpu().total_s() / operations * 1e6 : 0);
  fmt::print("\"latency_us\": {}, \"failure\": {}}}\n", latency_us_json(measure.latency()),
             json_quoted(measure.failure()));
  return measure.failure().empty() ? 0 : 1;
}

}  // namespace
}  // namespace mariner::bench

int main(int argc, char** argv) {
  using namespace mariner::bench;
  Options options;
  CLI::App app("RocksDB as a store that remembers every write");
  app.add_option("folder", options.folder, "is made; must not hold a database")->required();
  app.add_option("--writers", options.writers, "threads")->check(CLI::Range(1u, 1024u));
  app.add_option("--region-bytes", options.region_bytes)
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::uint64_t{4096}, std::uint64_t{1} << 50));
  app.add_option("--memory", options.memory_bytes, "of all memtables")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::uint64_t{4} << 20, std::uint64_t{1} << 40));
  app.add_option("--warmup", options.warmup_s, "seconds");
  app.add_option("--seconds", options.seconds, "that are measured");
  app.add_option("--seed", options.seed);
  app.add_option("--blobs", options.blobs, "values in blob files");
  CLI11_PARSE(app, argc, argv);

  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(tuned(options), options.folder, &opened);
  if (!status.ok()) {
    fmt::print(stderr, "{}: {}\n", options.folder, status.ToString());
    return 1;
  }
  const std::unique_ptr<rocksdb::DB> db(opened);
  Load load(*db, options);
  return print(load.run());
}

#include "tests/bench/rocksdb_index.h"

#include <rocksdb/env.h>
#include <rocksdb/iterator.h>
#include <rocksdb/sst_file_writer.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "proto/bytes.h"
#include "proto/check.h"

// A function of RocksDB that only a library built without NDEBUG has, as a distribution's may be:
// sync points, for its own tests. Such a one checks its skip lists at every insert, among much
// else, and takes a multiple of the CPU time. Null where it is not.
extern "C" __attribute__((weak)) void mariner_rocksdb_sync_point() __asm__(
    "_ZN7rocksdb9SyncPoint11GetInstanceEv");

namespace mariner::bench {
namespace {

constexpr std::size_t kKeyBytes = 16;
constexpr std::size_t kByTimeBytes = 32;
constexpr std::size_t kByBlockBytes = 16;

using Key = std::array<char, kKeyBytes>;

Key make_key(std::uint64_t high, std::uint64_t low) {
  Key key;
  store_be(key.data(), high);
  store_be(key.data() + kBlockPrefixBytes, low);
  return key;
}

template <std::size_t kBytes>
rocksdb::Slice slice(const std::array<char, kBytes>& bytes) {
  return {bytes.data(), bytes.size()};
}

std::array<char, kByTimeBytes> time_value(const BenchVersion& version) {
  std::array<char, kByTimeBytes> value{};
  store_le(value.data(), version.place);
  store_le(value.data() + 8, version.block);
  return value;
}

std::array<char, kByBlockBytes> block_value(const BenchVersion& version) {
  std::array<char, kByBlockBytes> value{};
  store_le(value.data(), version.place);
  return value;
}

Result<void> result_of(const rocksdb::Status& status) {
  if (status.ok()) return {};
  return Error{ErrorCode::kIo, "RocksDB: " + status.ToString()};
}

// The second half of a key by block, and back.
std::uint64_t by_block_low(const RocksDbOptions& options, std::uint64_t sequence) {
  return options.newest_first ? ~sequence : sequence;
}

// The same versions, those of a block in the opposite order.
IndexEngine::Next newest_first(const IndexEngine::Next& next) {
  struct Run {
    std::vector<BenchVersion> versions;  // of one block
    std::optional<BenchVersion> ahead;   // of the next one
  };
  return [next, run = std::make_shared<Run>()]() -> std::optional<BenchVersion> {
    if (run->versions.empty()) {
      if (!run->ahead) run->ahead = next();
      while (run->ahead &&
             (run->versions.empty() || run->versions.back().block == run->ahead->block)) {
        run->versions.push_back(*run->ahead);
        run->ahead = next();
      }
    }
    if (run->versions.empty()) return std::nullopt;
    const BenchVersion last = run->versions.back();
    run->versions.pop_back();
    return last;
  };
}

void check(const rocksdb::Status& status) { CHECK_MSG(status.ok(), status.ToString().c_str()); }

}  // namespace

Result<std::unique_ptr<RocksDbIndex>> RocksDbIndex::create(const RocksDbOptions& options) {
  CHECK(options.memory_bytes > 0 && options.write_buffer_percent < 100);
  CHECK(options.versions_per_batch > 0);
  std::unique_ptr<RocksDbIndex> index(new RocksDbIndex(options));
  if (Result<void> opened = index->open(); !opened) return opened.error();
  return index;
}

RocksDbIndex::RocksDbIndex(const RocksDbOptions& options)
    : options_(options),
      env_(rocksdb::NewCompositeEnv(
          std::make_shared<CountingFileSystem>(rocksdb::FileSystem::Default(), file_counts_))),
      cache_(rocksdb::NewLRUCache(options.memory_bytes)),
      db_options_(tuned_db(options, env_.get(), cache_)) {}

rocksdb::ColumnFamilyOptions RocksDbIndex::family_options(Family family) const {
  return family == kByTime ? tuned_by_time(options_, cache_) : tuned_by_block(options_, cache_);
}

Result<void> RocksDbIndex::open() {
  rocksdb::Options destroyed;
  destroyed.env = env_.get();
  Result<void> gone = result_of(rocksdb::DestroyDB(options_.path, destroyed));
  if (!gone) return gone;
  const std::vector<rocksdb::ColumnFamilyDescriptor> described{
      {rocksdb::kDefaultColumnFamilyName, family_options(kByTime)},
      {"block", family_options(kByBlock)}};
  rocksdb::DB* db = nullptr;
  Result<void> opened =
      result_of(rocksdb::DB::Open(db_options_, options_.path, described, &families_, &db));
  if (!opened) return opened;
  db_.reset(db);
  pending_.reserve(options_.versions_per_batch);
  reader_ = std::jthread([this](std::stop_token stop) { answer_finds(stop); });
  return {};
}

RocksDbIndex::~RocksDbIndex() {
  if (!db_) return;
  CHECK(finds_ == 0);
  reader_.request_stop();
  reader_.join();
  for (rocksdb::ColumnFamilyHandle* family : families_) {
    check(db_->DestroyColumnFamilyHandle(family));
  }
  check(db_->Close());
}

std::string RocksDbIndex::name() const {
  std::string name = "RocksDB";
  if (&mariner_rocksdb_sync_point != nullptr) name += " with assertions";
  if (options_.compaction == RocksDbOptions::Compaction::kUniversal) name += ", universal";
  if (options_.compression == RocksDbOptions::Compression::kLz4) name += ", LZ4";
  return name;
}

Result<void> RocksDbIndex::load(const Next& next_by_block, const Next& next_by_time) {
  Result<void> loaded =
      load_family(kByBlock, options_.newest_first ? newest_first(next_by_block) : next_by_block);
  if (!loaded) return loaded;
  return load_family(kByTime, next_by_time);
}

// Sorted files, made beside the database and taken over into its last level.
Result<void> RocksDbIndex::load_family(Family family, const Next& next) {
  rocksdb::EnvOptions direct;
  direct.use_direct_writes = true;
  const bool without_filters = options_.finds_hit;
  std::vector<std::string> paths;
  std::optional<BenchVersion> version = next();
  while (version) {
    rocksdb::SstFileWriter file(direct, rocksdb::Options(db_options_, family_options(family)),
                                families_[family], true, rocksdb::Env::IO_TOTAL, without_filters);
    paths.push_back(options_.path + "/loaded." + std::to_string(family) + "." +
                    std::to_string(paths.size()));
    if (Result<void> opened = result_of(file.Open(paths.back())); !opened) return opened;
    for (; version && file.FileSize() < kSortedFileBytesMax; version = next()) {
      const rocksdb::Status put =
          family == kByTime
              ? file.Put(slice(make_key(version->sequence, version->block)),
                         slice(time_value(*version)))
              : file.Put(slice(make_key(version->block, by_block_low(options_, version->sequence))),
                         slice(block_value(*version)));
      if (Result<void> result = result_of(put); !result) return result;
    }
    if (Result<void> ended = result_of(file.Finish()); !ended) return ended;
  }
  if (paths.empty()) return {};
  rocksdb::IngestExternalFileOptions ingestion;
  ingestion.move_files = true;
  return result_of(db_->IngestExternalFile(families_[family], paths, ingestion));
}

void RocksDbIndex::insert(const BenchVersion& version) {
  check(batch_.Put(families_[kByTime], slice(make_key(version.sequence, version.block)),
                   slice(time_value(version))));
  const std::uint64_t low = by_block_low(options_, version.sequence);
  check(batch_.Put(families_[kByBlock], slice(make_key(version.block, low)),
                   slice(block_value(version))));
  pending_.push_back(version);
  if (pending_.size() == options_.versions_per_batch) write_pending();
  if (finds_ > 0) poll();
}

void RocksDbIndex::write_pending() {
  if (pending_.empty()) return;
  rocksdb::WriteOptions write;
  write.disableWAL = true;
  check(db_->Write(write, &batch_));
  batch_.Clear();
  pending_.clear();
}

// Of what is pending the last is the newest, and newer than all that is written.
std::optional<BenchVersion> RocksDbIndex::find_pending(std::uint64_t block,
                                                       std::uint64_t sequence) const {
  for (std::size_t i = pending_.size(); i > 0; --i) {
    const BenchVersion& version = pending_[i - 1];
    if (version.block == block && version.sequence <= sequence) return version;
  }
  return std::nullopt;
}

std::optional<BenchVersion> RocksDbIndex::find_stored(std::uint64_t block,
                                                      std::uint64_t sequence) const {
  rocksdb::ReadOptions read;
  read.prefix_same_as_start = true;  // so that filters are asked
  const std::unique_ptr<rocksdb::Iterator> iterator(db_->NewIterator(read, families_[kByBlock]));
  const Key wanted = make_key(block, by_block_low(options_, sequence));
  options_.newest_first ? iterator->Seek(slice(wanted)) : iterator->SeekForPrev(slice(wanted));
  if (!iterator->Valid()) {
    check(iterator->status());
    return std::nullopt;
  }
  const char* const key = iterator->key().data();
  if (load_be<std::uint64_t>(key) != block) return std::nullopt;
  return BenchVersion{block,
                      by_block_low(options_, load_be<std::uint64_t>(key + kBlockPrefixBytes)),
                      load_le<std::uint64_t>(iterator->value().data())};
}

std::optional<BenchVersion> RocksDbIndex::find(std::uint64_t block, std::uint64_t sequence) {
  if (const std::optional<BenchVersion> found = find_pending(block, sequence)) return found;
  return find_stored(block, sequence);
}

void RocksDbIndex::begin_find(std::uint64_t block, std::uint64_t sequence,
                              std::function<void(std::optional<BenchVersion>)> done) {
  std::optional<BenchVersion> found = find_pending(block, sequence);
  std::unique_lock lock(mutex_);
  taken_.wait(lock, [this] { return questions_.size() < kFindsMax; });
  if (found) {
    answers_.push_back({block, sequence, std::move(done), found});
  } else {
    questions_.push_back({block, sequence, std::move(done), std::nullopt});
    asked_.notify_one();
  }
  ++finds_;
}

void RocksDbIndex::answer_finds(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (asked_.wait(lock, stop, [this] { return !questions_.empty(); })) {
    Find find = std::move(questions_.front());
    questions_.pop_front();
    taken_.notify_one();
    lock.unlock();
    find.answer = find_stored(find.block, find.sequence);
    lock.lock();
    answers_.push_back(std::move(find));
  }
}

void RocksDbIndex::poll() {
  std::vector<Find> answers;
  {
    const std::lock_guard lock(mutex_);
    answers.swap(answers_);
  }
  finds_ -= answers.size();
  for (Find& find : answers) find.done(find.answer);
}

std::uint64_t RocksDbIndex::scan(std::uint64_t first, std::uint64_t blocks) {
  if (blocks == 0) return 0;
  write_pending();
  const Key end = make_key(first + blocks, 0);
  const rocksdb::Slice bound = slice(end);
  rocksdb::ReadOptions read;
  read.total_order_seek = true;
  read.iterate_upper_bound = &bound;
  const std::unique_ptr<rocksdb::Iterator> iterator(db_->NewIterator(read, families_[kByBlock]));
  std::uint64_t count = 0;
  for (iterator->Seek(slice(make_key(first, 0))); iterator->Valid(); iterator->Next()) ++count;
  check(iterator->status());
  return count;
}

void RocksDbIndex::commit() {
  write_pending();
  check(db_->Flush(rocksdb::FlushOptions(), families_));
}

std::uint64_t RocksDbIndex::property(const std::string& name) const {
  std::uint64_t sum = 0;
  for (rocksdb::ColumnFamilyHandle* family : families_) {
    std::uint64_t value = 0;
    CHECK(db_->GetIntProperty(family, name, &value));
    sum += value;
  }
  return sum;
}

EngineCounts RocksDbIndex::counts() const {
  return {.reads = file_counts_.reads,
          .bytes_read = file_counts_.bytes_read,
          .writes = file_counts_.writes,
          .bytes_written = file_counts_.bytes_written,
          .disk_bytes = property(rocksdb::DB::Properties::kLiveSstFilesSize),
          .memory_bytes = cache_->GetUsage()};
}

}  // namespace mariner::bench

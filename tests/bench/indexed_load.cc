#include "tests/bench/indexed_load.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "proto/check.h"

namespace mariner::bench {
namespace {

constexpr VolumeId kVolume{1};
constexpr std::uint64_t kVolumeBlocks = std::uint64_t{1} << 28;
constexpr std::uint64_t kFilledAtOnce = 512;

}  // namespace

Result<std::unique_ptr<IndexedLoad>> IndexedLoad::create(const Options& options,
                                                         node::EventLoop& loop, BenchLog& log) {
  std::unique_ptr<IndexedLoad> made(new IndexedLoad(options, loop, log));
  if (auto r = made->open(); !r) return r.error();
  return made;
}

Result<void> IndexedLoad::open() {
  using logging::FileDisk;
  path_ = options_.folder + "/load-index";
  std::filesystem::remove(path_);
  // Room for what it is filled with and as much again, in both places of each block.
  const std::uint64_t bytes = ((options_.versions * 512 + (std::uint64_t{8} << 30)) >> 20) << 20;
  if (auto r = FileDisk::create(path_, FileDisk::Caching::kBuffered, bytes); !r) return r;
  auto disk = FileDisk::open(path_, FileDisk::Caching::kDirect, &log_.ring());
  if (!disk) return disk.error();
  disk_ = *std::move(disk);
  if (auto r = index::format_index_file(*disk_, {}); !r) return r.error();
  index::BoscOptions store;
  store.memory_bytes = options_.memory_bytes;
  store.cache_bytes = options_.memory_bytes / 8;
  store.commit_threads = 1;
  auto opened = index::Bosc::open(loop_, *disk_, store);
  if (!opened) return opened.error();
  store_ = *std::move(opened);
  auto index = index::StoredIndex::open(*store_, kVolume);
  if (!index) return index.error();
  index_ = *std::move(index);

  std::uint64_t next = 1;
  UniqueFunction<void()> fill_on;
  fill_on = [&] {
    std::vector<index::StoredIndex::Logged> some;
    for (; some.size() < kFilledAtOnce && next <= options_.versions; ++next) {
      logging::Record record;
      record.volume = kVolume;
      record.epoch = {1};
      record.sequence = {next};
      record.ordinal = next;
      record.time = {next};
      record.payload_blocks = 1;
      record.extent = {Lbn{(next - 1) * (kVolumeBlocks / (options_.versions + 1))}, BlockCount{1}};
      some.push_back({record, {next * 8, 1, 0, 1, 0}});
    }
    index_->insert_all(some);
    store_->set_used_through(next - 1);
    if (next <= options_.versions) return store_->when_room([&] { fill_on(); });
    store_->commit_all([&](const Result<void>& r) {
      CHECK(r.has_value());
      loop_.stop();
    });
  };
  loop_.post([&] { fill_on(); });
  loop_.run();
  log_.set_indexer(
      [this](std::span<const index::StoredIndex::Logged> records) {
        store_->others_write();  // as StoredIndex::flush()
        index_->insert_all(records);
        store_->set_used_through(records.back().record.ordinal);
      },
      SequenceNumber{options_.versions});
  return {};
}

IndexedLoad::~IndexedLoad() {
  if (store_) {
    loop_.post([this] { store_->drain([this] { loop_.stop(); }); });
    loop_.run();
    store_.reset();
  }
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace mariner::bench

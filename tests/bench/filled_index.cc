#include "tests/bench/filled_index.h"

#include <unistd.h>

#include <utility>

#include "index/block_reader.h"
#include "proto/check.h"

namespace mariner::bench {
namespace {

using logging::FileDisk;

constexpr VolumeId kVolume{1};
constexpr std::uint64_t kVolumeBlocks = std::uint64_t{1} << 28;
constexpr std::uint64_t kInsertedAtOnce = 512;

index::StoredIndex::Logged filling(std::uint64_t sequence, std::uint64_t versions) {
  logging::Record record;
  record.volume = kVolume;
  record.epoch = {1};
  record.sequence = {sequence};
  record.ordinal = sequence;
  record.time = {sequence * 1000};
  record.payload_blocks = 1;
  record.extent = {Lbn{(sequence - 1) * (kVolumeBlocks / (versions + 1))}, BlockCount{1}};
  return {record, {sequence * 8, 1, 0, 1, 0}};
}

}  // namespace

Result<void> make_filled_index(const FilledIndexOptions& options) {
  ::unlink(options.path.c_str());
  // Room for what it is filled with and as much again, in both places of each block.
  const std::uint64_t bytes = ((options.versions * 512 + (std::uint64_t{1} << 30)) >> 20) << 20;
  if (auto r = FileDisk::create(options.path, FileDisk::Caching::kBuffered, bytes); !r) return r;
  {
    auto disk = FileDisk::open(options.path, FileDisk::Caching::kDirect, nullptr);
    if (!disk) return disk.error();
    index::IndexShape shape;
    shape.block_bytes = options.block_bytes;
    if (auto r = index::format_index_file(**disk, shape); !r) return r.error();
  }
  OpenedIndex made;
  if (auto r = made.open_parts(options); !r) return r;
  std::vector<index::StoredIndex::Logged> some;
  for (std::uint64_t next = 1; next <= options.versions;) {
    some.clear();
    for (; some.size() < kInsertedAtOnce && next <= options.versions; ++next) {
      some.push_back(filling(next, options.versions));
    }
    made.index_->insert_all(some);
    made.store_->set_used_through(next - 1);
    made.loop_->poll();
    if (made.store_->has_room()) continue;
    bool room = false;
    made.store_->when_room([&] { room = true; });
    made.loop_->run_until([&] { return room; });
  }
  Result<void> result;
  bool ended = false;
  made.store_->commit_all([&](Result<void> r) {
    result = std::move(r);
    ended = true;
  });
  made.loop_->run_until([&] { return ended; });
  return result;
}

Result<void> OpenedIndex::open_parts(const FilledIndexOptions& options) {
  auto loop = RingLoop::create();
  if (!loop) return loop.error();
  loop_ = *std::move(loop);
  auto disk = FileDisk::open(options.path, FileDisk::Caching::kDirect, &loop_->ring());
  if (!disk) return disk.error();
  disk_ = *std::move(disk);
  index::BoscOptions store;
  store.memory_bytes = options.memory_bytes;
  store.cache_bytes = options.memory_bytes / 8;
  store.commit_threads = 1;
  store.run_blocks_max = 16;
  auto opened = index::Bosc::open(*loop_, *disk_, store);
  if (!opened) return opened.error();
  store_ = *std::move(opened);
  auto index = index::StoredIndex::open(*store_, kVolume);
  if (!index) return index.error();
  index_ = *std::move(index);
  const std::chrono::nanoseconds began = loop_->monotonic_time();
  Result<void> learnt;
  bool ended = false;
  index_->learn([&](Result<void> r) {
    learnt = std::move(r);
    ended = true;
  });
  loop_->run_until([&] { return ended; });
  learning_ = loop_->monotonic_time() - began;
  return learnt;
}

Result<std::unique_ptr<OpenedIndex>> OpenedIndex::open(const FilledIndexOptions& options) {
  std::unique_ptr<OpenedIndex> opened(new OpenedIndex);
  if (auto r = opened->open_parts(options); !r) return r.error();
  return opened;
}

OpenedIndex::~OpenedIndex() {
  if (!store_) return;
  bool drained = false;
  store_->drain([&] { drained = true; });
  loop_->run_until([&] { return drained; });
  store_.reset();
}

Result<std::vector<index::LocatedRun>> OpenedIndex::locate(BlockRange range, SequenceNumber at) {
  std::vector<index::LocatedRun> runs;
  Result<void> result;
  bool ended = false;
  index_->consult([&](const index::VersionLookup& lookup) { runs = lookup.locate(range, at); },
                  [&](Result<void> r) {
                    result = std::move(r);
                    ended = true;
                  });
  loop_->run_until([&] { return ended; });
  if (!result) return result.error();
  return runs;
}

}  // namespace mariner::bench

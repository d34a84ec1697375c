#include "tests/bench/bosc_index.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::bench {
namespace {

using index::BTree;
using index::IndexKey;

constexpr index::FunctionId kByTime{1};
constexpr index::FunctionId kByBlock{2};
constexpr std::uint32_t kLoadedPerTurn = 32;

}  // namespace

Result<std::unique_ptr<BoscIndex>> BoscIndex::create(const Options& options) {
  std::unique_ptr<BoscIndex> made(new BoscIndex);
  Result<std::unique_ptr<RingLoop>> loop = RingLoop::create();
  if (!loop) return loop.error();
  made->loop_ = *std::move(loop);
  ::unlink(options.path.c_str());
  if (Result<void> r = logging::FileDisk::create(
          options.path, logging::FileDisk::Caching::kBuffered, options.disk_bytes);
      !r) {
    return r.error();
  }
  auto disk = logging::FileDisk::open(options.path, logging::FileDisk::Caching::kDirect,
                                      &made->loop_->ring());
  if (!disk) return disk.error();
  made->disk_ = *std::move(disk);
  index::IndexShape shape;
  shape.block_bytes = options.block_bytes;
  if (auto superblock = index::format_index_file(*made->disk_, shape); !superblock) {
    return superblock.error();
  }
  auto store = index::Bosc::open(*made->loop_, *made->disk_, options.store);
  if (!store) return store.error();
  made->store_ = *std::move(store);
  made->store_->on_error(
      [](index::BlockAddress, const Error& error) { CHECK_MSG(false, error.message.c_str()); });
  auto by_time = BTree::open(*made->store_, {.id = kByTime, .value_bytes = 32});
  auto by_block = BTree::open(*made->store_, {.id = kByBlock,
                                              .value_bytes = 16,
                                              .ascends_within_high = true,
                                              .ascending_fill = 70,
                                              .filter = &made->window_});
  if (!by_time) return by_time.error();
  if (!by_block) return by_block.error();
  made->window_versions_ = options.window_versions;
  made->by_time_ = *std::move(by_time);
  made->by_block_ = *std::move(by_block);
  return made;
}

BoscIndex::~BoscIndex() {
  if (!store_) return;
  bool drained = false;
  store_->drain([&] { drained = true; });
  loop_->run_until([&] { return drained; });
  store_.reset();
}

void BoscIndex::make_room() {
  if (store_->has_room()) return;
  bool room = false;
  store_->when_room([&] { room = true; });
  loop_->run_until([&] { return room; });
}

void BoscIndex::insert(const BenchVersion& version) {
  Pending& pending = pending_[pending_count_++];
  pending.version = version;
  pending.number = ++number_;
  store_le(pending.value.data(), version.place);
  store_le(pending.value.data() + 8, version.block);
  if (pending_count_ == kBatch) insert_pending();
}

void BoscIndex::insert_pending() {
  std::array<BTree::Insert, kBatch> inserts;
  const std::size_t count = std::exchange(pending_count_, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const Pending& pending = pending_[i];
    inserts[i] = {{pending.version.block, pending.version.sequence},
                  std::span(pending.value).first(16),
                  pending.number};
  }
  by_block_->insert_all(std::span(inserts).first(count));
  for (std::size_t i = 0; i < count; ++i) {
    const Pending& pending = pending_[i];
    by_time_->insert({pending.version.sequence, pending.version.block}, pending.value,
                     pending.number);
  }
  store_->set_used_through(number_);
  if (window_versions_ != 0 && count > 0) {
    const std::uint64_t last = pending_[count - 1].version.sequence;
    if (last > window_versions_) {
      window_.floor = last - window_versions_;
      by_time_->drop_before({window_.floor, 0});
    }
  }
  loop_->poll();
  make_room();
}

Result<void> BoscIndex::load(const Next& next_by_block, const Next& next_by_time) {
  std::array<std::byte, 32> value{};
  while (const std::optional<BenchVersion> version = next_by_block()) {
    store_le(value.data(), version->place);
    by_block_->insert({version->block, version->sequence}, std::span(value).first(16), ++number_);
    if (number_ % kLoadedPerTurn == 0) {
      loop_->poll();
      make_room();
    }
  }
  while (const std::optional<BenchVersion> version = next_by_time()) {
    store_le(value.data(), version->place);
    store_le(value.data() + 8, version->block);
    by_time_->insert({version->sequence, version->block}, value, ++number_);
    if (number_ % kLoadedPerTurn == 0) {
      loop_->poll();
      make_room();
    }
  }
  store_->set_used_through(number_);
  commit();
  return {};
}

std::optional<BenchVersion> BoscIndex::find(std::uint64_t block, std::uint64_t sequence) {
  std::optional<BenchVersion> found;
  bool answered = false;
  begin_find(block, sequence, [&](std::optional<BenchVersion> version) {
    found = version;
    answered = true;
  });
  loop_->run_until([&] { return answered; });
  return found;
}

void BoscIndex::begin_find(std::uint64_t block, std::uint64_t sequence,
                           std::function<void(std::optional<BenchVersion>)> done) {
  insert_pending();
  by_block_->find_last({{block, 0}, {block, sequence}}, [done = std::move(done)](
                                                            Result<
                                                                std::optional<index::IndexRecord>>
                                                                r) {
    CHECK_MSG(r.has_value(), r.has_error() ? r.error().message.c_str() : "");
    if (!*r) return done(std::nullopt);
    done(BenchVersion{(*r)->key.high, (*r)->key.low, load_le<std::uint64_t>((*r)->value.data())});
  });
}

std::uint64_t BoscIndex::scan(std::uint64_t first, std::uint64_t blocks) {
  insert_pending();
  std::uint64_t count = 0;
  bool ended = false;
  if (blocks == 0) return 0;
  by_block_->scan(
      {{first, 0}, {first + blocks - 1, UINT64_MAX}}, BTree::Direction::kAscending,
      [&](IndexKey, BTree::Value) {
        ++count;
        return true;
      },
      [&](const Result<void>& r) {
        CHECK(r.has_value());
        ended = true;
      });
  loop_->run_until([&] { return ended; });
  return count;
}

void BoscIndex::commit() {
  insert_pending();
  bool ended = false;
  store_->commit_all([&](const Result<void>& r) {
    CHECK_MSG(r.has_value(), r.has_error() ? r.error().message.c_str() : "");
    ended = true;
  });
  loop_->run_until([&] { return ended; });
}

EngineCounts BoscIndex::counts() const {
  const index::BoscStatistics& s = store_->statistics();
  return {.reads = s.reads,
          .bytes_read = s.bytes_read,
          .writes = s.writes,
          .bytes_written = s.bytes_written,
          .disk_bytes = std::uint64_t{store_->allocated_blocks()} * store_->block_bytes(),
          .memory_bytes = store_->memory_bytes(),
          .node_bytes = by_time_->node_bytes() + by_block_->node_bytes() + store_->state_bytes(),
          .cycles = s.sweeps};
}

}  // namespace mariner::bench

#include "tests/bench/bosc_rows.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "proto/check.h"

namespace mariner::bench {
namespace {

using index::BTree;

constexpr unsigned kCommitThreads = 1;
constexpr std::uint32_t kRunsInFlight = 4;
constexpr std::size_t kCachePart = 8;  // of the memory, one part
constexpr std::size_t kRunsPart = 8;   // at most
constexpr std::uint32_t kRunBlocksMax = 32;
constexpr std::uint64_t kLoadedPerTurn = 64;

// Runs as long as the paper's (3.2.2), but shorter where large blocks would take all the memory.
index::BoscOptions store_options(const RowEngineOptions& options) {
  index::BoscOptions store;
  store.memory_bytes = options.memory_bytes;
  store.cache_bytes = options.memory_bytes / kCachePart;
  store.commit_threads = kCommitThreads;
  store.runs_in_flight = kRunsInFlight;
  const std::size_t a_block = 2 * std::size_t{options.block_bytes} * kRunsInFlight;
  store.run_blocks_max = static_cast<std::uint32_t>(
      std::clamp<std::size_t>(options.memory_bytes / kRunsPart / a_block, 1, kRunBlocksMax));
  store.chunk_bytes = chunk_bytes_for(options.tables);
  return store;
}

}  // namespace

Result<std::unique_ptr<BoscRows>> BoscRows::create(const RowEngineOptions& options,
                                                   RingLoop& loop) {
  std::unique_ptr<BoscRows> made(new BoscRows(options, loop));
  if (Result<void> r = made->open(); !r) return r.error();
  return made;
}

Result<void> BoscRows::open() {
  using logging::FileDisk;
  ::unlink(options_.path.c_str());
  if (Result<void> r =
          FileDisk::create(options_.path, FileDisk::Caching::kBuffered, options_.disk_bytes);
      !r) {
    return r;
  }
  auto disk = FileDisk::open(options_.path, FileDisk::Caching::kDirect, &loop_.ring());
  if (!disk) return disk.error();
  disk_ = *std::move(disk);
  index::IndexShape shape;
  shape.block_bytes = options_.block_bytes;
  if (auto r = index::format_index_file(*disk_, shape); !r) return r.error();
  auto store = index::Bosc::open(loop_, *disk_, store_options(options_));
  if (!store) return store.error();
  store_ = *std::move(store);
  store_->on_error(
      [](index::BlockAddress, const Error& error) { CHECK_MSG(false, error.message.c_str()); });
  for (const RowTable& table : options_.tables) {
    auto tree = BTree::open(*store_, {.id = {static_cast<std::uint32_t>(tables_.size() + 1)},
                                      .value_bytes = table.value_bytes,
                                      .ascends_within_high = table.ascends_within_high,
                                      .ascending_fill = table.load_fill});
    if (!tree) return tree.error();
    tables_.push_back(*std::move(tree));
  }
  return {};
}

BoscRows::~BoscRows() {
  if (store_) {
    bool drained = false;
    store_->drain([&] { drained = true; });
    loop_.run_until([&] { return drained; });
    store_.reset();
  }
  std::error_code ignored;
  std::filesystem::remove(options_.path, ignored);
}

void BoscRows::make_room() {
  if (store_->has_room()) return;
  bool room = false;
  store_->when_room([&] { room = true; });
  loop_.run_until([&] { return room; });
}

void BoscRows::load(std::uint32_t table, const Next& next) {
  while (const std::optional<Row> row = next()) {
    tables_[table]->insert(row->key, row->value, ++number_);
    if (number_ % kLoadedPerTurn != 0) continue;
    loop_.poll();
    make_room();
  }
  commit();
}

void BoscRows::apply(std::span<const RowUpdate> updates) {
  for (std::size_t i = 0; i < updates.size();) {
    const std::uint32_t table = updates[i].table;
    for (; i < updates.size() && updates[i].table == table && !updates[i].value.empty(); ++i) {
      inserts_.push_back({updates[i].key, updates[i].value, ++number_});
    }
    tables_[table]->insert_all(inserts_);
    inserts_.clear();
    for (; i < updates.size() && updates[i].value.empty(); ++i) {
      tables_[updates[i].table]->erase(updates[i].key, ++number_);
    }
  }
  store_->set_used_through(number_);
  loop_.poll();
  make_room();
}

void BoscRows::begin_find(std::uint32_t table, KeyRange range, Found done) {
  tables_[table]->find_last(
      range, [done = std::move(done)](Result<std::optional<index::IndexRecord>> found) {
        CHECK_MSG(found.has_value(), found.has_error() ? found.error().message.c_str() : "");
        done(*std::move(found));
      });
}

std::uint64_t BoscRows::count(std::uint32_t table, KeyRange range) {
  std::uint64_t rows = 0;
  bool ended = false;
  tables_[table]->scan(
      range, BTree::Direction::kAscending,
      [&](IndexKey, Value) {
        ++rows;
        return true;
      },
      [&](const Result<void>& r) {
        CHECK(r.has_value());
        ended = true;
      });
  loop_.run_until([&] { return ended; });
  return rows;
}

void BoscRows::commit() {
  store_->set_used_through(number_);
  bool ended = false;
  store_->commit_all([&](const Result<void>& r) {
    CHECK_MSG(r.has_value(), r.has_error() ? r.error().message.c_str() : "");
    ended = true;
  });
  loop_.run_until([&] { return ended; });
}

EngineCounts BoscRows::counts() const {
  const index::BoscStatistics& s = store_->statistics();
  std::uint64_t node_bytes = store_->state_bytes();
  for (const auto& table : tables_) node_bytes += table->node_bytes();
  return {.reads = s.reads,
          .bytes_read = s.bytes_read,
          .writes = s.writes,
          .bytes_written = s.bytes_written,
          .disk_bytes = std::uint64_t{store_->allocated_blocks()} * store_->block_bytes(),
          .memory_bytes = store_->memory_bytes(),
          .node_bytes = node_bytes,
          .cycles = s.sweeps};
}

}  // namespace mariner::bench

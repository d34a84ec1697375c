// Looking at blocks: what is in memory of them, reading them, and reading them ahead.
#include <algorithm>
#include <cstring>
#include <utility>

#include "index/bosc.h"
#include "index/bosc_parts.h"
#include "proto/check.h"

namespace mariner::index {
namespace {

// Blocks, and the share of the cache's clean ones: others look things up meanwhile.
constexpr std::size_t kReadAheadMax = 32;
constexpr std::size_t kReadAheadShare = 4;

}  // namespace

// The block with what is queued: of a run that has taken modifications, those first.
BlockView Bosc::view_of(BlockAddress address, const BlockState& block) {
  const ModificationQueue* taken = nullptr;
  BlockView view{false, {}, PendingModifications(pool_, nullptr)};
  if (block.committing) {
    for (const std::shared_ptr<Run>& run : runs_) {
      const Run::Member* const member = run->find(address);
      if (member == nullptr) continue;
      taken = &member->taken;
      // (What is left out may not have been read at all.)
      if (run->is_read && !member->left_out) {
        view.complete = true;
        if (block.on_disk) view.contents = contents_of(run->before_of(*member));
      }
    }
  }
  view.pending = PendingModifications(pool_, taken, &block.queue);
  if (view.complete) return view;
  if (!block.on_disk) {
    view.complete = true;
  } else if (BlockCache::Entry* const cached = cache_.find(address); cached != nullptr) {
    view.complete = true;
    view.contents = contents_of(std::span<const std::byte>(cached->block.bytes()));
  }
  return view;
}

void Bosc::query(BlockAddress address, UniqueFunction<bool(const BlockView&)> look,
                 Answered answered) {
  ++statistics_.queries;
  const BlockState& block = state(address);
  const BlockView view = view_of(address, block);
  if (look(view)) return answered(true);
  CHECK_MSG(!view.complete, "a query was shown all of a block and has no answer");
  const auto [read, is_new] = read_of(address, block);
  read->waiters.push_back({std::move(look), std::move(answered)});
  if (is_new) read_for_query(address);
}

// The one that is under way, or one that is to begin.
std::pair<Bosc::Read*, bool> Bosc::read_of(BlockAddress address, const BlockState& block) {
  const auto [found, is_new] = reads_.try_emplace(address.value);
  if (is_new) {
    found->second = std::make_unique<Read>();
    found->second->expected = header_of(address, block);
  }
  return {found->second.get(), is_new};
}

// With those of the same function that stand behind it in the file: a tree whose keys ascend has
// its leaves one after the other there, and what a read costs is to have one more.
void Bosc::read_ahead(BlockAddress address) {
  const BlockState& first = state(address);
  const std::uint32_t group = address.value / superblock_.group_blocks;
  const auto belongs = [&](std::uint32_t at) {
    if (at >= states_.size() || at / superblock_.group_blocks != group) return false;
    const BlockState& block = states_[at];
    return block.function == first.function && block.place == first.place && block.on_disk &&
           !block.committing && !block.cached && !reads_.contains(at);
  };
  const std::size_t most = draining_ ? 0 : read_ahead_max();
  std::uint32_t count = 0;
  while (count < most && belongs(address.value + count)) ++count;
  if (count == 0) return;
  const std::size_t block_bytes = superblock_.block_bytes;
  Payload all = Payload::allocate(count * block_bytes);
  for (std::uint32_t i = 0; i < count; ++i) {
    const BlockAddress each{address.value + i};
    read_of(each, state(each)).first->block = Payload::allocate(block_bytes);
  }
  gate_.others_read(executor_.monotonic_time());
  statistics_.query_reads += count;
  ++statistics_.reads;
  statistics_.bytes_read += count * block_bytes;
  const std::span<std::byte> to = all.bytes();
  disk_.async_read(
      superblock_.offset_of(address, first.place), to,
      [this, address, count, all = std::move(all)](const Result<void>& result) mutable {
        const std::size_t bytes = superblock_.block_bytes;
        for (std::uint32_t i = 0; i < count; ++i) {
          const BlockAddress each{address.value + i};
          // One that cannot be read is to hinder no others.
          if (!result && is_allocated(each)) {
            read_for_query(each);
            continue;
          }
          std::memcpy(reads_[each.value]->block.data(), all.data() + i * bytes, bytes);
          read_ended(each, result);
        }
      });
}

std::size_t Bosc::read_ahead_max() const {
  const std::size_t clean = cache_.bytes_max() - cache_.dirty_bytes();
  return std::min(kReadAheadMax, clean / superblock_.block_bytes / kReadAheadShare);
}

void Bosc::in_next_turn(UniqueFunction<void()> work) {
  ++paused_;
  executor_.in_next_turn([this, work = std::move(work), alive = alive_]() mutable {
    if (!*alive) return;
    --paused_;
    work();
    if (*alive && draining_) drain(std::move(drained_));
  });
}

void Bosc::fetch(BlockAddress address, UniqueFunction<void(Result<Fetched>)> done) {
  auto fetched = std::make_shared<Fetched>();
  query(
      address,
      [this, address, fetched](const BlockView& view) {
        if (!view.complete) return false;
        fetched->header = header_of(address, state(address));
        fetched->contents.assign(view.contents.begin(), view.contents.end());
        return true;
      },
      [fetched, done = std::move(done)](const Result<bool>& answered) mutable {
        if (!answered) return done(answered.error());
        done(std::move(*fetched));  // of nothing, if it was committed meanwhile
      });
}

Result<Bosc::Fetched> Bosc::fetch_now(BlockAddress address) {
  const BlockState& block = state(address);
  CHECK(block.on_disk);
  Payload bytes = Payload::allocate(superblock_.block_bytes);
  if (Result<void> r = disk_.read(superblock_.offset_of(address, block.place), bytes.bytes()); !r) {
    return r.error();
  }
  const IndexBlockHeader expected = header_of(address, block);
  const BlockDamage damage = check_index_block(expected, superblock_.file, bytes.bytes());
  if (damage != BlockDamage::kNone) {
    const Error error = damage_error(address, damage);
    report(address, error);
    return error;
  }
  const auto contents = contents_of(std::span<const std::byte>(bytes.bytes()));
  return Fetched{expected, {contents.begin(), contents.end()}};
}

void Bosc::read_for_query(BlockAddress address) {
  Read& read = *reads_[address.value];
  gate_.others_read(executor_.monotonic_time());
  read.block = Payload::allocate(superblock_.block_bytes);
  ++statistics_.query_reads;
  ++statistics_.reads;
  statistics_.bytes_read += superblock_.block_bytes;
  disk_.async_read(superblock_.offset_of(address, state(address).place), read.block.bytes(),
                   [this, address](Result<void> r) { read_ended(address, std::move(r)); });
}

void Bosc::read_ended(BlockAddress address, Result<void> result) {
  const auto found = reads_.find(address.value);
  CHECK(found != reads_.end());
  const std::unique_ptr<Read> read = std::move(found->second);
  reads_.erase(found);
  const BlockState& block = states_[address.value];
  // Committed, divided or freed meanwhile: what was read may be anything.
  const bool stale =
      block.function != read->expected.function || header_of(address, block) != read->expected;
  if (!stale && result) {
    const BlockDamage damage =
        check_index_block(read->expected, superblock_.file, read->block.bytes());
    if (damage != BlockDamage::kNone) result = damage_error(address, damage);
  }
  if (!stale && !result) report(address, result.error());
  if (!stale && result) cache_block(address, read->block);
  for (Read::Waiter& waiter : read->waiters) {
    if (stale) {
      waiter.answered(false);
    } else if (!result) {
      waiter.answered(result.error());
    } else {
      // Whoever looked before may have changed it.
      const BlockState& now = states_[address.value];
      if (now.function != read->expected.function || header_of(address, now) != read->expected) {
        waiter.answered(false);
        continue;
      }
      BlockView view = view_of(address, now);
      if (!view.complete) {
        view.complete = true;
        view.contents = contents_of(std::span<const std::byte>(read->block.bytes()));
      }
      CHECK_MSG(waiter.look(view), "a query was shown all of a block and has no answer");
      waiter.answered(true);
    }
  }
  if (draining_) drain(std::move(drained_));
}

void Bosc::bound_cache() {
  cache_.set_blocks_max(cache_bytes_max() / superblock_.block_bytes);
  static_cast<void>(
      cache_.shrink([this](BlockAddress evicted) { states_[evicted.value].cached = false; }));
}

// Keeps what has been read, with what is queued for it already applied.
void Bosc::cache_block(BlockAddress address, Payload block) {
  BlockState& now = state(address);
  if (now.committing || cache_.find(address) != nullptr) return;
  bool dirty = false;
  if (!now.queue.empty()) {
    Payload after = Payload::allocate(superblock_.block_bytes);
    BlockCommit commit({address, contents_of(std::span<const std::byte>(block.bytes())),
                        contents_of(after.bytes()), PendingModifications(pool_, &now.queue),
                        &buffers_});
    function_of(now).commit->commit(commit);
    // What would be divided waits for its run.
    if (commit.added_.empty()) {
      block = std::move(after);
      dirty = true;
    }
  }
  bound_cache();
  if (!cache_.insert(address, std::move(block),
                     [this](BlockAddress evicted) { states_[evicted.value].cached = false; }))
    return;
  now.cached = true;
  if (!dirty) return;
  cache_.set_dirty(*cache_.find(address), true);
  pool_.clear(now.queue);
  tell_room();
}

}  // namespace mariner::index

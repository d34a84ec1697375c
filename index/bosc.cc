#include "index/bosc.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "index/bosc_parts.h"
#include "index/sorted_pending.h"
#include "proto/check.h"

namespace mariner::index {
namespace {

constexpr std::chrono::milliseconds kRemovePoll{1};
constexpr std::size_t kRemovedAtOnce = 8192;
// Blocks are short when so small a part of them is left. Cleaning takes a tenth of the time at
// most.
constexpr std::uint32_t kShortPart = 8;
constexpr std::chrono::nanoseconds kCleanPauseMin = std::chrono::seconds(10);
constexpr int kCleanPause = 10;

// What a run needs besides the queues: what is read, and what is written.
std::size_t run_bytes(const BoscOptions& options, const IndexSuperblock& superblock) {
  return 2 * std::size_t{options.run_blocks_max} * superblock.block_bytes * options.runs_in_flight;
}

std::size_t share_of(std::size_t bytes, double share) {
  return static_cast<std::size_t>(static_cast<double>(bytes) * share);
}

std::size_t queue_bytes_for(const BoscOptions& options, const IndexSuperblock& superblock) {
  const std::size_t others = options.cache_bytes + run_bytes(options, superblock);
  CHECK_MSG(options.memory_bytes >= 2 * others,
            "the index's memory must be twice what its cache and its runs take");
  return options.memory_bytes - others;
}

}  // namespace

Result<std::unique_ptr<Bosc>> Bosc::open(Executor& executor, logging::Disk& disk,
                                         const BoscOptions& options) {
  Result<IndexSuperblock> superblock = read_index_superblock(disk);
  if (!superblock) return superblock.error();
  std::unique_ptr<Bosc> bosc(new Bosc(executor, disk, options, *superblock));
  if (Result<void> r = bosc->load_checkpoint(); !r) return r.error();
  return bosc;
}

Bosc::Bosc(Executor& executor, logging::Disk& disk, const BoscOptions& options,
           const IndexSuperblock& superblock)
    : executor_(executor),
      disk_(disk),
      options_(options),
      queue_bytes_max_(queue_bytes_for(options, superblock)),
      queue_bytes_commit_(share_of(queue_bytes_max_, options.commit_at)),
      superblock_(superblock),
      buffers_(superblock.block_bytes),
      threads_(executor, options.commit_threads),
      pool_({.chunk_bytes = options.chunk_bytes}),
      sorted_pending_(std::make_unique<SortedPending>()),
      cache_(options.cache_bytes / superblock.block_bytes, superblock.block_bytes) {
  CHECK(options.run_blocks_max >= 1 && options.runs_in_flight >= 1);
  CHECK(options.run_dirty_min > 0 && options.run_dirty_min <= 1);
  states_.reserve(superblock.blocks);  // so that references to them stay
}

Bosc::~Bosc() {
  *alive_ = false;
  CHECK_MSG(runs_.empty() && reads_.empty() && paused_ == 0 && !checkpoint_,
            "an index file is destroyed in use");
  for (BlockState& block : states_) pool_.clear(block.queue);
}

void Bosc::add_function(FunctionId id, CommitFunction& function) {
  CHECK(id.value != 0 && functions_[id.value].commit == nullptr);
  functions_[id.value] = {.commit = &function};
  last_function_ = nullptr;
}

std::span<const std::byte> Bosc::saved(FunctionId id) const {
  const auto found = functions_.find(id.value);
  return found == functions_.end() ? std::span<const std::byte>{} : found->second.saved;
}

void Bosc::remove_function(FunctionId id, UniqueFunction<void()> done) {
  auto removal = std::make_shared<Removal>();
  removal->id = id;
  removal->done = std::move(done);
  go_on_removing(removal);
}

// Portion by portion, so that others have their turns, and again until a pass finds nothing: what
// is being committed may add blocks at addresses that the pass is behind.
void Bosc::go_on_removing(const std::shared_ptr<Removal>& removal) {
  const auto end = static_cast<std::uint32_t>(
      std::min<std::size_t>(states_.size(), std::size_t{removal->position} + kRemovedAtOnce));
  for (; removal->position < end; ++removal->position) {
    const BlockState& block = states_[removal->position];
    if (block.function != removal->id) continue;
    removal->found_any = true;
    if (block.committing) {
      removal->found_committing = true;
    } else {
      free({removal->position});
    }
  }
  const bool passed = removal->position == states_.size();
  if (passed && !removal->found_any) {
    last_function_ = nullptr;
    functions_.erase(removal->id.value);
    return removal->done();
  }
  const auto go_on = [this, removal, alive = alive_] {
    if (*alive) go_on_removing(removal);
  };
  if (!passed) return executor_.post(go_on);
  removal->position = 0;
  removal->found_any = false;
  if (std::exchange(removal->found_committing, false)) return executor_.after(kRemovePoll, go_on);
  executor_.post(go_on);
}

void Bosc::remove_others() {
  for (std::uint32_t address = 0; address < states_.size(); ++address) {
    const BlockState& block = states_[address];
    if (block.function.value == 0) continue;
    const auto known = functions_.find(block.function.value);
    if (known == functions_.end() || known->second.commit == nullptr) free({address});
  }
  last_function_ = nullptr;
  std::erase_if(functions_, [](const auto& entry) { return entry.second.commit == nullptr; });
}

Bosc::Function& Bosc::function_of(const BlockState& block) {
  if (block.function == last_function_id_ && last_function_ != nullptr) return *last_function_;
  const auto found = functions_.find(block.function.value);
  CHECK(found != functions_.end() && found->second.commit != nullptr);
  last_function_id_ = block.function;
  last_function_ = &found->second;
  return found->second;
}

std::size_t Bosc::memory_bytes() const { return pool_.used_bytes() + cache_.bytes() + run_bytes_; }

Result<BlockAddress> Bosc::allocate(FunctionId id, std::uint32_t tag) {
  CHECK(id.value != 0);
  clean_if_short();
  std::optional<std::uint32_t> address = free_.next(0);
  if (address) {
    free_.erase(*address);
  } else {
    if (states_.size() == superblock_.blocks) {
      return Error{ErrorCode::kNoSpace, "the index file is full: all its " +
                                            std::to_string(superblock_.blocks) +
                                            " blocks are in use"};
    }
    address = static_cast<std::uint32_t>(states_.size());
    states_.emplace_back();
  }
  BlockState& block = states_[*address];
  CHECK(block.function.value == 0 && block.queue.empty());
  const std::uint32_t version = block.version;  // goes on, past what stands in its places
  block = {};
  block.version = version;
  block.function = id;
  block.tag = tag;
  ++allocated_;
  return BlockAddress{*address};
}

// What is of no use any more is left out when its block is committed. That of blocks to which
// nothing comes would stay, and of a volume that is filled once, in small pieces, all do: in time
// they would be all blocks that there are.
void Bosc::clean_if_short() {
  if (superblock_.blocks - allocated_ > superblock_.blocks / kShortPart) return;
  if (clean_wanted_ || cleaning_ || executor_.monotonic_time() < clean_after_) return;
  clean_wanted_ = true;
  pump_soon();
}

// They have nothing pending, so that they do not hold back the frontier.
void Bosc::begin_cleaning() {
  cleaning_ = true;
  cleaning_begun_ = executor_.monotonic_time();
  for (std::uint32_t address = 0; address < states_.size(); ++address) {
    const BlockState& block = states_[address];
    if (block.on_disk && may_commit(block)) dirty_.insert(address);
  }
}

void Bosc::end_cleaning() {
  if (!std::exchange(cleaning_, false)) return;
  const std::chrono::nanoseconds now = executor_.monotonic_time();
  clean_after_ = now + std::max(kCleanPauseMin, kCleanPause * (now - cleaning_begun_));
}

void Bosc::free(BlockAddress address) {
  BlockState& block = state(address);
  CHECK_MSG(!block.committing, "a block is freed while it is being committed");
  pool_.clear(block.queue);
  cache_.erase(address);
  block.cached = false;
  dirty_.erase(address.value);
  early_.erase(address.value);
  end_hold(address);
  block.function = {};
  block.first_pending = 0;
  --allocated_;
  freed_.push_back(address);
}

void Bosc::queue(BlockAddress address, BlockState& block, Modification modification,
                 std::uint64_t number) {
  if (block.first_pending == 0) {
    block.first_pending = number;
    dirty_.insert(address.value);
  }
  pool_.append(block.queue, modification);
  if (pool_.used_bytes() + cache_.bytes() > queue_bytes_max_ + options_.cache_bytes) bound_cache();
}

bool Bosc::modify(BlockAddress address, Modification modification, std::uint64_t number) {
  BlockState& block = state(address);
  Function& function = function_of(block);
  CHECK_MSG(number >= function.last_number, "the numbers of an index's modifications decrease");
  function.last_number = number;
  newest_number_ = std::max(newest_number_, number);
  if (number <= block.frontier) return false;  // recovery: it is in the block already
  ++statistics_.modifications;
  if (block.cached && block.queue.empty() && !block.committing) {
    BlockCache::Entry* const cached = cache_.find(address);
    if (cached != nullptr &&
        function.commit->apply(contents_of(cached->block.bytes()), modification)) {
      cache_.set_dirty(*cached, true);
      if (block.first_pending == 0) block.first_pending = number;
      dirty_.insert(address.value);
      if (should_commit()) pump_soon();
      return true;
    }
  }
  queue(address, block, modification, number);
  if (should_commit()) pump_soon();
  return true;
}

void Bosc::commit_early(BlockAddress address) {
  if (!dirty_.contains(address.value) || !may_commit(state(address))) return;
  early_.insert(address.value);
  if (has_early_run()) pump_soon();
}

void Bosc::hold(BlockAddress address) {
  BlockState& block = state(address);
  CHECK(!block.on_disk && !block.committing);
  held_ += block.held ? 0 : 1;
  block.held = true;
  block.first_pending = 1;
  dirty_.insert(address.value);
}

void Bosc::end_hold(BlockAddress address) {
  BlockState& block = state(address);
  if (!std::exchange(block.held, false)) return;
  --held_;
  if (!block.queue.empty()) return;
  block.first_pending = 0;
  dirty_.erase(address.value);
}

void Bosc::restore(BlockAddress address, Modification modification) {
  BlockState& block = state(address);
  CHECK(block.held);
  pool_.append(block.queue, modification);
  if (should_commit()) pump_soon();
}

void Bosc::when_room(UniqueFunction<void()> then) {
  room_waiters_.push_back(std::move(then));
  if (has_room()) {
    tell_room();
  } else {
    pump_soon();
  }
}

void Bosc::tell_room() {
  if (!has_room() || room_waiters_.empty()) return;
  executor_.post([waiters = std::exchange(room_waiters_, {}), alive = alive_]() mutable {
    if (!*alive) return;
    for (UniqueFunction<void()>& waiter : waiters) waiter();
  });
}

void Bosc::set_mending(bool mending) {
  mending_ = mending;
  if (!mending) mended();
}

bool Bosc::when_mended(UniqueFunction<void()> then) {
  if (mending_) mending_waiters_.push_back(std::move(then));
  return mending_;
}

void Bosc::mended() {
  if (mending_waiters_.empty()) return;
  executor_.post([waiters = std::exchange(mending_waiters_, {}), alive = alive_]() mutable {
    if (!*alive) return;
    for (UniqueFunction<void()>& waiter : waiters) waiter();
  });
}

void Bosc::report(BlockAddress address, const Error& error) {
  if (error.code == ErrorCode::kCorrupt) ++statistics_.damaged;
  if (error_hook_) error_hook_(address, error);
}

std::uint64_t Bosc::last_number() const {
  std::uint64_t last = std::max(frontier_, used_through_);
  for (const BlockState& block : states_) last = std::max(last, block.frontier);
  for (const auto& [id, function] : functions_) last = std::max(last, function.last_number);
  return last;
}

void Bosc::others_write() {
  const bool hurry = queued_bytes() > (queue_bytes_commit_ + queue_bytes_max_) / 2;
  gate_.others_write(executor_.monotonic_time(), hurry);
}

void Bosc::divide(BlockAddress address, UniqueFunction<BlockAddress(Modification)> choose) {
  BlockState& block = state(address);
  ModificationQueue all = std::exchange(block.queue, {});
  const std::uint64_t number = block.first_pending;
  pool_.for_each(all, [&](Modification modification) {
    const BlockAddress to = choose(modification);
    BlockState& other = state(to);
    queue(to, other, modification, number);
    other.first_pending = std::min(other.first_pending, number);  // what it has may be newer
  });
  pool_.clear(all);
  // Its first number stays if something is left of it; what it has in the cache is committed with
  // it.
  BlockCache::Entry* const cached = cache_.find(address);
  if (block.queue.empty() && !block.committing && !block.held &&
      (cached == nullptr || !cached->dirty)) {
    block.first_pending = 0;
    dirty_.erase(address.value);
  }
}

void Bosc::commit_all(UniqueFunction<void(Result<void>)> done) {
  CHECK(!draining_);
  // The sweep under way has passed some blocks: the next one passes all.
  commit_alls_.push_back(
      {sweeping_ || checkpoint_ ? std::uint64_t{2} : std::uint64_t{1}, std::move(done)});
  pump_soon();
}

void Bosc::drain(UniqueFunction<void()> done) {
  draining_ = true;
  for (CommitAll& all : std::exchange(commit_alls_, {})) {
    all.done(Error{ErrorCode::kAborted, "the index is being closed"});
  }
  if (!runs_.empty() || checkpoint_ || !reads_.empty() || paused_ > 0) {
    drained_ = std::move(done);
    return;
  }
  if (done) done();
}

}  // namespace mariner::index

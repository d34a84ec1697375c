// The commit sweep: runs of neighbouring blocks are read, applied and written, several at a time,
// so that the disk always has something to do (dissertation 3.2.2).
#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "index/bosc.h"
#include "index/bosc_parts.h"
#include "proto/check.h"

namespace mariner::index {
namespace {

constexpr std::chrono::milliseconds kRetryDelay{100};
// When a sweep could not commit what there is: damaged blocks, for instance.
constexpr std::chrono::milliseconds kFruitlessDelay{1000};
constexpr std::uint32_t kGapMax = 4;

}  // namespace

void Bosc::pump_soon() {
  if (std::exchange(pump_pending_, true)) return;
  executor_.post([this, alive = alive_] {
    if (!*alive) return;
    pump_pending_ = false;
    pump();
  });
}

void Bosc::sweep_soon() {
  if (!std::exchange(sweep_wanted_, true)) pump_soon();
}

std::size_t Bosc::queue_bytes_commit() const {
  if (options_.commit_at_contents == 0) return queue_bytes_commit_;
  const double blocks = static_cast<double>(allocated_) * superblock_.block_bytes;
  const auto bytes = static_cast<std::size_t>(blocks * options_.commit_at_contents);
  return std::min(queue_bytes_commit_, std::max(bytes, kCommittedBytesMin));
}

// While the queues are to stay short, they leave most of their memory to the cache: twice what they
// have when a sweep begins is theirs, or what they do have.
std::size_t Bosc::cache_bytes_max() const {
  if (options_.commit_at_contents == 0) return options_.cache_bytes;
  const std::size_t wanted = std::max(2 * queue_bytes_commit(), pool_.used_bytes());
  return options_.cache_bytes + (queue_bytes_max_ - std::min(wanted, queue_bytes_max_));
}

// (What is dirty counts as queued.)
std::size_t Bosc::dirty_bytes_commit() const {
  const auto most = static_cast<double>(std::min(cache_.bytes_max(), queue_bytes_max_));
  return std::max(static_cast<std::size_t>(most * options_.commit_at),
                  std::size_t{superblock_.block_bytes});
}

bool Bosc::should_commit() const {
  if (!commit_alls_.empty() || !room_waiters_.empty()) return true;
  if (sweep_wanted_ || clean_wanted_ || cleaning_) return true;
  return pool_.used_bytes() >= queue_bytes_commit() || (is_cache_dirty() && runs_.empty()) ||
         (newest_number_ > frontier_ && newest_number_ - frontier_ > options_.replay_max);
}

void Bosc::pump() {
  if (draining_ || waiting_ || checkpoint_) return;
  // Who waits for everything gets a sweep that passes everything, and nothing beside it.
  const bool may_be_early = commit_alls_.empty();
  if (may_be_early && is_cache_dirty() && !commit_cache_early()) return begin_checkpoint(false);
  while (runs_.size() < options_.runs_in_flight) {
    if (may_be_early && has_early_run()) {
      if (const std::shared_ptr<Run> run = next_early_run()) {
        begin_run(run);
        continue;
      }
    }
    if (!should_commit()) return;
    if (!std::exchange(sweeping_, true)) {
      position_ = 0;
      sweep_end_ = static_cast<std::uint32_t>(states_.size());
      sweep_committed_ = false;
      // What is being committed early may have got more since.
      sweep_is_partial_ = !committed_.empty() || !runs_.empty();
      sweep_result_ = {};
      if (std::exchange(clean_wanted_, false)) begin_cleaning();
    }
    const std::shared_ptr<Run> run = next_run();
    if (run == nullptr) {
      if (runs_.empty()) sweep_ended();
      return;
    }
    begin_run(run);
  }
}

// What lookups have brought into the cache, where it was applied: a write each, without a read. A
// sweep would commit all that lies between them, for little. False when a checkpoint has to come
// first.
bool Bosc::commit_cache_early() {
  if (early_.count() > 0) return true;
  cache_.for_each_dirty([this](BlockAddress address) {
    if (may_commit(states_[address.value])) early_.insert(address.value);
  });
  return early_.count() > 0 || !runs_.empty() || committed_.empty();
}

void Bosc::sweep_ended() {
  sweeping_ = sweep_wanted_ = false;
  ++statistics_.sweeps;
  if (held_ > 0 && sweep_result_) {
    sweep_result_ =
        Error{ErrorCode::kUnavailable, "a damaged part of the index is being made again"};
  }
  // What it has left keeps the frontier where it is, so that the next one would begin at once, for
  // the little that has come since.
  const bool needs_room = !room_waiters_.empty() || pool_.used_bytes() >= queue_bytes_commit();
  const bool is_worth_it = sweep_committed_ && (sweep_result_ || needs_room);
  if (!is_worth_it && dirty_.count() > 0) wait_before_next(kFruitlessDelay);
  begin_checkpoint(true);
}

void Bosc::wait_before_next(std::chrono::milliseconds delay) {
  waiting_ = true;
  executor_.after(delay, [this, alive = alive_] {
    if (!*alive) return;
    waiting_ = false;
    pump();
  });
}

// Not twice between two checkpoints: its other place is what the last one refers to.
bool Bosc::may_commit(const BlockState& block) const {
  return block.function.value != 0 && !block.committed && !block.committing && !block.held;
}

// From the first dirty block at the sweep's position on: neighbours within its group, as long as
// enough of them are dirty. The first and the last one are.
std::shared_ptr<Bosc::Run> Bosc::next_run() {
  std::optional<std::uint32_t> first = dirty_.next(position_);
  while (first && !may_commit(states_[*first])) first = dirty_.next(*first + 1);
  if (!first || *first >= sweep_end_) return nullptr;
  const std::uint32_t group_end =
      (*first / superblock_.group_blocks + 1) * superblock_.group_blocks;
  const std::uint32_t limit = std::min(group_end, *first + options_.run_blocks_max);
  std::uint32_t last = *first;
  std::uint32_t dirty = 1;
  for (std::optional<std::uint32_t> next = dirty_.next(last + 1); next && *next < limit;
       next = dirty_.next(*next + 1)) {
    if (!may_commit(states_[*next])) continue;
    if (dirty + 1 < options_.run_dirty_min * (*next - *first + 1)) break;
    last = *next;
    ++dirty;
  }
  position_ = last + 1;

  auto run = std::make_shared<Run>();
  run->first = {*first};
  run->block_bytes = superblock_.block_bytes;
  for (std::uint32_t number = *first; number <= last; ++number) {
    const BlockState& block = states_[number];
    if (!may_commit(block) || (!dirty_.contains(number) && !block.on_disk)) continue;
    Run::Member member;
    member.address = {number};
    member.dirty = dirty_.contains(number);
    run->members.push_back(std::move(member));
  }
  return run;
}

// Neighbours of those that are to be committed early, and nothing else.
std::shared_ptr<Bosc::Run> Bosc::next_early_run() {
  std::optional<std::uint32_t> first = early_.next(0);
  while (first && !may_commit(states_[*first])) {
    early_.erase(*first);  // its time comes with the sweep
    first = early_.next(*first + 1);
  }
  if (!first) return nullptr;
  const std::uint32_t group_end =
      (*first / superblock_.group_blocks + 1) * superblock_.group_blocks;
  const std::uint32_t limit = std::min(group_end, *first + options_.run_blocks_max);
  auto run = std::make_shared<Run>();
  run->first = {*first};
  run->block_bytes = superblock_.block_bytes;
  for (std::uint32_t number = *first;
       number < limit && early_.contains(number) && may_commit(states_[number]); ++number) {
    early_.erase(number);
    Run::Member member;
    member.address = {number};
    member.dirty = true;
    run->members.push_back(std::move(member));
  }
  return run;
}

void Bosc::begin_run(const std::shared_ptr<Run>& run) {
  const std::size_t blocks = run->members.back().address.value - run->first.value + 1;
  run->before = Payload::allocate(blocks * run->block_bytes);
  run->after = Payload::allocate(blocks * run->block_bytes);
  run_bytes_ += 2 * blocks * run->block_bytes;
  for (Run::Member& member : run->members) {
    BlockState& block = state(member.address);
    block.committing = true;
    early_.erase(member.address.value);
    member.number = std::max(function_of(block).last_number, block.frontier);
    member.version = block.version + 1;
    member.taken = std::exchange(block.queue, {});
    BlockCache::Entry* const cached = cache_.find(member.address);
    if (cached == nullptr) continue;
    // What is in memory is as good as what is on disk, or newer.
    std::memcpy(run->before_of(member).data(), cached->block.data(), run->block_bytes);
    member.from_cache = true;
  }
  runs_.push_back(run);
  ++statistics_.runs;
  read_run(run);
}

// Calls use(at, length) for the pieces that a transfer of so many bytes is to be cut into.
template <typename Use>
void Bosc::in_pieces(std::size_t bytes, Use use) const {
  const std::size_t most = gate_.piece_bytes(executor_.monotonic_time());
  const std::size_t each =
      most < bytes ? most / superblock_.block_bytes * superblock_.block_bytes : bytes;
  const std::size_t piece = std::max<std::size_t>(each, superblock_.block_bytes);
  for (std::size_t at = 0; at < bytes; at += piece) use(at, std::min(piece, bytes - at));
}

void Bosc::read_run(const std::shared_ptr<Run>& run) {
  run->waiting = 1;  // for this function itself
  const auto ended = [this, run](const Result<void>& result, std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to && !result; ++i) {
      run->members[i].left_out = true;
      report(run->members[i].address, result.error());
    }
    if (--run->waiting == 0) apply_run(run);
  };
  const auto is_to_be_read = [&](const Run::Member& member) {
    return state(member.address).on_disk && !member.from_cache;
  };
  for (std::size_t from = 0; from < run->members.size();) {
    if (!is_to_be_read(run->members[from])) {
      ++from;
      continue;
    }
    // One read for neighbours in the same place; small gaps are read, too.
    const unsigned place = state(run->members[from].address).place;
    std::size_t last = from;
    for (std::size_t next = from + 1; next < run->members.size(); last = next++) {
      const Run::Member& member = run->members[next];
      if (!is_to_be_read(member) || state(member.address).place != place ||
          member.address.value - run->members[last].address.value > kGapMax) {
        break;
      }
    }
    const BlockAddress first = run->members[from].address;
    const std::size_t bytes =
        (run->members[last].address.value - first.value + 1) * run->block_bytes;
    const std::span<std::byte> to =
        run->before.bytes().subspan(run->offset(run->members[from]), bytes);
    const std::uint64_t offset = superblock_.offset_of(first, place);
    in_pieces(bytes, [&](std::size_t at, std::size_t length) {
      ++run->waiting;
      ++statistics_.reads;
      statistics_.bytes_read += length;
      gate_.pass(length, executor_.monotonic_time(), [=, this] {
        disk_.async_read(offset + at, to.subspan(at, length), [=, this](const Result<void>& r) {
          gate_.ended(length, executor_.monotonic_time());
          ended(r, from, last + 1);
        });
      });
    });
    from = last + 1;
  }
  // Never in this call: who queries a block of the run may be under way.
  executor_.post([ended] { ended({}, 0, 0); });
}

// What takes time of it on a thread: checking, applying, sealing. The run's members are that
// thread's until then; views of their blocks use what is on disk and in the queues.
void Bosc::apply_run(const std::shared_ptr<Run>& run) {
  for (Run::Member& member : run->members) {
    const BlockState& block = state(member.address);
    member.is_stored = block.on_disk || member.from_cache;
    member.expected = header_of(member.address, block);
    member.function = function_of(block).commit;
    // What was applied in the cache is a commit of nothing, as of what is only cleaned: the
    // function hears of it.
    if (member.taken.empty() && !member.dirty) continue;
    member.commit = std::make_unique<BlockCommit>(BlockCommit::Parts{
        member.address,
        member.is_stored ? contents_of(std::span<const std::byte>(run->before_of(member)))
                         : std::span<const std::byte>{},
        contents_of(run->after_of(member)), PendingModifications(pool_, &member.taken), &buffers_});
  }
  threads_.run([run, file = superblock_.file] { run->apply(file); },
               [this, run] { run_applied(run); });
}

void Bosc::Run::apply(const IndexFileId& file) {
  for (Member& member : members) {
    if (member.left_out) continue;
    if (member.is_stored && !member.from_cache) {
      member.damage = check_index_block(member.expected, file, before_of(member));
      if (member.damage != BlockDamage::kNone) continue;
    }
    if (member.commit) {
      member.function->commit(*member.commit);
    } else {
      const std::span<const std::byte> from = before_of(member);
      std::ranges::copy(contents_of(from), contents_of(after_of(member)).begin());
    }
    seal_index_block({member.address, member.expected.function, member.version, member.number},
                     file, after_of(member));
  }
}

void Bosc::run_applied(const std::shared_ptr<Run>& run) {
  run->is_read = true;
  for (std::size_t i = 0; i < run->members.size(); ++i) {
    Run::Member& member = run->members[i];
    if (member.damage != BlockDamage::kNone) {
      member.left_out = true;
      report(member.address, damage_error(member.address, member.damage));
    }
    if (member.left_out || !member.commit) continue;
    const BlockState& block = state(member.address);
    for (std::size_t number = 0; number < member.commit->added_.size(); ++number) {
      const Result<BlockAddress> address = allocate(block.function, block.tag);
      if (!address) {
        report(member.address, address.error());
        member.left_out = true;
        break;
      }
      state(*address).committing = true;
      member.commit->addresses_.push_back(*address);
      run->added.push_back({i, number, *address});
    }
  }
  write_run(run);
}

void Bosc::write_run(const std::shared_ptr<Run>& run) {
  run->waiting = 1;
  const auto ended = [this, run](const Result<void>& result) {
    if (!result && run->result) run->result = result;
    if (--run->waiting == 0) finish_run(run);
  };
  const auto write = [&](BlockAddress first, unsigned place,
                         std::vector<logging::ConstBytes> parts) {
    std::uint64_t offset = superblock_.offset_of(first, place);
    for (const logging::ConstBytes& part : parts) {
      in_pieces(part.size(), [&](std::size_t at, std::size_t length) {
        ++run->waiting;
        ++statistics_.writes;
        statistics_.bytes_written += length;
        gate_.pass(length, executor_.monotonic_time(),
                   [this, ended, offset = offset + at, piece = part.subspan(at, length)] {
                     disk_.async_write(offset, {piece}, logging::Durability::kVolatile,
                                       [this, ended, length = piece.size()](const Result<void>& r) {
                                         gate_.ended(length, executor_.monotonic_time());
                                         ended(r);
                                       });
                   });
      });
      offset += part.size();
    }
  };
  const auto new_place = [&](const Run::Member& member) {
    const BlockState& block = state(member.address);
    return block.on_disk ? block.place ^ 1u : 0u;
  };
  for (std::size_t from = 0; from < run->members.size();) {
    const Run::Member& first = run->members[from];
    if (first.left_out) {
      ++from;
      continue;
    }
    const unsigned place = new_place(first);
    std::size_t to = from;
    for (; to < run->members.size(); ++to) {
      const Run::Member& member = run->members[to];
      if (member.left_out || new_place(member) != place ||
          member.address.value != first.address.value + (to - from)) {
        break;
      }
    }
    write(first.address, place,
          {run->after.bytes().subspan(run->offset(first), (to - from) * run->block_bytes)});
    from = to;
  }
  for (std::size_t from = 0; from < run->added.size();) {
    std::vector<logging::ConstBytes> parts;
    std::size_t to = from;
    for (; to < run->added.size(); ++to) {
      const Run::Added& added = run->added[to];
      if (added.address.value != run->added[from].address.value + (to - from) ||
          added.address.value / superblock_.group_blocks !=
              run->added[from].address.value / superblock_.group_blocks) {
        break;
      }
      const Run::Member& member = run->members[added.member];
      Payload& block = member.commit->added_[added.number];
      seal_index_block({added.address, state(added.address).function,
                        state(added.address).version + 1, member.number},
                       superblock_.file, block.bytes());
      parts.emplace_back(block.bytes());
    }
    write(run->added[from].address, 0, std::move(parts));
    from = to;
  }
  executor_.post([ended] { ended({}); });
}

// What was taken goes back in front of what came since.
void Bosc::give_back(Run& run, std::size_t number) {
  Run::Member& member = run.members[number];
  BlockState& block = state(member.address);
  pool_.splice(member.taken, std::exchange(block.queue, {}));
  block.queue = std::exchange(member.taken, {});
  block.committing = false;
  if (!member.commit) return;
  for (const BlockAddress added : member.commit->addresses_) {
    state(added).committing = false;
    free(added);
  }
}

void Bosc::finish_run(const std::shared_ptr<Run>& run) {
  for (std::size_t i = 0; i < run->members.size(); ++i) {
    Run::Member& member = run->members[i];
    if (member.left_out || !run->result) {
      if (sweep_result_) {
        sweep_result_ = Error{ErrorCode::kIo, "some blocks of the index could not be committed"};
      }
      give_back(*run, i);
      continue;
    }
    sweep_committed_ = sweep_committed_ || member.dirty;
    BlockState& block = state(member.address);
    block.place = block.on_disk ? block.place ^ 1u : 0;
    block.on_disk = true;
    block.version = member.version;
    block.frontier = member.number;
    block.committing = false;
    block.committed = true;
    committed_.push_back(member.address);
    pool_.clear(member.taken);
    // All that is older than the commit is written. The first of what came since is not known, but
    // it is behind the commit.
    block.first_pending = block.queue.empty() ? 0 : member.number + 1;
    if (block.queue.empty()) dirty_.erase(member.address.value);
    ++(member.dirty ? statistics_.blocks_committed : statistics_.blocks_carried);
    if (BlockCache::Entry* const cached = cache_.find(member.address); cached != nullptr) {
      std::memcpy(cached->block.data(), run->after_of(member).data(), run->block_bytes);
      cache_.set_dirty(*cached, false);
    }
    if (!member.commit) continue;
    for (const BlockAddress added : member.commit->addresses_) {
      BlockState& fresh = state(added);
      fresh.on_disk = true;
      ++fresh.version;
      fresh.frontier = member.number;
      fresh.committing = false;
      fresh.committed = true;
      committed_.push_back(added);
      ++statistics_.blocks_committed;
    }
    function_of(block).commit->committed(*member.commit);
  }
  run_bytes_ -= run->before.size() + run->after.size();
  std::erase(runs_, run);
  if (!run->result) {
    report(run->first, run->result.error());
    if (sweep_result_) sweep_result_ = run->result;
    wait_before_next(kRetryDelay);
  }
  tell_room();
  if (draining_) return drain(std::move(drained_));
  pump();
}

}  // namespace mariner::index

// BOSC: batching modifications with sequential commit. A store of blocks in an index file that is
// updated without being read first. Dissertation 3.1 and 3.2; BOSC paper 3 and 4.
//
// modify() puts a modification into its block's queue in memory. A commit sweep goes over the file
// in the order of addresses, again and again, in runs of neighbouring blocks: a run is read, the
// commit functions apply what is queued, and it is written. query() sees a block with everything
// that is queued for it, and reads it only if it must.
//
// Nothing is durable when modify() returns: the caller has a log, whose records are numbered, and
// gives each modification its record's number. A checkpoint makes the state of all blocks durable
// at once and says from which number on the log must be replayed (frontier()). Invariants:
// - A block is never written over its only copy: it has two places, is committed at most once
//   between two checkpoints, and a checkpoint says which places hold.
// - A block's local frontier: all modifications of its function up to that number that were meant
//   for it are in it. A modification at or below it is not applied again.
// - Every block that is read has the address, function and version that it must have; what has not
//   is damage, is reported, and keeps its queue.
// - Memory (queues, cache, runs) stays within memory_bytes if the caller heeds has_room().
// - When few blocks are left, a sweep commits all there are, so that functions leave out what is of
//   no use any more also where nothing comes.
//
// Owner's thread only; commit functions may run on others.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "index/block_cache.h"
#include "index/commit_function.h"
#include "index/commit_threads.h"
#include "index/dirty_map.h"
#include "index/index_file.h"
#include "index/io_gate.h"
#include "index/modification_queue.h"
#include "logging/disk.h"
#include "proto/executor.h"

namespace mariner::index {

class SortedPending;

// What a query sees of a block.
struct BlockView {
  // False: the block is on disk, and its contents are not in memory.
  bool complete = false;
  // As of `pending`; empty if the block was never written, or if it is not complete.
  std::span<const std::byte> contents;
  PendingModifications pending;
};

struct BoscOptions {
  std::size_t memory_bytes = std::size_t{512} << 20;
  // Of these at least so much may be used for the cache; and what the queues do not want
  // (commit_at_contents).
  std::size_t cache_bytes = std::size_t{64} << 20;
  std::uint32_t run_blocks_max = 32;  // dissertation 3.2.2
  double run_dirty_min = 0.5;         // the share of a run that must be dirty
  std::uint32_t runs_in_flight = 4;
  unsigned commit_threads = 0;      // that apply; 0: the owner does it
  std::uint32_t chunk_bytes = 256;  // ModificationPool::Options
  // A sweep begins when the queues take this share of their memory, or when so many numbers would
  // have to be replayed.
  double commit_at = 0.8;
  std::uint64_t replay_max = UINT64_MAX;
  // ... or when the queues take this multiple of what the blocks do, but not below
  // kCommittedBytesMin. 0: not for that. A small index costs little to write, and what a lookup has
  // to sort in a block's queue stays in proportion to what the block holds.
  double commit_at_contents = 0;
};

struct BoscStatistics {
  std::uint64_t modifications = 0;
  std::uint64_t sweeps = 0;
  std::uint64_t runs = 0;
  std::uint64_t blocks_committed = 0;
  std::uint64_t blocks_carried = 0;  // clean ones within a run
  std::uint64_t reads = 0;           // of the disk
  std::uint64_t bytes_read = 0;
  std::uint64_t writes = 0;
  std::uint64_t bytes_written = 0;  // checkpoints included
  std::uint64_t checkpoints = 0;
  std::uint64_t checkpoint_bytes = 0;
  std::uint64_t queries = 0;
  std::uint64_t query_reads = 0;  // of these had to read
  std::uint64_t damaged = 0;      // blocks that were found damaged
};

class Bosc {
 public:
  static constexpr std::size_t kCommittedBytesMin = std::size_t{4} << 20;
  using Answered = UniqueFunction<void(Result<bool>)>;

  // Opens the file on `disk`, which outlives it, and loads its checkpoint. Blocking. kCorrupt when
  // there is none that is good: then it is to be formatted and filled from the log.
  static Result<std::unique_ptr<Bosc>> open(Executor& executor, logging::Disk& disk,
                                            const BoscOptions& options);
  ~Bosc();  // nothing is in flight: see drain()
  Bosc(const Bosc&) = delete;
  Bosc& operator=(const Bosc&) = delete;

  // Before anything else is done with its blocks. `function` outlives this. What was saved for it
  // goes: it has been used by now.
  void add_function(FunctionId id, CommitFunction& function);
  // What `function` saved in the checkpoint; empty if it was not there.
  [[nodiscard]] std::span<const std::byte> saved(FunctionId id) const;
  // Gives back all blocks of the function, in several turns, and forgets it. Blocks that are being
  // committed are waited for; then `done`, perhaps before this returns. Nobody uses its blocks any
  // more.
  void remove_function(FunctionId id, UniqueFunction<void()> done);
  // The same for all that the checkpoint knew and that were not added. Before the first commit.
  void remove_others();

  // Usable bytes of each block.
  [[nodiscard]] std::size_t contents_bytes() const {
    return superblock_.block_bytes - kIndexBlockHeaderBytes;
  }
  // A block that was never written. `tag` is for the function: whatever it wants to know the block
  // by. kNoSpace when the file is full.
  Result<BlockAddress> allocate(FunctionId id, std::uint32_t tag);
  // Gives the block back, with what is queued for it. It is not being committed.
  void free(BlockAddress address);
  void set_tag(BlockAddress address, std::uint32_t tag) { state(address).tag = tag; }
  [[nodiscard]] std::uint32_t tag(BlockAddress address) const { return state(address).tag; }
  [[nodiscard]] bool belongs_to(BlockAddress address, FunctionId id) const {
    return address.value < states_.size() && id.value != 0 && states_[address.value].function == id;
  }
  [[nodiscard]] bool is_allocated(BlockAddress address) const {
    return address.value < states_.size() && states_[address.value].function.value != 0;
  }
  [[nodiscard]] bool is_committing(BlockAddress address) const { return state(address).committing; }
  // Modifications that wait for a commit to come.
  [[nodiscard]] std::uint32_t queued(BlockAddress address) const {
    return state(address).queue.count();
  }
  [[nodiscard]] bool on_disk(BlockAddress address) const { return state(address).on_disk; }
  [[nodiscard]] std::uint64_t local_frontier(BlockAddress address) const {
    return state(address).frontier;
  }

  // Queues `modification`, of the log record `number`, for the block; the function of the block is
  // what commits it. A function's numbers never decrease, and all modifications of one number are
  // made in one turn of the executor. False when the block has it already (after a restart).
  bool modify(BlockAddress address, Modification modification, std::uint64_t number);
  // A block that takes the place of a damaged one is held while it is made again from the log: it
  // is not committed, and the whole log counts as not committed, so that after a crash it is made
  // again from the start.
  void hold(BlockAddress address);
  void end_hold(BlockAddress address);
  // As modify(), for a block that is held: a modification whose number is not known any more.
  void restore(BlockAddress address, Modification modification);
  // Every number up to this one that anybody will ever use has been used. May be told when a
  // checkpoint asks (on_checkpoint_begin).
  void set_used_through(std::uint64_t number) { used_through_ = number; }

  // Hints that modify() will be called for the block soon: two steps, each for many blocks before
  // the next, because the second needs what the first has brought.
  void prefetch(BlockAddress address) const { __builtin_prefetch(&states_[address.value], 1); }
  void prefetch_queue(BlockAddress address) const { pool_.prefetch(states_[address.value].queue); }
  // Others write to the disk: for a moment commits leave it to them, mostly, unless room runs
  // short. (Lookups are always made way for.)
  void others_write();
  // Whether the queues are within their memory: who modifies waits otherwise.
  [[nodiscard]] bool has_room() const { return queued_bytes() < queue_bytes_max_; }
  // Runs `then` in a later turn as soon as there is room.
  void when_room(UniqueFunction<void()> then);

  // Shows the block to `look`, which returns whether that was enough; an incomplete view need not
  // be, a complete one is. `answered` gets true then; false when the block was committed while it
  // was being read, so that what is looked for may stand elsewhere: ask again. kCorrupt, kIo when
  // it cannot be read. Both may run before this returns. While `look` looks it modifies nothing: a
  // queue that grows may take the view's memory from the cache.
  void query(BlockAddress address, UniqueFunction<bool(const BlockView&)> look, Answered answered);

  // The same without reading, with what is in memory, or with `fetched` if that is the block as it
  // is on disk now. False: that is not enough.
  struct Fetched {
    IndexBlockHeader header;
    std::vector<std::byte> contents;
  };
  template <typename Look>
  [[nodiscard]] bool look_now(BlockAddress address, const Fetched* fetched, Look look) {
    const BlockState& block = state(address);
    BlockView view = view_of(address, block);
    if (!view.complete && fetched != nullptr && fetched->header == header_of(address, block)) {
      view.complete = true;
      view.contents = fetched->contents;
    }
    return look(view);
  }
  // Reads the block if it must, and gives a copy of it for look_now(). kCorrupt and kIo as query().
  void fetch(BlockAddress address, UniqueFunction<void(Result<Fetched>)> done);
  // The same while the caller waits: what checks an index in the middle of a turn needs it. Reads
  // what is on disk even if it is in memory, too.
  Result<Fetched> fetch_now(BlockAddress address);

  // Begins to read the block if it is not in memory, for a query that comes soon. Nobody hears of a
  // failure but on_error(): the query meets it again.
  void read_ahead(BlockAddress address);
  // So many blocks may be read ahead without pushing out one another.
  [[nodiscard]] std::size_t read_ahead_max() const;
  // Goes on with a long lookup in the executor's next turn. drain() waits for it.
  void in_next_turn(UniqueFunction<void()> work);

  // For those of its functions whose blocks are leaves of trees: one for all, with one bound.
  [[nodiscard]] SortedPending& sorted_pending() const { return *sorted_pending_; }

  // Much of what is queued and stored is of no use any more: a sweep, which leaves that out, is
  // worth its cost now.
  void sweep_soon();

  // Nothing will be modified in the block for long: it is committed before the sweep comes to it,
  // with others like it.
  void commit_early(BlockAddress address);

  // Divides what is queued for `address`: each modification goes to the block that `choose` names
  // (another one, or the same), in order. For a function whose block has been split.
  void divide(BlockAddress address, UniqueFunction<BlockAddress(Modification)> choose);

  // Commits everything that has been modified before this call and makes a checkpoint. kUnavailable
  // when all but what is held has been committed.
  void commit_all(UniqueFunction<void(Result<void>)> done);
  // Calls done when nothing is in flight; nothing new begins from now on. Who waits for
  // commit_all() hears kAborted.
  void drain(UniqueFunction<void()> done);

  // The log must be replayed from the number behind this one.
  [[nodiscard]] std::uint64_t frontier() const { return frontier_; }
  // The highest number that it knows: what comes from now on has a higher one. A number may have
  // been used for what never became durable, and a log that has forgotten it would give it again.
  [[nodiscard]] std::uint64_t last_number() const;
  // Called with it whenever a checkpoint has become durable.
  void on_checkpoint(UniqueFunction<void(std::uint64_t)> hook) {
    checkpoint_hook_ = std::move(hook);
  }
  // Called before one is packed, to say what has been used (set_used_through).
  void on_checkpoint_begin(UniqueFunction<void()> hook) { begin_hook_ = std::move(hook); }
  // Told of blocks that are damaged and of I/O that failed.
  void on_error(UniqueFunction<void(BlockAddress, const Error&)> hook) {
    error_hook_ = std::move(hook);
  }

  // Damage, or what is being made again because of it.
  [[nodiscard]] static bool is_damage(const Error& error) {
    return error.code == ErrorCode::kCorrupt || error.code == ErrorCode::kUnavailable;
  }
  // Somebody makes damaged blocks again: who meets one may wait for that.
  void set_mending(bool mending);
  // Runs `then` in a later turn when what is damaged now has been made again, or will not be; false
  // when nobody does that.
  [[nodiscard]] bool when_mended(UniqueFunction<void()> then);
  // What was damaged has been made again.
  void mended();

  [[nodiscard]] Executor& executor() const { return executor_; }
  [[nodiscard]] std::uint32_t allocated_blocks() const { return allocated_; }
  [[nodiscard]] std::uint32_t block_bytes() const { return superblock_.block_bytes; }
  // Queues, cache and runs: what memory_bytes limits.
  [[nodiscard]] std::size_t memory_bytes() const;
  // What is known of the blocks, which grows with their number.
  [[nodiscard]] std::size_t state_bytes() const { return states_.size() * sizeof(BlockState); }
  [[nodiscard]] std::size_t queued_bytes() const {
    return pool_.used_bytes() + cache_.dirty_bytes();
  }
  [[nodiscard]] const BoscStatistics& statistics() const { return statistics_; }

 private:
  struct alignas(64) BlockState {  // a line of the processor's cache: each insert needs another one
    ModificationQueue queue;
    FunctionId function;  // 0: free
    std::uint32_t tag = 0;
    std::uint32_t version = 0;
    std::uint64_t frontier = 0;
    std::uint64_t first_pending = 0;  // number of the oldest modification that is not written
    bool on_disk = false;
    bool committed = false;   // since the last checkpoint
    bool committing = false;  // is part of a run
    bool held = false;
    bool cached = false;
    std::uint8_t place = 0;  // where it stands
  };
  struct Run;
  struct Read;
  struct Checkpoint;
  struct Removal {
    FunctionId id;
    UniqueFunction<void()> done;
    std::uint32_t position = 0;
    bool found_any = false;  // in this pass
    bool found_committing = false;
  };
  struct Function {
    CommitFunction* commit = nullptr;
    std::uint64_t last_number = 0;
    std::vector<std::byte> saved;
  };

  Bosc(Executor& executor, logging::Disk& disk, const BoscOptions& options,
       const IndexSuperblock& superblock);
  Result<void> load_checkpoint();
  Result<void> unpack_checkpoint(std::span<const std::byte> bytes);

  [[nodiscard]] BlockState& state(BlockAddress address) {
    CHECK(is_allocated(address));
    return states_[address.value];
  }
  [[nodiscard]] const BlockState& state(BlockAddress address) const {
    return const_cast<Bosc*>(this)->state(address);
  }
  [[nodiscard]] Function& function_of(const BlockState& block);
  [[nodiscard]] IndexBlockHeader header_of(BlockAddress address, const BlockState& block) const {
    return {address, block.function, block.version, block.frontier};
  }
  void go_on_removing(const std::shared_ptr<Removal>& removal);
  void clean_if_short();
  void begin_cleaning();
  void end_cleaning();
  void queue(BlockAddress address, BlockState& block, Modification modification,
             std::uint64_t number);

  // The sweep (bosc_sweep.cc).
  void pump_soon();
  void pump();
  [[nodiscard]] bool should_commit() const;
  [[nodiscard]] std::size_t queue_bytes_commit() const;
  [[nodiscard]] std::size_t cache_bytes_max() const;
  [[nodiscard]] bool is_cache_dirty() const { return cache_.dirty_bytes() >= dirty_bytes_commit(); }
  [[nodiscard]] std::size_t dirty_bytes_commit() const;
  [[nodiscard]] bool commit_cache_early();
  [[nodiscard]] bool may_commit(const BlockState& block) const;
  [[nodiscard]] std::shared_ptr<Run> next_run();
  [[nodiscard]] std::shared_ptr<Run> next_early_run();
  [[nodiscard]] bool has_early_run() const {
    return early_.count() >= options_.run_blocks_max || (is_cache_dirty() && early_.count() > 0);
  }
  void begin_run(const std::shared_ptr<Run>& run);
  template <typename Use>
  void in_pieces(std::size_t bytes, Use use) const;
  void read_run(const std::shared_ptr<Run>& run);
  void apply_run(const std::shared_ptr<Run>& run);
  void run_applied(const std::shared_ptr<Run>& run);
  void write_run(const std::shared_ptr<Run>& run);
  void finish_run(const std::shared_ptr<Run>& run);
  void give_back(Run& run, std::size_t member);
  void sweep_ended();
  void wait_before_next(std::chrono::milliseconds delay);
  void tell_room();

  // Checkpoints (bosc_checkpoint.cc).
  void begin_checkpoint(bool ends_sweep);
  [[nodiscard]] Payload pack_checkpoint(std::uint64_t frontier);
  void write_superblock();
  void checkpoint_ended(const Result<void>& result);

  // Queries (bosc_queries.cc).
  std::pair<Read*, bool> read_of(BlockAddress address, const BlockState& block);
  void read_for_query(BlockAddress address);
  void read_ended(BlockAddress address, Result<void> result);
  void cache_block(BlockAddress address, Payload block);
  void bound_cache();
  [[nodiscard]] BlockView view_of(BlockAddress address, const BlockState& block);
  void report(BlockAddress address, const Error& error);

  Executor& executor_;
  logging::Disk& disk_;
  const BoscOptions options_;
  const std::size_t queue_bytes_max_;
  const std::size_t queue_bytes_commit_;  // a sweep begins, at the latest
  IndexSuperblock superblock_;
  std::unordered_map<std::uint32_t, Function> functions_;
  FunctionId last_function_id_;        // that was looked up last
  Function* last_function_ = nullptr;  // it, unless it is gone

  std::vector<BlockState> states_;  // by address
  DirtyMap dirty_;                  // blocks that have something to commit
  DirtyMap early_;                  // of these, those that are to be committed early
  DirtyMap free_;                   // addresses below states_.size() that can be allocated
  std::uint32_t allocated_ = 0;
  std::uint32_t held_ = 0;
  std::vector<BlockAddress> freed_;      // since the last checkpoint: it may refer to them
  std::vector<BlockAddress> committed_;  // since the last checkpoint

  BlockBuffers buffers_;  // of blocks that commits add
  CommitThreads threads_;
  ModificationPool pool_;
  const std::unique_ptr<SortedPending> sorted_pending_;
  BlockCache cache_;
  IoGate gate_{{}};
  std::unordered_map<std::uint32_t, std::unique_ptr<Read>> reads_;
  std::size_t paused_ = 0;  // lookups that go on in the next turn
  std::vector<std::shared_ptr<Run>> runs_;
  std::size_t run_bytes_ = 0;    // of buffers
  std::uint32_t position_ = 0;   // of the sweep
  std::uint32_t sweep_end_ = 0;  // blocks that come behind it wait for the next one
  bool sweeping_ = false;
  bool sweep_wanted_ = false;
  bool sweep_committed_ = false;   // something, in this sweep
  bool sweep_is_partial_ = false;  // it leaves out what the last one committed: no checkpoint yet
  // Blocks are short: the next sweep commits all of them; this one does; not again before.
  bool clean_wanted_ = false;
  bool cleaning_ = false;
  std::chrono::nanoseconds cleaning_begun_{0};
  std::chrono::nanoseconds clean_after_{0};
  Result<void> sweep_result_;
  std::shared_ptr<Checkpoint> checkpoint_;
  std::uint64_t frontier_ = 0;
  std::uint64_t used_through_ = 0;
  std::uint64_t newest_number_ = 0;  // that was modified with
  bool pump_pending_ = false;
  bool draining_ = false;
  bool waiting_ = false;  // something failed: not yet again
  std::vector<UniqueFunction<void()>> room_waiters_;
  struct CommitAll {
    std::uint64_t sweeps_left = 0;
    UniqueFunction<void(Result<void>)> done;
  };
  std::vector<CommitAll> commit_alls_;
  UniqueFunction<void()> drained_;
  UniqueFunction<void(std::uint64_t)> checkpoint_hook_;
  UniqueFunction<void()> begin_hook_;
  UniqueFunction<void(BlockAddress, const Error&)> error_hook_;
  bool mending_ = false;
  std::vector<UniqueFunction<void()>> mending_waiters_;
  BoscStatistics statistics_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::index

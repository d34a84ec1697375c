// The version index of one volume on disk: its TL and LT indexes, what its base holds of
// before-images, and its rollbacks, over one store.
//
// What reads it is a computation (consult()) or calls back. Moments are sequence numbers, as in
// version_index.h, whose words these are. The log's records are what recovery makes it from:
// insert() takes each record behind the store's frontier again, in the order of the log, and skips
// what is there.
//
// Four trees: TL, LT, BT, which is like LT but for before-images: its entries are numbered by the
// ordinals of their records; and that of what kept moments show (kept_index.h). The rollbacks stand
// in LT, behind all runs. Owner's thread
// only.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "index/kept_index.h"
#include "index/leaf_repair.h"
#include "index/lt_index.h"
#include "index/recent_writes.h"
#include "index/tl_index.h"
#include "index/version_index.h"
#include "index/version_lookup.h"
#include "proto/histogram.h"

namespace mariner::index {

class StoredIndex {
 public:
  // The ids of its trees: [kFunctions * volume, kFunctions * (volume + 1)).
  static constexpr std::uint32_t kFunctions = 4;

  // `store` outlives it. kCorrupt when what was saved is damaged.
  static Result<std::unique_ptr<StoredIndex>> open(Bosc& store, VolumeId volume);
  ~StoredIndex();
  StoredIndex(const StoredIndex&) = delete;
  StoredIndex& operator=(const StoredIndex&) = delete;
  // Learns what it holds: once, before anything else. `done` may run before this returns.
  void learn(UniqueFunction<void(Result<void>)> done);

  // Adds a durable record, with its ordinal. Writes, zeros and rollbacks come in the order of their
  // sequence numbers, with times that increase strictly; before-images and rebases in the order of
  // their ordinals. What comes is there for the next lookup, and goes into the trees with others
  // (flush()): that costs less each.
  void insert(const logging::Record& record, const logging::LogLocation& location);
  struct Logged {
    logging::Record record;
    logging::LogLocation location;
  };
  void insert_all(std::span<const Logged> records);
  void flush();

  // Calls compute(VersionLookup&) until nothing that it needs is missing; then `done`, in the same
  // turn. See block_reader.h. Both may run before this returns.
  void consult(UniqueFunction<void(const VersionLookup&)> compute,
               UniqueFunction<void(Result<void>)> done);

  // The distinct extents that may differ between the views at `from` and `to`, in order, merged.
  // `from` may be a kept moment: then it reads the index of what those show.
  void changed(SequenceNumber from, SequenceNumber to,
               UniqueFunction<void(Result<std::vector<BlockRange>>)> done);
  // Visits the writes in (from, to] in order until `visit` returns false; `done` then.
  void for_each(SequenceNumber from, SequenceNumber to,
                UniqueFunction<bool(const IndexedWrite&)> visit,
                UniqueFunction<void(Result<void>)> done);
  using Found = UniqueFunction<void(Result<IndexMoment>)>;
  // The last write at or before the moment; sequence 0 when there is none. Before the horizon: the
  // kept moment that is the same.
  void moment_at(VersionTime time, Found found);
  void moment_of(SequenceNumber sequence, Found found);

  // A damaged leaf is made again while everything else goes on. From begin_repair() on the leaf of
  // block `address` is empty, and what needs it fails with kUnavailable. The owner restores, in any
  // order and each as often as it likes, every record that was inserted before and has entries in
  // the leaf; then end_repair(). Nothing when the block is no leaf of this index (any more), or
  // there is no room. It is not being committed. `decided_through`: every record of the log up to
  // this ordinal is durable, or never will be.
  std::optional<LeafRepair> begin_repair(BlockAddress address, std::uint64_t decided_through);
  void restore(const LeafRepair& repair, const logging::Record& record,
               const logging::LogLocation& location);
  void end_repair(const LeafRepair& repair);

  // The log gives up all records of the volume up to this write, and all before-images up to this
  // ordinal. What they hold counts as base from now on, and goes when its blocks are committed.
  void forget_through(SequenceNumber sequence, std::uint64_t ordinal);
  // Moments before `horizon` can no longer be opened. Never goes back.
  void set_horizon(IndexMoment horizon);
  // That is on stable storage up to here: what the base was before, nobody can ask any more.
  void set_stored_horizon(SequenceNumber stored);
  [[nodiscard]] SequenceNumber stored_horizon() const { return stored_horizon_; }
  // As of when the base matters: that of a block which was written before, no moment shows that can
  // be opened. (0 while a later rollback goes back further, and while moments are kept.)
  [[nodiscard]] SequenceNumber base_matters_as_of() const;
  // The moments before the horizon that can still be opened, by number. What they show and the
  // trees do not hold any longer must have been logged again. (The owner keeps them.)
  void set_kept(std::vector<KeptMoment> kept) { kept_ = std::move(kept); }
  [[nodiscard]] const std::vector<KeptMoment>& kept() const { return kept_; }
  [[nodiscard]] bool is_kept(SequenceNumber moment) const;
  // Whether a moment can be opened, if it has come at all.
  [[nodiscard]] bool can_be_opened(SequenceNumber moment) const {
    return moment >= horizon_.sequence || is_kept(moment);
  }
  // forget_through() is about to be told as much: what these writes wrote may become the base at
  // any time.
  void begin_forgetting(SequenceNumber sequence, std::uint64_t ordinal);
  [[nodiscard]] SequenceNumber forgetting() const { return forgetting_; }
  [[nodiscard]] bool is_forgetting() const { return forgetting_bases_ > bases_given_up_.value(); }

  // Of the rollbacks up to `through`, the targets that are kept moments.
  [[nodiscard]] std::vector<SequenceNumber> kept_targets(SequenceNumber through) const;
  // To `extents` those of which what one of these kept moments shows has been logged again; in
  // order, merged. Reads the index of these, if there is a moment.
  void add_kept_extents(std::vector<SequenceNumber> moments, std::vector<BlockRange> extents,
                        UniqueFunction<void(Result<std::vector<BlockRange>>)> done);

  // The targets of the rollbacks after `after`.
  [[nodiscard]] std::vector<SequenceNumber> rollback_targets(SequenceNumber after) const;
  // The newest number as of which everything reads as it does now: of a write, or, when a rollback
  // came last, its target.
  [[nodiscard]] SequenceNumber end() const;
  // The newest rollback; 0 when there is none.
  [[nodiscard]] SequenceNumber last_rollback() const {
    return rollbacks_.empty() ? SequenceNumber{} : rollbacks_.back().sequence;
  }
  // The horizon; sequence 0 as long as nothing was given up.
  [[nodiscard]] IndexMoment oldest() const { return horizon_; }
  [[nodiscard]] IndexMoment newest() const;
  // The last write that forget_through() was told; 0: nothing was given up yet.
  [[nodiscard]] SequenceNumber given_up() const { return {writes_given_up_.value()}; }
  [[nodiscard]] Bosc& store() const { return store_; }
  [[nodiscard]] VolumeId volume() const { return volume_; }
  // Of which blocks it is known without a look into the trees that a write within (after, through]
  // is what the moment `through` shows of them, or a later one up to it.
  [[nodiscard]] RecentWrites::Periods written_within(SequenceNumber after,
                                                     SequenceNumber through) const;
  // Updates of its trees that wait to be committed.
  [[nodiscard]] std::uint64_t pending_updates() const;
  // How long lookups took, from consult() to its end.
  [[nodiscard]] const DurationHistogram& lookups() const { return lookups_; }
  // The ids of what this has of the store.
  [[nodiscard]] static std::array<FunctionId, 4> functions_of(VolumeId volume);

 private:
  friend class VersionLookup;
  struct Rollback {
    SequenceNumber sequence;
    SequenceNumber target;
  };
  // Entries at or below a number that is given up.
  class Floor final : public RecordFilter {
   public:
    [[nodiscard]] bool is_expired(IndexKey key, std::span<const std::byte> value) const override;
    void raise(std::uint64_t to) {
      if (to > value_.load(std::memory_order_relaxed)) value_.store(to, std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

   private:
    std::atomic<std::uint64_t> value_{0};
  };

  StoredIndex(Bosc& store, VolumeId volume) : store_(store), volume_(volume) {}
  [[nodiscard]] std::vector<LocatedRun> locate(BlockReader& reader, BlockRange range,
                                               SequenceNumber at) const;
  // The same of `ranges`, which ascend, are not empty and do not overlap.
  [[nodiscard]] std::vector<LocatedRun> locate(BlockReader& reader,
                                               std::span<const BlockRange> ranges,
                                               SequenceNumber at) const;
  [[nodiscard]] std::vector<SequenceNumber> versions(BlockReader& reader, Lbn block,
                                                     SequenceNumber from, SequenceNumber to) const;
  [[nodiscard]] VersionLookup::Changes changes(BlockReader& reader, Lbn block, SequenceNumber from,
                                               SequenceNumber to, std::size_t most) const;
  [[nodiscard]] bool is_changed_by(BlockReader& reader, const Rollback& rollback, Lbn block) const;
  void insert_one(const logging::Record& record, const logging::LogLocation& location);
  void remember_rollback(const logging::Record& record);
  void count_expired(SequenceNumber sequence);
  void raw(BlockReader& reader, std::span<const BlockRange> ranges, SequenceNumber at,
           std::vector<LocatedRun>& out) const;
  void base(BlockReader& reader, std::span<const BlockRange> ranges, std::uint64_t after,
            std::vector<LocatedRun>& out) const;
  void base_of_part(BlockReader& reader, std::span<const BlockRange> ranges, std::uint64_t after,
                    std::vector<LocatedRun>& out) const;

  [[nodiscard]] std::vector<BlockRange> take_kept(BlockReader& reader,
                                                  std::span<const BlockRange> ranges,
                                                  SequenceNumber at,
                                                  std::vector<LocatedRun>& out) const;
  void take_kept_part(BlockReader& reader, std::span<const BlockRange> ranges, SequenceNumber at,
                      std::vector<LocatedRun>& out, std::vector<BlockRange>& left) const;
  Bosc& store_;
  const VolumeId volume_;
  Floor writes_given_up_;  // by sequence number
  Floor bases_given_up_;   // by ordinal
  std::unique_ptr<BTree> tl_tree_;
  std::unique_ptr<BTree> lt_tree_;
  std::unique_ptr<BTree> bt_tree_;
  std::unique_ptr<BTree> kept_tree_;
  std::unique_ptr<TlIndex> tl_;
  std::unique_ptr<LtIndex> lt_;
  std::unique_ptr<LtIndex> bt_;
  std::unique_ptr<KeptIndex> kept_index_;
  std::vector<Rollback> rollbacks_;  // by sequence number
  std::vector<Logged> inserted_;     // and not in the trees yet
  RecentWrites recent_;
  LtIndex::Batch batch_;                 // of LT
  LtIndex::Batch base_batch_;            // of BT
  std::uint64_t last_ordinal_ = 0;       // of what was inserted into LT since the start
  std::uint64_t last_base_ordinal_ = 0;  // and into BT
  IndexMoment newest_;
  IndexMoment horizon_;
  std::vector<KeptMoment> kept_;  // before it
  SequenceNumber stored_horizon_;
  SequenceNumber forgetting_;
  std::uint64_t forgetting_bases_ = 0;
  std::uint64_t expired_ = 0;  // versions, since the last sweep
  std::uint64_t sweeps_seen_ = 0;
  IndexMoment floor_;  // the horizon, or the last write that is given up: the later one
  DurationHistogram lookups_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::index

#include "index/stored_index.h"

#include <algorithm>
#include <array>
#include <utility>

#include "index/merged_extents.h"
#include "index/record_entries.h"
#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::index {
namespace {

using logging::Record;
using logging::RecordType;

constexpr std::size_t kInsertedMax = 64;
// So many versions, and so large a share of those in the index, are given up: a sweep is worth it.
constexpr std::uint64_t kExpiredFew = 16'384;
constexpr std::uint64_t kExpiredShare = 3;

FunctionId function_of(VolumeId volume, std::uint32_t which) {
  return {volume.value * StoredIndex::kFunctions + which};
}

}  // namespace

bool StoredIndex::Floor::is_expired(IndexKey key, std::span<const std::byte>) const {
  return key.low <= value();
}

Result<std::unique_ptr<StoredIndex>> StoredIndex::open(Bosc& store, VolumeId volume) {
  std::unique_ptr<StoredIndex> index(new StoredIndex(store, volume));
  auto tl = BTree::open(store, TlIndex::tree_options(function_of(volume, 1)));
  if (!tl) return tl.error();
  auto lt =
      BTree::open(store, LtIndex::tree_options(function_of(volume, 2), &index->writes_given_up_));
  if (!lt) return lt.error();
  auto bt =
      BTree::open(store, LtIndex::tree_options(function_of(volume, 3), &index->bases_given_up_));
  if (!bt) return bt.error();
  auto kept =
      BTree::open(store, KeptIndex::tree_options(function_of(volume, 0), &index->bases_given_up_));
  if (!kept) return kept.error();
  index->tl_tree_ = *std::move(tl);
  index->lt_tree_ = *std::move(lt);
  index->bt_tree_ = *std::move(bt);
  index->kept_tree_ = *std::move(kept);
  index->tl_ = std::make_unique<TlIndex>(*index->tl_tree_);
  index->lt_ = std::make_unique<LtIndex>(*index->lt_tree_);
  index->bt_ = std::make_unique<LtIndex>(*index->bt_tree_);
  index->kept_index_ = std::make_unique<KeptIndex>(*index->kept_tree_);
  return index;
}

void StoredIndex::learn(UniqueFunction<void(Result<void>)> done) {
  index::consult(
      store_,
      [this](BlockReader& reader) {
        lt_->learn(reader);
        bt_->learn(reader);
        kept_index_->learn(reader);
        rollbacks_.clear();
        lt_tree_->walk(reader, {{kRollbackKey, writes_given_up_.value() + 1}, IndexKey::max()},
                       [this](IndexKey key, BTree::Value value) {
                         rollbacks_.push_back({{key.low}, {load_le<std::uint64_t>(value.data())}});
                         return true;
                       });
        newest_ = {};
        const std::array<KeyRange, 1> whole{KeyRange{{}, IndexKey::max()}};
        tl_tree_->find_last_each(reader, whole, [this](std::size_t, IndexKey key, BTree::Value) {
          newest_ = {{key.high}, {key.low}};
        });
      },
      std::move(done));
}

StoredIndex::~StoredIndex() { *alive_ = false; }

void StoredIndex::consult(UniqueFunction<void(const VersionLookup&)> compute,
                          UniqueFunction<void(Result<void>)> done) {
  const auto begun = store_.executor().monotonic_time();
  index::consult(
      store_,
      [this, compute = std::move(compute)](BlockReader& reader) mutable {
        compute(VersionLookup(*this, reader));
      },
      [this, begun, done = std::move(done)](Result<void> looked) mutable {
        const auto took = store_.executor().monotonic_time() - begun;
        lookups_.observe(static_cast<std::uint64_t>(took.count()));
        done(std::move(looked));
      });
}

std::uint64_t StoredIndex::pending_updates() const {
  return tl_tree_->pending_count() + lt_tree_->pending_count() + bt_tree_->pending_count() +
         kept_tree_->pending_count();
}

void StoredIndex::insert(const Record& record, const logging::LogLocation& location) {
  // What comes again after a restart is there, or takes its own place.
  if (has_versions(record) && record.sequence > newest_.sequence)
    newest_ = {record.sequence, record.time};
  remember_rollback(record);
  if (inserted_.empty()) {
    store_.executor().defer([this, alive = alive_] {
      if (*alive) flush();
    });
  }
  inserted_.push_back({record, location});
  if (inserted_.size() == kInsertedMax) flush();
}

void StoredIndex::flush() {
  if (inserted_.empty()) return;
  store_.others_write();  // what was inserted was written to the log's disk, and more will be
  insert_all(inserted_);
  inserted_.clear();
}

std::array<FunctionId, 4> StoredIndex::functions_of(VolumeId volume) {
  return {function_of(volume, 0), function_of(volume, 1), function_of(volume, 2),
          function_of(volume, 3)};
}

void StoredIndex::insert_all(std::span<const Logged> records) {
  for (const auto& [record, location] : records) insert_one(record, location);
  lt_->insert(batch_);
  bt_->insert(base_batch_);
}

void StoredIndex::insert_one(const Record& record, const logging::LogLocation& location) {
  if (has_base(record)) {
    last_base_ordinal_ = record.ordinal;
    return add_base(record, location, base_batch_);
  }
  if (is_for_kept_moments(record)) {
    last_base_ordinal_ = record.ordinal;
    return kept_index_->insert(kept_run_of(record, location));
  }
  if (!has_versions(record)) return;
  last_ordinal_ = record.ordinal;
  if (record.sequence > newest_.sequence) newest_ = {record.sequence, record.time};
  tl_->insert(indexed_write_of(record, location), record.ordinal);
  add_versions(record, location, batch_);
  if (record.type != RecordType::kRollback) recent_.add(record.extent, record.sequence);
  remember_rollback(record);
}

// After a restart an earlier one may come behind later ones: those were committed, it was not.
void StoredIndex::remember_rollback(const Record& record) {
  if (record.type != RecordType::kRollback) return;
  const auto at = std::ranges::lower_bound(rollbacks_, record.sequence, {}, &Rollback::sequence);
  if (at != rollbacks_.end() && at->sequence == record.sequence) return;
  rollbacks_.insert(at, {record.sequence, record.target_sequence});
}

std::optional<LeafRepair> StoredIndex::begin_repair(BlockAddress address,
                                                    std::uint64_t decided_through) {
  flush();
  using Tree = LeafRepair::Tree;
  for (const auto& [tree, name] : {std::pair{tl_tree_.get(), Tree::kTl},
                                   {lt_tree_.get(), Tree::kLt},
                                   {bt_tree_.get(), Tree::kBt},
                                   {kept_tree_.get(), Tree::kKept}}) {
    if (const std::optional<KeyRange> range = tree->begin_rebuild(address)) {
      const bool of_bases = name == Tree::kBt || name == Tree::kKept;
      const std::uint64_t inserted = of_bases ? last_base_ordinal_ : last_ordinal_;
      return LeafRepair{volume_, name, *range, std::max(inserted, decided_through)};
    }
  }
  return std::nullopt;
}

void StoredIndex::restore(const LeafRepair& repair, const Record& record,
                          const logging::LogLocation& location) {
  if (record.ordinal > repair.through) return;
  const KeyRange& range = repair.range;
  switch (repair.tree) {
    case LeafRepair::Tree::kTl:
      if (has_versions(record)) tl_->restore(indexed_write_of(record, location), range);
      return;
    case LeafRepair::Tree::kLt: {
      LtIndex::Batch batch;
      if (has_versions(record)) add_versions(record, location, batch);
      return lt_->restore(batch, range);
    }
    case LeafRepair::Tree::kBt: {
      LtIndex::Batch batch;
      if (has_base(record)) add_base(record, location, batch);
      return bt_->restore(batch, range);
    }
    case LeafRepair::Tree::kKept:
      if (is_for_kept_moments(record)) {
        kept_index_->restore(kept_run_of(record, location), range);
      }
      return;
  }
}

void StoredIndex::end_repair(const LeafRepair& repair) {
  switch (repair.tree) {
    case LeafRepair::Tree::kTl: return tl_tree_->end_rebuild(repair.range);
    case LeafRepair::Tree::kLt: return lt_tree_->end_rebuild(repair.range);
    case LeafRepair::Tree::kBt: return bt_tree_->end_rebuild(repair.range);
    case LeafRepair::Tree::kKept: return kept_tree_->end_rebuild(repair.range);
  }
}

void StoredIndex::changed(SequenceNumber from, SequenceNumber to,
                          UniqueFunction<void(Result<std::vector<BlockRange>>)> done) {
  // A rollback moves what was written after its target, which may reach back before `from`; one
  // inside that longer stretch reaches back further still.
  SequenceNumber start = from;
  for (bool again = true; again;) {
    again = false;
    for (const Rollback& rollback : rollbacks_) {
      if (rollback.sequence > start && rollback.sequence <= to && rollback.target < start) {
        start = rollback.target;
        again = true;
      }
    }
  }
  // What a kept moment shows need not be in that stretch any longer.
  std::vector<SequenceNumber> kept;
  if (is_kept(from)) kept.push_back(from);
  for (const Rollback& rollback : rollbacks_) {
    const bool within = rollback.sequence > start && rollback.sequence <= to;
    if (within && is_kept(rollback.target)) kept.push_back(rollback.target);
  }
  auto extents = std::make_shared<MergedExtents>();
  for_each(
      start, to,
      [extents](const IndexedWrite& write) {
        if (write.type != RecordType::kRollback) extents->add(write.extent);
        return true;
      },
      [this, kept = std::move(kept), extents,
       done = std::move(done)](const Result<void>& result) mutable {
        if (!result) return done(result.error());
        add_kept_extents(std::move(kept), extents->take(), std::move(done));
      });
}

std::vector<SequenceNumber> StoredIndex::kept_targets(SequenceNumber through) const {
  std::vector<SequenceNumber> targets;
  for (const Rollback& rollback : rollbacks_) {
    if (rollback.sequence <= through && is_kept(rollback.target))
      targets.push_back(rollback.target);
  }
  return targets;
}

void StoredIndex::add_kept_extents(std::vector<SequenceNumber> moments,
                                   std::vector<BlockRange> extents,
                                   UniqueFunction<void(Result<std::vector<BlockRange>>)> done) {
  if (moments.empty()) return done(merge_extents(std::move(extents)));
  flush();
  kept_index_->shown_at(std::move(moments), bases_given_up_.value(),
                        [extents = std::move(extents), done = std::move(done)](
                            const Result<std::vector<BlockRange>>& shown) mutable {
                          if (!shown) return done(shown.error());
                          extents.insert(extents.end(), shown->begin(), shown->end());
                          done(merge_extents(std::move(extents)));
                        });
}

void StoredIndex::for_each(SequenceNumber from, SequenceNumber to,
                           UniqueFunction<bool(const IndexedWrite&)> visit,
                           UniqueFunction<void(Result<void>)> done) {
  flush();
  const SequenceNumber after{std::max(from.value, writes_given_up_.value())};
  tl_->for_each(after, to, std::move(visit), std::move(done));
}

void StoredIndex::moment_at(VersionTime time, Found found) {
  flush();
  tl_->find(time, [this, time,
                   found = std::move(found)](Result<std::optional<IndexMoment>> last) mutable {
    if (!last) return found(last.error());
    const IndexMoment moment = last->value_or(IndexMoment{});
    if (floor_.time <= time && floor_.sequence > moment.sequence) return found(floor_);
    const auto kept = std::ranges::upper_bound(
        kept_, time, {}, [](const KeptMoment& each) { return each.moment.time; });
    const bool same = kept != kept_.begin() && time <= std::prev(kept)->through;
    found(same && std::prev(kept)->moment.sequence > moment.sequence ? std::prev(kept)->moment
                                                                     : moment);
  });
}

void StoredIndex::moment_of(SequenceNumber sequence, Found found) {
  flush();
  tl_->find(sequence, [this, sequence,
                       found = std::move(found)](Result<std::optional<IndexMoment>> last) mutable {
    if (!last) return found(last.error());
    const IndexMoment moment = last->value_or(IndexMoment{});
    if (floor_.sequence <= sequence && floor_.sequence > moment.sequence) return found(floor_);
    const auto kept = std::ranges::lower_bound(
        kept_, sequence, {}, [](const KeptMoment& each) { return each.moment.sequence; });
    const bool same = kept != kept_.end() && kept->moment.sequence == sequence;
    found(same ? kept->moment : moment);
  });
}

// What is of no use any more goes with the next sweep; who looks things up passes it until then.
void StoredIndex::count_expired(SequenceNumber sequence) {
  const std::uint64_t sweeps = store_.statistics().sweeps;
  if (std::exchange(sweeps_seen_, sweeps) != sweeps) expired_ = 0;
  if (sequence.value > writes_given_up_.value()) {
    expired_ += sequence.value - writes_given_up_.value();
  }
  if (expired_ < kExpiredFew || expired_ < lt_tree_->effective_count() / kExpiredShare) return;
  expired_ = 0;
  store_.sweep_soon();
}

void StoredIndex::forget_through(SequenceNumber sequence, std::uint64_t ordinal) {
  count_expired(sequence);
  writes_given_up_.raise(sequence.value);
  bases_given_up_.raise(ordinal);
  tl_->drop_through(sequence);
  recent_.forget_through(sequence);
  std::erase_if(rollbacks_, [&](const Rollback& r) { return r.sequence <= sequence; });
}

// A rollback since may show what is older.
RecentWrites::Periods StoredIndex::written_within(SequenceNumber after,
                                                  SequenceNumber through) const {
  return last_rollback() > after ? RecentWrites::Periods{} : recent_.within(after, through);
}

void StoredIndex::set_horizon(IndexMoment horizon) {
  if (horizon.sequence >= horizon_.sequence) horizon_ = horizon;
  if (horizon.sequence > floor_.sequence) floor_ = horizon;
}

void StoredIndex::set_stored_horizon(SequenceNumber stored) {
  stored_horizon_ = std::max(stored_horizon_, stored);
}

void StoredIndex::begin_forgetting(SequenceNumber sequence, std::uint64_t ordinal) {
  forgetting_ = std::max(forgetting_, sequence);
  forgetting_bases_ = std::max(forgetting_bases_, ordinal);
}

bool StoredIndex::is_kept(SequenceNumber moment) const {
  return std::ranges::binary_search(kept_, moment, {},
                                    [](const KeptMoment& each) { return each.moment.sequence; });
}

SequenceNumber StoredIndex::base_matters_as_of() const {
  if (!kept_.empty()) return {};
  const bool back = !rollbacks_.empty() && rollbacks_.back().sequence > stored_horizon_;
  return back ? SequenceNumber{} : stored_horizon_;
}

SequenceNumber StoredIndex::end() const {
  const SequenceNumber last = newest().sequence;
  if (last.value == 0 || last != last_rollback()) return last;
  return rollback_targets(SequenceNumber{last.value - 1}).back();
}

std::vector<SequenceNumber> StoredIndex::rollback_targets(SequenceNumber after) const {
  std::vector<SequenceNumber> targets;
  for (const Rollback& rollback : rollbacks_) {
    if (rollback.sequence > after) targets.push_back(rollback.target);
  }
  return targets;
}

IndexMoment StoredIndex::newest() const {
  return newest_.sequence < floor_.sequence ? floor_ : newest_;
}

}  // namespace mariner::index

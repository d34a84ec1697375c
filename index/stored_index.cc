#include "index/stored_index.h"

#include <algorithm>
#include <array>
#include <utility>

#include "index/record_entries.h"
#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::index {
namespace {

using logging::Record;
using logging::RecordType;

// How much of the base is put together in one go.
constexpr std::uint64_t kBasePartBlocks = 4096;
constexpr std::size_t kInsertedMax = 64;
// So many versions, and so large a share of those in the index, are given up: a sweep is worth it.
constexpr std::uint64_t kExpiredFew = 16'384;
constexpr std::uint64_t kExpiredShare = 3;
// For each a block is located twice.
constexpr std::size_t kRollbacksAtOnce = 64;

FunctionId function_of(VolumeId volume, std::uint32_t which) {
  return {volume.value * StoredIndex::kFunctions + which};
}

LocatedRun located(const RunVersion& version) {
  LocatedRun run;
  run.range = version.range;
  run.sequence = version.sequence;
  run.location = version.place.location;
  run.payload_block = version.place.payload_block;
  switch (version.place.kind) {
    case PlacedRun::Kind::kZero: run.source = LocatedRun::Source::kZero; break;
    case PlacedRun::Kind::kBase: run.source = LocatedRun::Source::kBase; break;
    case PlacedRun::Kind::kRepeated: run.repeated = true; [[fallthrough]];
    case PlacedRun::Kind::kReplacing:
    case PlacedRun::Kind::kLog: run.source = LocatedRun::Source::kLog; break;
  }
  if (run.source != LocatedRun::Source::kLog) {
    run.location = {};
    run.payload_block = 0;
  }
  return run;
}

// Calls use(part) for what is put together in one go of `ranges`, which ascend.
template <typename Use>
void in_parts(std::span<const BlockRange> ranges, Use use) {
  std::vector<BlockRange> part;
  for (BlockRange left : ranges) {
    while (!left.empty()) {
      const Lbn part_end =
          (part.empty() ? left.first : part.front().first) + BlockCount{kBasePartBlocks};
      const BlockRange here = BlockRange::between(left.first, std::min(left.end(), part_end));
      if (!here.empty()) part.push_back(here);
      left = BlockRange::between(std::max(here.end(), left.first), left.end());
      if (left.empty()) break;
      use(std::span<const BlockRange>(part));
      part.clear();
    }
  }
  if (!part.empty()) use(std::span<const BlockRange>(part));
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

// The newest version of each block, and the base where there is none; rollbacks apart.
void StoredIndex::raw(BlockReader& reader, std::span<const BlockRange> ranges, SequenceNumber at,
                      std::vector<LocatedRun>& out) const {
  const SequenceNumber given_up{writes_given_up_.value()};
  const std::vector<RunVersion> versions = lt_->newest(reader, ranges, {given_up, at});
  std::vector<BlockRange> gaps;
  auto version = versions.begin();
  for (const BlockRange& range : ranges) {
    for (Lbn next = range.first; next < range.end();) {
      // (One may go on from range to range.)
      if (version == versions.end() || version->range.first >= range.end()) {
        gaps.push_back(BlockRange::between(next, range.end()));
        break;
      }
      if (version->range.first > next) {
        gaps.push_back(BlockRange::between(next, version->range.first));
      }
      next = std::min(version->range.end(), range.end());
      if (version->range.end() == next) ++version;
    }
  }
  std::vector<LocatedRun> bases;
  base(reader, gaps, bases_given_up_.value(), bases);
  auto from_base = bases.begin();
  for (const RunVersion& each : versions) {
    while (from_base != bases.end() && from_base->range.first < each.range.first) {
      append_run(*from_base++, out);
    }
    append_run(located(each), out);
  }
  for (; from_base != bases.end(); ++from_base) append_run(*from_base, out);
}

// Of `ranges`, which ascend and have gaps between them.
void StoredIndex::base(BlockReader& reader, std::span<const BlockRange> ranges, std::uint64_t after,
                       std::vector<LocatedRun>& out) const {
  if (bt_->empty()) {
    for (const BlockRange& range : ranges) append_run({.range = range}, out);
    return;
  }
  in_parts(ranges,
           [&](std::span<const BlockRange> part) { base_of_part(reader, part, after, out); });
}

// Before-images in the order of their records: the first one of a block stays, until one that
// replaces it or a rebase.
void StoredIndex::base_of_part(BlockReader& reader, std::span<const BlockRange> ranges,
                               std::uint64_t after, std::vector<LocatedRun>& out) const {
  const BlockRange part = BlockRange::between(ranges.front().first, ranges.back().end());
  std::vector<const RunVersion*> of(part.count.value, nullptr);
  const std::vector<RunVersion> all = bt_->all(reader, ranges, {{after}, {UINT64_MAX}});
  for (const RunVersion& version : all) {
    const std::uint64_t first = (version.range.first - part.first).value;
    for (std::uint64_t i = first; i < first + version.range.count.value; ++i) {
      switch (version.place.kind) {
        case PlacedRun::Kind::kBase: of[i] = nullptr; break;
        case PlacedRun::Kind::kReplacing: of[i] = &version; break;
        default:
          if (of[i] == nullptr) of[i] = &version;
      }
    }
  }
  for (const BlockRange& range : ranges) {
    for (BlockRange block{range.first, {1}}; block.first < range.end();
         block.first = block.first + block.count) {
      const RunVersion* const version = of[(block.first - part.first).value];
      if (version == nullptr) {
        append_run({.range = block}, out);
        continue;
      }
      const std::uint64_t skipped = (block.first - version->range.first).value;
      LocatedRun run = located({block, {}, version->place.advanced(skipped)});
      run.base_ordinal = version->sequence.value;
      append_run(run, out);
    }
  }
}

// Parts that a rollback sends back to its target are looked up there, again and again where
// rollbacks follow one another.
std::vector<LocatedRun> StoredIndex::locate(BlockReader& reader, std::span<const BlockRange> ranges,
                                            SequenceNumber at) const {
  std::vector<LocatedRun> found;
  std::vector<LocatedRun> runs;
  std::vector<BlockRange> left(ranges.begin(), ranges.end());
  bool in_order = rollbacks_.empty();
  while (!left.empty()) {
    if (is_kept(at) && !kept_index_->empty()) {
      in_order = false;
      left = take_kept(reader, left, at, found);
    }
    const auto newer = std::ranges::upper_bound(rollbacks_, at, {}, &Rollback::sequence);
    if (newer == rollbacks_.begin()) {
      raw(reader, left, at, found);
      break;
    }
    const Rollback& rollback = *std::prev(newer);
    runs.clear();
    raw(reader, left, at, runs);
    left.clear();
    for (const LocatedRun& run : runs) {
      if (run.sequence > rollback.sequence) {
        found.push_back(run);
      } else {
        left.push_back(run.range);
      }
    }
    at = rollback.target;
  }
  if (in_order) return found;
  std::ranges::sort(found, {}, [](const LocatedRun& run) { return run.range.first; });
  std::vector<LocatedRun> out;
  for (const LocatedRun& run : found) append_run(run, out);
  return out;
}

// What a kept moment shows of what was logged again for such ones; the rest of `ranges` is where it
// was.
std::vector<BlockRange> StoredIndex::take_kept(BlockReader& reader,
                                               std::span<const BlockRange> ranges,
                                               SequenceNumber at,
                                               std::vector<LocatedRun>& out) const {
  std::vector<BlockRange> left;
  in_parts(ranges,
           [&](std::span<const BlockRange> part) { take_kept_part(reader, part, at, out, left); });
  return left;
}

void StoredIndex::take_kept_part(BlockReader& reader, std::span<const BlockRange> ranges,
                                 SequenceNumber at, std::vector<LocatedRun>& out,
                                 std::vector<BlockRange>& left) const {
  const Lbn first = ranges.front().first;
  std::vector<const KeptRun*> of((ranges.back().end() - first).value, nullptr);
  const std::vector<KeptRun> all = kept_index_->all(reader, ranges, bases_given_up_.value());
  for (const KeptRun& run : all) {
    if (at < run.from || at > run.through) continue;
    std::fill_n(of.begin() + static_cast<std::ptrdiff_t>((run.range.first - first).value),
                run.range.count.value, &run);
  }
  for (const BlockRange& range : ranges) {
    for (BlockRange block{range.first, {1}}; block.first < range.end();
         block.first = block.first + block.count) {
      const KeptRun* const run = of[(block.first - first).value];
      if (run == nullptr) {
        if (left.empty() || left.back().end() != block.first) {
          left.push_back(block);
        } else {
          ++left.back().count.value;
        }
        continue;
      }
      const std::uint64_t skipped = (block.first - run->range.first).value;
      LocatedRun part = located({block, {}, run->place.advanced(skipped)});
      part.base_ordinal = run->ordinal;
      part.for_kept = true;
      append_run(part, out);
    }
  }
}

std::vector<LocatedRun> StoredIndex::locate(BlockReader& reader, BlockRange range,
                                            SequenceNumber at) const {
  return locate(reader, std::span(&range, range.empty() ? 0 : 1), at);
}

std::vector<SequenceNumber> StoredIndex::versions(BlockReader& reader, Lbn block,
                                                  SequenceNumber from, SequenceNumber to) const {
  std::vector<SequenceNumber> out;
  const SequenceNumber after{std::max(from.value, writes_given_up_.value())};
  for (const RunVersion& version : lt_->versions(reader, block, {after, to})) {
    out.push_back(version.sequence);
  }
  return out;
}

bool StoredIndex::is_changed_by(BlockReader& reader, const Rollback& rollback, Lbn block) const {
  const BlockRange range{block, {1}};
  const LocatedRun before = locate(reader, range, {rollback.sequence.value - 1}).front();
  const LocatedRun after = locate(reader, range, rollback.sequence).front();
  return before.source != after.source || before.sequence != after.sequence ||
         before.location != after.location;
}

VersionLookup::Changes StoredIndex::changes(BlockReader& reader, Lbn block, SequenceNumber from,
                                            SequenceNumber to, std::size_t most) const {
  VersionLookup::Changes out{{}, to};
  const SequenceNumber after{std::max(from.value, writes_given_up_.value())};
  std::vector<SequenceNumber> numbers;
  for (const RunVersion& version : lt_->versions(reader, block, {after, to}, most)) {
    numbers.push_back(version.sequence);
  }
  if (numbers.size() == most && most > 0) out.through = numbers.back();
  std::size_t looked_at = 0;
  for (auto each = std::ranges::upper_bound(rollbacks_, after, {}, &Rollback::sequence);
       each != rollbacks_.end() && each->sequence <= out.through; ++each) {
    if (++looked_at > kRollbacksAtOnce) {
      out.through = {each->sequence.value - 1};
      break;
    }
    if (is_changed_by(reader, *each, block)) numbers.push_back(each->sequence);
  }
  std::erase_if(numbers, [&](SequenceNumber each) { return each > out.through; });
  std::ranges::sort(numbers);
  if (numbers.size() > most) {
    numbers.resize(most);
    out.through = numbers.empty() ? after : numbers.back();
  }
  std::vector<KeyRange> keys;
  for (const SequenceNumber number : numbers) {
    keys.push_back({{number.value, 0}, {number.value, UINT64_MAX}});
    out.list.push_back({number, {}});
  }
  tl_tree_->find_last_each(reader, keys, [&](std::size_t i, IndexKey key, BTree::Value) {
    out.list[i].time = {key.low};
  });
  return out;
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
  auto extents = std::make_shared<std::vector<BlockRange>>();
  for_each(
      start, to,
      [extents](const IndexedWrite& write) {
        if (write.type != RecordType::kRollback) extents->push_back(write.extent);
        return true;
      },
      [this, kept = std::move(kept), extents,
       done = std::move(done)](const Result<void>& result) mutable {
        if (!result) return done(result.error());
        add_kept_extents(std::move(kept), std::move(*extents), std::move(done));
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
  auto shown = std::make_shared<std::vector<BlockRange>>();
  index::consult(
      store_,
      [this, moments = std::move(moments), shown](BlockReader& reader) {
        *shown = kept_index_->shown_at(reader, moments, bases_given_up_.value());
      },
      [extents = std::move(extents), shown,
       done = std::move(done)](const Result<void>& looked) mutable {
        if (!looked) return done(looked.error());
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
  std::erase_if(rollbacks_, [&](const Rollback& r) { return r.sequence <= sequence; });
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

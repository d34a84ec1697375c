// What a stored index knows of blocks at a moment: versions, bases, and what was written again for
// kept moments. See stored_index.h.
#include <algorithm>
#include <utility>

#include "index/stored_index.h"

namespace mariner::index {
namespace {

// How much of the base is put together in one go.
constexpr std::uint64_t kBasePartBlocks = 4096;
// For each a block is located twice.
constexpr std::size_t kRollbacksAtOnce = 64;

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

}  // namespace mariner::index

#include "index/lt_index.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::index {
namespace {

// What is looked up in one go: eight segments, which one run of each larger level contains.
constexpr unsigned kPartLevel = kSegmentLevel + 1;
constexpr std::uint64_t kPartBlocks = std::uint64_t{1} << (kPartLevel * kRunFanoutBits);

struct Found {
  AlignedRun run;
  SequenceNumber sequence;
  PlacedRun place;
};

// The runs that a write was cut into are put together again.
void append(const RunVersion& version, std::vector<RunVersion>& out) {
  if (!out.empty()) {
    RunVersion& last = out.back();
    if (last.range.end() == version.range.first && last.sequence == version.sequence &&
        last.place.advanced(last.range.count.value) == version.place) {
      last.range.count = last.range.count + version.range.count;
      return;
    }
  }
  out.push_back(version);
}

BlockRange hull_of(std::span<const BlockRange> ranges) {
  return BlockRange::between(ranges.front().first, ranges.back().end());
}

// Of each block of `ranges` the newest of what was found: older ones first, so that it stays on
// top.
void paint(std::vector<Found>& found, std::span<const BlockRange> ranges,
           std::vector<RunVersion>& out) {
  if (found.empty()) return;
  std::ranges::sort(found, {}, &Found::sequence);
  constexpr std::uint32_t kNothing = UINT32_MAX;
  const BlockRange hull = hull_of(ranges);
  std::vector<std::uint32_t> top(hull.count.value, kNothing);
  for (std::uint32_t i = 0; i < found.size(); ++i) {
    const BlockRange covered = found[i].run.blocks().intersect(hull);
    const auto first = static_cast<std::ptrdiff_t>((covered.first - hull.first).value);
    std::fill_n(top.begin() + first, covered.count.value, i);
  }
  for (const BlockRange& range : ranges) {
    const std::uint64_t end = (range.end() - hull.first).value;
    for (std::uint64_t from = (range.first - hull.first).value; from < end;) {
      std::uint64_t to = from + 1;
      while (to < end && top[to] == top[from]) ++to;
      if (top[from] != kNothing) {
        const Found& version = found[top[from]];
        const BlockRange part{hull.first + BlockCount{from}, BlockCount{to - from}};
        const std::uint64_t skipped = (part.first - version.run.blocks().first).value;
        append({part, version.sequence, version.place.advanced(skipped)}, out);
      }
      from = to;
    }
  }
}

}  // namespace

void pack_placed_run(const PlacedRun& run, std::span<std::byte, kPlacedRunBytes> to) {
  const logging::LogLocation& at = run.location;
  CHECK(at.batch_sector < std::uint64_t{1} << 48 && at.payload_offset < 1u << 24 &&
        run.payload_block < 1u << 16);
  store_le<std::uint64_t>(to.data(), at.batch_sector | (std::uint64_t{at.disk} << 48) |
                                         (std::uint64_t{at.header_sectors} << 56));
  store_le<std::uint32_t>(to.data() + 8,
                          at.payload_offset | (static_cast<std::uint32_t>(run.kind) << 24));
  store_le<std::uint16_t>(to.data() + 12, at.slot);
  store_le<std::uint16_t>(to.data() + 14, static_cast<std::uint16_t>(run.payload_block));
}

PlacedRun unpack_placed_run(std::span<const std::byte> from) {
  CHECK(from.size() == kPlacedRunBytes);
  const auto first = load_le<std::uint64_t>(from.data());
  const auto second = load_le<std::uint32_t>(from.data() + 8);
  PlacedRun run;
  run.kind = static_cast<PlacedRun::Kind>(second >> 24 & 7);
  run.location.batch_sector = first & ((std::uint64_t{1} << 48) - 1);
  run.location.disk = static_cast<std::uint8_t>(first >> 48);
  run.location.header_sectors = static_cast<std::uint8_t>(first >> 56);
  run.location.payload_offset = second & ((1u << 24) - 1);
  run.location.slot = load_le<std::uint16_t>(from.data() + 12);
  run.payload_block = load_le<std::uint16_t>(from.data() + 14);
  return run;
}

BTreeOptions LtIndex::tree_options(FunctionId id, const RecordFilter* filter) {
  // What a volume is filled with ascends; what replaces it later comes in between.
  return {.id = id,
          .value_bytes = kPlacedRunBytes,
          .ascends_within_high = true,
          .ascending_fill = 75,
          .filter = filter};
}

void LtIndex::Batch::add(BlockRange range, const PlacedRun& place, SequenceNumber sequence,
                         std::uint64_t number) {
  cut_extent(range, [&](AlignedRun run) {
    Entry& entry = entries_.emplace_back(Entry{{run.key(), sequence.value}, number, run.level, {}});
    pack_placed_run(place.advanced((run.blocks().first - range.first).value), entry.value);
  });
}

void LtIndex::insert(Batch& batch) {
  std::array<BTree::Insert, LeafMap::kFoundAtOnceMax> inserts;
  std::size_t count = 0;
  const auto insert_them = [&] {
    tree_.insert_all(std::span(inserts).first(std::exchange(count, 0)));
  };
  for (const Batch::Entry& entry : batch.entries()) {
    levels_.add(entry.level);
    inserts[count++] = {entry.key, entry.value, entry.number};
    if (count == inserts.size()) insert_them();
  }
  insert_them();
  batch.clear();
}

void LtIndex::restore(const Batch& batch, KeyRange range) {
  for (const Batch::Entry& entry : batch.entries()) {
    if (!range.contains(entry.key)) continue;
    levels_.add(entry.level);
    tree_.restore(entry.key, entry.value);
  }
}

void LtIndex::insert(BlockRange range, const PlacedRun& place, SequenceNumber sequence,
                     std::uint64_t number) {
  Batch batch;
  batch.add(range, place, sequence, number);
  insert(batch);
}

std::vector<RunVersion> LtIndex::newest(BlockReader& reader, std::span<const BlockRange> ranges,
                                        Moments moments) const {
  std::vector<RunVersion> out;
  if (moments.at <= moments.after) return out;
  std::vector<BlockRange> part;  // what lies in one
  for (const BlockRange& range : ranges) {
    BlockRange left = range.intersect({Lbn{0}, BlockCount{kIndexedBlocksMax}});
    while (!left.empty()) {
      const std::uint64_t number = left.first.value / kPartBlocks;
      if (!part.empty() && part.front().first.value / kPartBlocks != number) {
        newest_of_part(reader, part, moments, out);
        part.clear();
      }
      const Lbn part_end{(number + 1) * kPartBlocks};
      part.push_back(BlockRange::between(left.first, std::min(part_end, left.end())));
      left = BlockRange::between(part_end, left.end());
      if (left.empty() || left.count.value <= kPartBlocks) continue;
      // A long range may for long have nothing but runs that are larger than a part, or nothing.
      const IndexKey from{first_key_of_segment(left.first.value >> kSegmentBits), 0};
      const std::optional<IndexKey> next =
          tree_.first_key(reader, {from, IndexKey{kFirstLargeKey, 0}.before()});
      Lbn stop = left.end();
      if (next) {
        const Lbn segment{segment_of_key(next->high) << kSegmentBits};
        stop = std::min(stop, Lbn{segment.value / kPartBlocks * kPartBlocks});
      }
      if (stop <= left.first) continue;
      if (!levels_.none()) {
        newest_of_part(reader, part, moments, out);
        part.clear();
        newest_of_large(reader, BlockRange::between(left.first, stop), moments, out);
      }
      left = BlockRange::between(stop, left.end());
    }
  }
  if (!part.empty()) newest_of_part(reader, part, moments, out);
  return out;
}

void LtIndex::newest_of_part(BlockReader& reader, std::span<const BlockRange> ranges,
                             Moments moments, std::vector<RunVersion>& out) const {
  std::vector<AlignedRun> runs;
  std::vector<KeyRange> keys;
  const auto add = [&](AlignedRun run) {
    runs.push_back(run);
    keys.push_back({{run.key(), 0}, {run.key(), moments.at.value}});
  };
  // In the order of keys: segment by segment, in each level by level; then the larger ones.
  by_segment(ranges, [&](BlockRange segments, std::span<const BlockRange> of_them) {
    for (BlockRange left = segments; !left.empty();
         left = BlockRange::between(left.first + BlockCount{kSegmentBlocks}, left.end())) {
      const BlockRange segment{left.first, {kSegmentBlocks}};
      for (unsigned level = 0; level <= kSegmentLevel; ++level) {
        std::uint64_t next = 0;  // runs below it have been added, or lie in front
        for (const BlockRange& range : of_them) {
          const BlockRange here = range.intersect(segment);
          AlignedRun run = AlignedRun::containing(here.first.value, level);
          run.number = std::max(run.number, next);
          const std::uint64_t end = AlignedRun::containing(here.end().value - 1, level).number + 1;
          for (; run.number < end; ++run.number) add(run);
          next = std::max(next, end);
        }
      }
    }
  });
  for (unsigned level = kSegmentLevel + 1; level < kRunLevels; ++level) {
    if (levels_.has(level)) add(AlignedRun::containing(ranges.front().first.value, level));
  }
  std::vector<Found> found;
  tree_.find_last_each(reader, keys, [&](std::size_t i, IndexKey key, BTree::Value value) {
    if (key.low <= moments.after.value) return;
    found.push_back({runs[i], {key.low}, unpack_placed_run(value)});
  });
  paint(found, ranges, out);
}

// Of a range that begins with a part, and of whose parts only larger runs have versions: so each is
// of one version, and a lookup a part is enough, or fewer.
void LtIndex::newest_of_large(BlockReader& reader, BlockRange range, Moments moments,
                              std::vector<RunVersion>& out) const {
  constexpr std::uint64_t kBlocksAtOnce = 1024 * kPartBlocks;
  const auto parts_of = [](BlockCount blocks) {
    return (blocks.value + kPartBlocks - 1) / kPartBlocks;
  };
  for (BlockRange left = range; !left.empty();) {
    const BlockRange here{left.first, std::min(left.count, BlockCount{kBlocksAtOnce})};
    left = BlockRange::between(here.end(), left.end());
    std::vector<AlignedRun> runs;
    std::vector<KeyRange> keys;
    for (unsigned level = kSegmentLevel + 1; level < kRunLevels; ++level) {
      if (!levels_.has(level)) continue;
      const std::uint64_t last = AlignedRun::containing(here.end().value - 1, level).number;
      for (AlignedRun run = AlignedRun::containing(here.first.value, level); run.number <= last;
           ++run.number) {
        runs.push_back(run);
        keys.push_back({{run.key(), 0}, {run.key(), moments.at.value}});
      }
    }
    std::vector<Found> found;
    tree_.find_last_each(reader, keys, [&](std::size_t i, IndexKey key, BTree::Value value) {
      if (key.low <= moments.after.value) return;
      found.push_back({runs[i], {key.low}, unpack_placed_run(value)});
    });
    std::ranges::sort(found, {}, &Found::sequence);
    std::vector<const Found*> top(parts_of(here.count), nullptr);
    for (const Found& version : found) {
      const BlockRange covered = version.run.blocks().intersect(here);
      const auto first =
          static_cast<std::ptrdiff_t>((covered.first - here.first).value / kPartBlocks);
      std::fill_n(top.begin() + first, parts_of(covered.count), &version);
    }
    for (std::size_t i = 0; i < top.size(); ++i) {
      if (top[i] == nullptr) continue;
      const BlockRange part =
          BlockRange{here.first + BlockCount{i * kPartBlocks}, {kPartBlocks}}.intersect(here);
      const std::uint64_t skipped = (part.first - top[i]->run.blocks().first).value;
      append({part, top[i]->sequence, top[i]->place.advanced(skipped)}, out);
    }
  }
}

std::vector<RunVersion> LtIndex::all(BlockReader& reader, std::span<const BlockRange> ranges,
                                     Moments moments) const {
  std::vector<RunVersion> out;
  if (ranges.empty() || moments.at <= moments.after) return out;
  walk_runs(tree_, reader, ranges, levels_, moments.after.value + 1, moments.at.value,
            [&](IndexKey key, BTree::Value value, BlockRange part, std::uint64_t skipped) {
              out.push_back({part, {key.low}, unpack_placed_run(value).advanced(skipped)});
            });
  std::ranges::stable_sort(out, {}, &RunVersion::sequence);
  return out;
}

std::vector<RunVersion> LtIndex::versions(BlockReader& reader, Lbn block, Moments moments,
                                          std::size_t most) const {
  std::vector<RunVersion> out;
  if (moments.at <= moments.after || most == 0) return out;
  for (unsigned level = 0; level < kRunLevels; ++level) {
    if (level > kSegmentLevel && !levels_.has(level)) continue;
    const AlignedRun run = AlignedRun::containing(block.value, level);
    const std::uint64_t skipped = (block - run.blocks().first).value;
    std::size_t of_level = 0;
    tree_.walk(
        reader, {{run.key(), moments.after.value + 1}, {run.key(), moments.at.value}},
        [&](IndexKey key, BTree::Value value) {
          out.push_back({{block, {1}}, {key.low}, unpack_placed_run(value).advanced(skipped)});
          return ++of_level < most;
        });
  }
  std::ranges::sort(out, {}, &RunVersion::sequence);
  if (out.size() > most) out.resize(most);
  return out;
}

}  // namespace mariner::index

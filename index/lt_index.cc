#include "index/lt_index.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "index/repeater.h"
#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::index {
namespace {

// What is looked up in one go: eight segments, which one run of each larger level contains.
constexpr unsigned kPartLevel = kSegmentLevel + 1;
constexpr std::uint64_t kPartBlocks = std::uint64_t{1} << (kPartLevel * kRunFanoutBits);

KeyRange keys_of(AlignedRun run, SequenceNumber at) {
  return {{run.key(), 0}, {run.key(), at.value}};
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
  run.kind = static_cast<PlacedRun::Kind>(second >> 24 & 3);
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

void LtIndex::learn(UniqueFunction<void(Result<void>)> done) {
  std::vector<KeyRange> levels;
  for (unsigned level = kSegmentLevel + 1; level < kRunLevels; ++level) {
    levels.push_back(
        {{AlignedRun{level, 0}.key(), 0}, IndexKey{AlignedRun{level + 1, 0}.key(), 0}.before()});
  }
  tree_.find_last_each(
      std::move(levels),
      [this](std::size_t i, IndexKey, BTree::Value) {
        large_levels_ |= 1u << (kSegmentLevel + 1 + i);
      },
      std::move(done));
}

void LtIndex::insert(BlockRange range, const PlacedRun& place, SequenceNumber sequence,
                     std::uint64_t number) {
  cut_extent(range, [&](AlignedRun run) {
    if (run.level > kSegmentLevel) large_levels_ |= 1u << run.level;
    std::array<std::byte, kPlacedRunBytes> value{};
    pack_placed_run(place.advanced((run.blocks().first - range.first).value), value);
    tree_.insert({run.key(), sequence.value}, value, number);
  });
}

// A range's way through the index, part by part.
struct LtIndex::Lookup {
  BlockRange left;
  Moments moments;
  std::vector<RunVersion> out;
  UniqueFunction<void(Result<std::vector<RunVersion>>)> done;
  struct Found {
    AlignedRun run;
    std::uint64_t sequence = 0;
    PlacedRun place;
  };
  std::vector<AlignedRun> runs;  // that are looked up
  std::vector<Found> found;
  bool skipped = false;  // what is empty at the front of `left`
  Repeater repeater;

  // What was found in `part` goes to the end of `out`.
  void paint(BlockRange part);
  void append(const RunVersion& version);
};

// The runs that a write was cut into are put together again.
void LtIndex::Lookup::append(const RunVersion& version) {
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

// Older ones first, so that the newest stays on top.
void LtIndex::Lookup::paint(BlockRange part) {
  std::ranges::sort(found, {}, &Found::sequence);
  constexpr std::uint32_t kNothing = UINT32_MAX;
  std::vector<std::uint32_t> top(part.count.value, kNothing);
  for (std::uint32_t i = 0; i < found.size(); ++i) {
    const BlockRange covered = found[i].run.blocks().intersect(part);
    const auto first = static_cast<std::ptrdiff_t>((covered.first - part.first).value);
    std::fill_n(top.begin() + first, covered.count.value, i);
  }
  for (std::size_t from = 0; from < top.size();) {
    std::size_t to = from + 1;
    while (to < top.size() && top[to] == top[from]) ++to;
    if (top[from] != kNothing) {
      const Found& version = found[top[from]];
      const BlockRange range{part.first + BlockCount{from}, BlockCount{to - from}};
      const std::uint64_t skipped_blocks = (range.first - version.run.blocks().first).value;
      append({range, {version.sequence}, version.place.advanced(skipped_blocks)});
    }
    from = to;
  }
}

void LtIndex::newest(BlockRange range, Moments moments,
                     UniqueFunction<void(Result<std::vector<RunVersion>>)> done) {
  auto lookup = std::make_shared<Lookup>();
  lookup->left = range.intersect({Lbn{0}, BlockCount{kIndexedBlocksMax}});
  lookup->moments = moments;
  lookup->done = std::move(done);
  step(lookup);
}

void LtIndex::step(const std::shared_ptr<Lookup>& lookup) {
  lookup->repeater.run([&] {
    const BlockRange left = lookup->left;
    if (left.empty() || lookup->moments.at <= lookup->moments.after) {
      return lookup->done(std::move(lookup->out));
    }
    const Lbn part_end{(left.first.value / kPartBlocks + 1) * kPartBlocks};
    const BlockRange part = BlockRange::between(left.first, std::min(part_end, left.end()));
    // A long range may be empty for long.
    const bool is_long = part.end() < left.end() && large_levels_ == 0;
    if (is_long && !std::exchange(lookup->skipped, true)) return skip(lookup);
    lookup->skipped = false;
    look_up(lookup, part);
  });
}

void LtIndex::skip(const std::shared_ptr<Lookup>& lookup) {
  const std::uint64_t from = first_key_of_segment(lookup->left.first.value >> kSegmentBits);
  tree_.find_first({{from, 0}, IndexKey{kFirstLargeKey, 0}.before()},
                   [this, lookup](Result<std::optional<IndexRecord>> first) {
                     if (!first) return lookup->done(first.error());
                     BlockRange& left = lookup->left;
                     const Lbn next = *first
                                          ? Lbn{segment_of_key((*first)->key.high) << kSegmentBits}
                                          : left.end();
                     left = BlockRange::between(std::max(left.first, next), left.end());
                     step(lookup);
                   });
}

void LtIndex::look_up(const std::shared_ptr<Lookup>& lookup, BlockRange part) {
  lookup->runs.clear();
  lookup->found.clear();
  std::vector<KeyRange> keys;
  const auto add = [&](AlignedRun run) {
    lookup->runs.push_back(run);
    keys.push_back(keys_of(run, lookup->moments.at));
  };
  // In the order of keys: segment by segment, in each level by level; then the larger ones.
  for (Lbn at = part.first; at < part.end();) {
    const BlockRange segment =
        AlignedRun::containing(at.value, kSegmentLevel).blocks().intersect(part);
    for (unsigned level = 0; level <= kSegmentLevel; ++level) {
      const std::uint64_t last = AlignedRun::containing(segment.end().value - 1, level).number;
      for (AlignedRun run = AlignedRun::containing(segment.first.value, level); run.number <= last;
           ++run.number) {
        add(run);
      }
    }
    at = segment.end();
  }
  for (unsigned level = kSegmentLevel + 1; level < kRunLevels; ++level) {
    if ((large_levels_ >> level & 1) != 0) add(AlignedRun::containing(part.first.value, level));
  }
  tree_.find_last_each(
      std::move(keys),
      [lookup](std::size_t i, IndexKey key, BTree::Value value) {
        if (key.low <= lookup->moments.after.value) return;
        lookup->found.push_back({lookup->runs[i], key.low, unpack_placed_run(value)});
      },
      [this, lookup, part](const Result<void>& result) {
        if (!result) return lookup->done(result.error());
        lookup->paint(part);
        lookup->left = BlockRange::between(part.end(), lookup->left.end());
        step(lookup);
      });
}

// The versions of one block, level by level.
struct LtIndex::Versions {
  Lbn block;
  Moments moments;
  std::vector<RunVersion> out;
  unsigned level = 0;
  UniqueFunction<void(Result<std::vector<RunVersion>>)> done;
  Repeater repeater;
};

void LtIndex::versions(Lbn block, Moments moments,
                       UniqueFunction<void(Result<std::vector<RunVersion>>)> done) {
  auto versions = std::make_shared<Versions>();
  versions->block = block;
  versions->moments = moments;
  versions->done = std::move(done);
  step(versions);
}

void LtIndex::step(const std::shared_ptr<Versions>& versions) {
  versions->repeater.run([&] {
    unsigned& level = versions->level;
    while (level > kSegmentLevel && level < kRunLevels && (large_levels_ >> level & 1) == 0) {
      ++level;
    }
    const Moments moments = versions->moments;
    if (level == kRunLevels || moments.at <= moments.after) {
      std::ranges::sort(versions->out, {}, &RunVersion::sequence);
      return versions->done(std::move(versions->out));
    }
    const AlignedRun run = AlignedRun::containing(versions->block.value, level++);
    tree_.scan(
        {{run.key(), moments.after.value + 1}, {run.key(), moments.at.value}},
        BTree::Direction::kAscending,
        [versions, run](IndexKey key, BTree::Value value) {
          const std::uint64_t skipped = (versions->block - run.blocks().first).value;
          versions->out.push_back(
              {{versions->block, {1}}, {key.low}, unpack_placed_run(value).advanced(skipped)});
          return true;
        },
        [this, versions](const Result<void>& result) {
          if (!result) return versions->done(result.error());
          step(versions);
        });
  });
}

}  // namespace mariner::index

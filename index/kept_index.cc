#include "index/kept_index.h"

#include <algorithm>
#include <array>
#include <utility>

#include "index/merged_extents.h"
#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::index {
namespace {

constexpr std::size_t kValueBytes = kPlacedRunBytes + 16;
using Value = std::array<std::byte, kValueBytes>;

Value pack(const KeptRun& run, AlignedRun part) {
  Value value;
  pack_placed_run(run.place.advanced((part.blocks().first - run.range.first).value),
                  std::span(value).first<kPlacedRunBytes>());
  store_le(value.data() + kPlacedRunBytes, run.from.value);
  store_le(value.data() + kPlacedRunBytes + 8, run.through.value);
  return value;
}

KeptRun unpack(IndexKey key, BTree::Value value) {
  CHECK(value.size() == kValueBytes);
  return {.range = AlignedRun::of_key(key.high).blocks(),
          .from = {load_le<std::uint64_t>(value.data() + kPlacedRunBytes)},
          .through = {load_le<std::uint64_t>(value.data() + kPlacedRunBytes + 8)},
          .ordinal = key.low,
          .place = unpack_placed_run(value.first(kPlacedRunBytes))};
}

}  // namespace

BTreeOptions KeptIndex::tree_options(FunctionId id, const RecordFilter* filter) {
  return {.id = id, .value_bytes = kValueBytes, .ascends_within_high = true, .filter = filter};
}

struct KeptIndex::Search {
  std::vector<SequenceNumber> moments;
  MergedExtents shown;

  void add(const KeptRun& run) {
    const bool any = std::ranges::any_of(moments, [&](SequenceNumber moment) {
      return run.from <= moment && moment <= run.through;
    });
    if (any) shown.add(run.range);
  }
};

void KeptIndex::insert(const KeptRun& run) {
  for (const std::shared_ptr<Search>& search : searches_) search->add(run);
  cut_extent(run.range, [&](AlignedRun part) {
    levels_.add(part.level);
    tree_.insert({part.key(), run.ordinal}, pack(run, part), run.ordinal);
  });
}

void KeptIndex::restore(const KeptRun& run, KeyRange range) {
  cut_extent(run.range, [&](AlignedRun part) {
    const IndexKey key{part.key(), run.ordinal};
    if (!range.contains(key)) return;
    levels_.add(part.level);
    tree_.restore(key, pack(run, part));
  });
}

std::vector<KeptRun> KeptIndex::all(BlockReader& reader, std::span<const BlockRange> ranges,
                                    std::uint64_t after) const {
  std::vector<KeptRun> out;
  if (ranges.empty() || empty()) return out;
  walk_runs(tree_, reader, ranges, levels_, after + 1, UINT64_MAX,
            [&](IndexKey key, BTree::Value value, BlockRange part, std::uint64_t skipped) {
              KeptRun run = unpack(key, value);
              run.place = run.place.advanced(skipped);
              run.range = part;
              out.push_back(run);
            });
  std::ranges::stable_sort(out, {}, &KeptRun::ordinal);
  return out;
}

void KeptIndex::shown_at(std::vector<SequenceNumber> moments, std::uint64_t after,
                         UniqueFunction<void(Result<std::vector<BlockRange>>)> done) {
  const auto search = std::make_shared<Search>(Search{std::move(moments), {}});
  searches_.push_back(search);
  tree_.scan(
      {{}, IndexKey::max()}, BTree::Direction::kAscending,
      [search, after](IndexKey key, BTree::Value value) {
        if (key.low > after) search->add(unpack(key, value));
        return true;
      },
      [this, search, done = std::move(done)](const Result<void>& read) mutable {
        std::erase(searches_, search);
        if (!read) return done(read.error());
        done(search->shown.take());
      });
}

}  // namespace mariner::index

#include "index/version_index.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <utility>

namespace mariner::index {
namespace {

// By their first blocks, digit after digit from the lowest: what was written at random, a hundred
// thousand times and more, is sorted while somebody waits for a rollback, and comparing takes four
// times as long.
void sort_by_first(std::vector<BlockRange>& extents) {
  constexpr std::size_t kFew = 512;
  constexpr unsigned kDigitBits = 11;
  if (std::ranges::is_sorted(extents, {}, &BlockRange::first)) return;
  if (extents.size() < kFew) {
    std::ranges::sort(extents, {}, &BlockRange::first);
    return;
  }
  std::uint64_t all = 0;
  for (const BlockRange& extent : extents) all |= extent.first.value;
  std::vector<BlockRange> sorted(extents.size());
  const auto bits = static_cast<unsigned>(std::bit_width(all));
  for (unsigned shift = 0; shift < bits; shift += kDigitBits) {
    const auto digit = [shift](const BlockRange& extent) {
      return (extent.first.value >> shift) & ((1u << kDigitBits) - 1);
    };
    std::array<std::size_t, 1u << kDigitBits> places{};
    for (const BlockRange& extent : extents) ++places[digit(extent)];
    std::size_t next = 0;
    for (std::size_t& place : places) next += std::exchange(place, next);
    for (const BlockRange& extent : extents) sorted[places[digit(extent)]++] = extent;
    extents.swap(sorted);
  }
}

}  // namespace

LocatedRun part_of(const LocatedRun& run, BlockRange range) {
  LocatedRun part = run;
  part.range = run.range.intersect(range);
  if (!part.range.empty() && run.source == LocatedRun::Source::kLog && !run.repeated) {
    part.payload_block += static_cast<std::uint32_t>((part.range.first - run.range.first).value);
  }
  return part;
}

void append_run(const LocatedRun& run, std::vector<LocatedRun>& out) {
  if (!out.empty()) {
    LocatedRun& last = out.back();
    const bool adjacent = last.range.end() == run.range.first && last.source == run.source &&
                          last.sequence == run.sequence && last.base_ordinal == run.base_ordinal &&
                          last.for_kept == run.for_kept;
    const bool continues =
        run.source != LocatedRun::Source::kLog ||
        (last.location == run.location && last.repeated == run.repeated &&
         (run.repeated ? last.payload_block == run.payload_block
                       : last.payload_block + last.range.count.value == run.payload_block));
    if (adjacent && continues) {
      last.range.count = last.range.count + run.range.count;
      return;
    }
  }
  out.push_back(run);
}

std::vector<BlockRange> merge_extents(std::vector<BlockRange> extents) {
  sort_by_first(extents);
  std::vector<BlockRange> merged;
  for (const BlockRange& extent : extents) {
    if (extent.empty()) continue;
    if (!merged.empty() && extent.first <= merged.back().end()) {
      merged.back() =
          BlockRange::between(merged.back().first, std::max(merged.back().end(), extent.end()));
    } else {
      merged.push_back(extent);
    }
  }
  return merged;
}

}  // namespace mariner::index

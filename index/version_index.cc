#include "index/version_index.h"

#include <algorithm>

namespace mariner::index {

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
  std::sort(extents.begin(), extents.end());
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

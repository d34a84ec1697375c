#include "index/run_tree.h"

namespace mariner::index {
namespace {

// Of a segment of which more ranges are asked for, all is looked at: a seek costs as much as some
// records.
constexpr std::size_t kSoughtInSegmentMax = 32;

class KeyRanges {
 public:
  KeyRanges(std::uint64_t low, std::uint64_t high) : low_(low), high_(high) {}

  // The runs from `first` to `last`, behind or within what was added.
  void add(std::uint64_t first, std::uint64_t last) {
    if (!ranges_.empty() && first <= ranges_.back().high.high + 1) {
      ranges_.back().high = std::max(ranges_.back().high, IndexKey{last, high_});
    } else {
      ranges_.push_back({{first, low_}, {last, high_}});
    }
  }
  void add(BlockRange blocks, unsigned level) {
    add(AlignedRun::containing(blocks.first.value, level).key(),
        AlignedRun::containing(blocks.end().value - 1, level).key());
  }
  [[nodiscard]] std::vector<KeyRange> take() && { return std::move(ranges_); }

 private:
  const std::uint64_t low_;
  const std::uint64_t high_;
  std::vector<KeyRange> ranges_;
};

}  // namespace

void LargeLevels::learn(BTree& tree, BlockReader& reader) {
  std::vector<KeyRange> levels;
  for (unsigned level = kSegmentLevel + 1; level < kRunLevels; ++level) {
    levels.push_back(
        {{AlignedRun{level, 0}.key(), 0}, IndexKey{AlignedRun{level + 1, 0}.key(), 0}.before()});
  }
  tree.find_last_each(reader, levels, [this](std::size_t i, IndexKey, BTree::Value) {
    add(kSegmentLevel + 1 + static_cast<unsigned>(i));
  });
}

std::vector<KeyRange> keys_of_runs(std::span<const BlockRange> ranges, const LargeLevels& levels,
                                   std::uint64_t low, std::uint64_t high) {
  KeyRanges keys(low, high);
  by_segment(ranges, [&](BlockRange segments, std::span<const BlockRange> part) {
    if (part.size() > kSoughtInSegmentMax || segments.intersect(part.front()) == segments) {
      return keys.add(first_key_of_segment(segments.first.value >> kSegmentBits),
                      last_key_of_segment((segments.end().value - 1) >> kSegmentBits));
    }
    for (unsigned level = 0; level <= kSegmentLevel; ++level) {
      for (const BlockRange& range : part) keys.add(range.intersect(segments), level);
    }
  });
  for (unsigned level = kSegmentLevel + 1; level < kRunLevels; ++level) {
    if (!levels.has(level)) continue;
    for (const BlockRange& range : ranges) keys.add(range, level);
  }
  return std::move(keys).take();
}

}  // namespace mariner::index

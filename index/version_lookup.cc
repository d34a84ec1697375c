#include "index/version_lookup.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "index/stored_index.h"

namespace mariner::index {

VersionLookup::VersionLookup(StoredIndex& index, BlockReader& reader)
    : index_(index), reader_(reader) {
  index_.flush();
}

std::vector<std::vector<LocatedRun>> VersionLookup::locate_each(
    std::span<const Asked> asked) const {
  std::vector<std::size_t> order(asked.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {},
                    [&](std::size_t i) { return std::pair(asked[i].at, asked[i].range.first); });
  std::vector<std::vector<LocatedRun>> found(asked.size());
  std::vector<BlockRange> ranges;  // that are looked up together: of one moment
  for (auto next = order.begin(); next != order.end();) {
    const auto first = next;
    const SequenceNumber at = asked[*first].at;
    ranges.clear();
    for (; next != order.end() && asked[*next].at == at; ++next) {
      const BlockRange& range = asked[*next].range;
      if (!ranges.empty() && range.first <= ranges.back().end()) {
        ranges.back() =
            BlockRange::between(ranges.back().first, std::max(ranges.back().end(), range.end()));
      } else {
        ranges.push_back(range);
      }
    }
    const std::vector<LocatedRun> runs = index_.locate(reader_, ranges, at);
    auto run = runs.begin();
    for (auto each = first; each != next; ++each) {
      const BlockRange range = asked[*each].range;
      while (run != runs.end() && run->range.end() <= range.first) ++run;
      for (auto it = run; it != runs.end() && it->range.first < range.end(); ++it) {
        found[*each].push_back(part_of(*it, range));
      }
    }
  }
  return found;
}

std::vector<LocatedRun> VersionLookup::locate(BlockRange range, SequenceNumber at) const {
  return index_.locate(reader_, range, at);
}

std::vector<LocatedRun> VersionLookup::base_to_be(BlockRange range) const {
  std::vector<LocatedRun> out;
  index_.base(reader_, std::span(&range, 1),
              std::max(index_.bases_given_up_.value(), index_.forgetting_bases_), out);
  return out;
}

std::vector<LocatedRun> VersionLookup::base_from(std::span<const BlockRange> ranges,
                                                 std::uint64_t ordinal) const {
  std::vector<LocatedRun> out;
  index_.base(
      reader_, ranges,
      std::max(index_.bases_given_up_.value(), ordinal - std::min<std::uint64_t>(ordinal, 1)), out);
  return out;
}

std::vector<KeptRun> VersionLookup::kept(std::span<const BlockRange> ranges) const {
  return index_.kept_index_->all(reader_, ranges, index_.bases_given_up_.value());
}

std::vector<SequenceNumber> VersionLookup::versions(Lbn block, SequenceNumber from,
                                                    SequenceNumber to) const {
  return index_.versions(reader_, block, from, to);
}

VersionLookup::Changes VersionLookup::changes(Lbn block, SequenceNumber from, SequenceNumber to,
                                              std::size_t most) const {
  return index_.changes(reader_, block, from, to, most);
}

}  // namespace mariner::index

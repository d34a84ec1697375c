#include "index/recent_writes.h"

#include <algorithm>
#include <utility>

namespace mariner::index {

void WritePeriod::add(BlockRange range) {
  ++writes;
  Chunk* chunk = nullptr;
  for (Lbn at = range.first; at < range.end(); at = at + BlockCount{1}) {
    const std::uint64_t bit = at.value & ((1u << kChunkShift) - 1);
    if (chunk == nullptr || bit == 0) chunk = &chunks_[at.value >> kChunkShift];
    (*chunk)[bit / kWordBits] |= std::uint64_t{1} << bit % kWordBits;
  }
}

void WritePeriod::add(const WritePeriod& neighbour) {
  first = std::min(first, neighbour.first);
  last = std::max(last, neighbour.last);
  writes += neighbour.writes;
  for (const auto& [number, theirs] : neighbour.chunks_) {
    Chunk& ours = chunks_[number];
    for (std::size_t i = 0; i < ours.size(); ++i) ours[i] |= theirs[i];
  }
}

bool WritePeriod::contains(Lbn block) const {
  const auto chunk = chunks_.find(block.value >> kChunkShift);
  if (chunk == chunks_.end()) return false;
  const std::uint64_t bit = block.value & ((1u << kChunkShift) - 1);
  return (chunk->second[bit / kWordBits] >> bit % kWordBits & 1) != 0;
}

void RecentWrites::add(BlockRange range, SequenceNumber sequence) {
  if (range.count.value > kBlocksMax) return;
  if (open_ == nullptr) {
    open_ = std::make_unique<WritePeriod>();
    open_->first = open_->last = sequence;
  }
  // (After a restart an earlier one may come behind later ones.)
  open_->first = std::min(open_->first, sequence);
  open_->last = std::max(open_->last, sequence);
  open_->add(range);
  if (open_->writes >= writes_of_one() || open_->chunks() > kChunksMax) close();
}

std::size_t RecentWrites::writes_of_one() const {
  std::size_t all = 0;
  for (const auto& period : closed_) all += period->writes;
  return std::clamp(all / (2 * kPeriodsMax), kWritesMin, kWritesMax);
}

// Of too many the two neighbours with the fewest writes become one: so all are about as long, and
// together they reach back as far as they can.
void RecentWrites::close() {
  std::shared_ptr<WritePeriod> period = std::move(open_);
  if (period->chunks() > kChunksMax) return;
  closed_.push_back(std::move(period));
  if (closed_.size() <= kPeriodsMax) return;
  std::size_t least = 0;
  const auto writes_of = [&](std::size_t i) { return closed_[i]->writes + closed_[i + 1]->writes; };
  for (std::size_t i = 1; i + 1 < closed_.size(); ++i) {
    if (writes_of(i) < writes_of(least)) least = i;
  }
  auto both = std::make_shared<WritePeriod>(*closed_[least]);
  both->add(*closed_[least + 1]);
  if (both->chunks() > kChunksMax) {
    closed_.erase(closed_.begin());
    return;
  }
  closed_[least] = std::move(both);
  closed_.erase(closed_.begin() + static_cast<std::ptrdiff_t>(least) + 1);
}

void RecentWrites::forget_through(SequenceNumber sequence) {
  std::erase_if(closed_, [&](const auto& period) { return period->first <= sequence; });
}

RecentWrites::Periods RecentWrites::within(SequenceNumber after, SequenceNumber through) const {
  Periods found;
  std::ranges::copy_if(closed_, std::back_inserter(found), [&](const auto& period) {
    return period->first > after && period->last <= through;
  });
  return found;
}

std::vector<BlockRange> without_written(std::span<const BlockRange> ranges,
                                        const RecentWrites::Periods& periods) {
  std::vector<BlockRange> left;
  for (const BlockRange& range : ranges) {
    Lbn begin = range.first;  // of what is left of it
    for (Lbn at = range.first; at < range.end(); at = at + BlockCount{1}) {
      const bool written =
          std::ranges::any_of(periods, [at](const auto& period) { return period->contains(at); });
      if (!written) continue;
      if (begin < at) left.push_back(BlockRange::between(begin, at));
      begin = at + BlockCount{1};
    }
    if (begin < range.end()) left.push_back(BlockRange::between(begin, range.end()));
  }
  return left;
}

}  // namespace mariner::index

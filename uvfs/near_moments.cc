#include "uvfs/near_moments.h"

#include <algorithm>

namespace mariner::uvfs {

NearMoments::Written NearMoments::written_between(SequenceNumber from, SequenceNumber to) const {
  if (to.value - from.value > kWritesMax) return {};
  auto changed = past_.changed(from, to);
  if (!changed || changed->size() > kRangesMax) return {};
  return std::move(*changed);
}

void NearMoments::add(SequenceNumber at) {
  if (moments_.contains(at)) return;
  if (moments_.size() >= kMomentsMax) moments_.clear();
  const auto behind = moments_.upper_bound(at);
  Written since;
  if (behind != moments_.begin()) since = written_between(std::prev(behind)->first, at);
  if (behind != moments_.end()) behind->second = written_between(at, behind->first);
  moments_.emplace_hint(behind, at, std::move(since));
}

bool NearMoments::is_same(const Written& written, Lbn block) {
  if (!written) return false;
  const auto after = std::ranges::upper_bound(*written, block, {}, &BlockRange::first);
  return after == written->begin() || std::prev(after)->end() <= block;
}

bool NearMoments::any_alike(Lbn block, SequenceNumber at, const Visit& visit) const {
  const auto here = moments_.find(at);
  if (here == moments_.end()) return false;
  auto before = here;
  auto behind = here;
  bool goes_back = true;
  bool goes_on = true;
  for (int step = 0; step < kStepsMax && (goes_back || goes_on); ++step) {
    goes_back = goes_back && before != moments_.begin() && is_same(before->second, block);
    if (goes_back && visit((--before)->first)) return true;
    goes_on =
        goes_on && std::next(behind) != moments_.end() && is_same(std::next(behind)->second, block);
    if (goes_on && visit((++behind)->first)) return true;
  }
  return false;
}

}  // namespace mariner::uvfs

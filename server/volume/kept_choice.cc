#include "server/volume/kept_choice.h"

#include <algorithm>

#include "server/volume/logged_volume.h"

namespace mariner::volume {

bool is_one_of(const index::KeptMoment& kept, const std::vector<VersionTime>& times) {
  const auto time = std::ranges::lower_bound(times, kept.moment.time);
  return time != times.end() && *time <= kept.through;
}

bool is_in_use(LoggedVolume& volume, const index::KeptMoment& kept) {
  const SequenceNumber at = kept.moment.sequence;
  const std::vector<SequenceNumber> targets = volume.index().rollback_targets({});
  return volume.is_pinned(at) || std::ranges::find(targets, at) != targets.end();
}

std::vector<index::KeptMoment> still_kept(LoggedVolume& volume, const KeepWish& wish) {
  std::vector<index::KeptMoment> out;
  for (const index::KeptMoment& kept : volume.index().kept()) {
    const SequenceNumber at = kept.moment.sequence;
    const bool wished = std::ranges::any_of(
        wish.moments, [at](const index::IndexMoment& moment) { return moment.sequence == at; });
    if (wished || is_one_of(kept, wish.times) || is_in_use(volume, kept)) out.push_back(kept);
  }
  return out;
}

}  // namespace mariner::volume

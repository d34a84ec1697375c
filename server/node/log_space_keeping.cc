// What the log is to keep of each volume: windows, marks, views and schedules. The other half of
// log_space.h.
#include <algorithm>
#include <utility>

#include "server/node/log_space.h"
#include "server/node/retained_choice.h"

namespace mariner::node {
namespace {

constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
// A hidden volume has no past of its own that anybody could open; reads under way may be this old.
constexpr std::uint64_t kOverlayKeepNs = 30 * kNsPerSecond;
constexpr auto kReadAgain = std::chrono::seconds(5);  // what checks found

}  // namespace

// Writes that wait cannot wait until a step of the clock has lasted.
VersionTime LogSpace::now() {
  return time_.at(parts_.executor.wall_time(), parts_.executor.monotonic_time(), critical());
}

VersionTime LogSpace::window_begin(VolumeId volume) {
  const std::uint64_t now = this->now().ns;
  const auto asked = parts_.keeper.window(volume);
  if (!asked) return {now - std::min(now, kOverlayKeepNs)};
  std::uint64_t window = asked->seconds > now / kNsPerSecond ? now : asked->seconds * kNsPerSecond;
  std::uint64_t end = now;
  if (const auto of = find(volume); shortened_.shortened(volume) && of != nullptr) {
    // Of what there is: the window may be longer than the history, and the history's end later than
    // the clock, if that was put back.
    const index::StoredIndex& index = of->logged().index();
    end = std::max(end, index.newest().time.ns);
    const std::uint64_t began = std::max(asked->created.ns, index.oldest().time.ns);
    window = shortened_.left_of(volume, std::min(window, end - std::min(end, began)));
  }
  return {end - window};
}

VersionTime LogSpace::keep_from(VolumeId volume) {
  if (!parts_.keeper.knows()) return {};
  VersionTime keep = window_begin(volume);
  if (!parts_.keeper.window(volume)) return keep;
  // (What was there before the first write is no moment that could be kept by itself.)
  const auto hold = [&](std::uint64_t sequence, std::uint64_t time_ns) {
    if (sequence == 0) keep = std::min(keep, VersionTime{time_ns});
  };
  for (const meta::View& view : parts_.keeper.views(volume)) {
    if (view.volume_id() == volume.value) hold(view.sequence(), view.time_ns());
  }
  const Result<std::vector<meta::Mark>> marks = parts_.keeper.marks(volume);
  if (!marks) return {};  // what cannot be read may be a mark
  for (const meta::Mark& mark : *marks) hold(mark.sequence(), mark.time_ns());
  return keep;
}

volume::ReclaimerOwner::Wish LogSpace::to_keep(VolumeId volume) {
  Wish wish;
  for (const meta::View& view : parts_.keeper.views(volume)) {
    if (view.volume_id() != volume.value) continue;
    wish.moments.push_back({SequenceNumber{view.sequence()}, VersionTime{view.time_ns()}});
  }
  const std::shared_ptr<volume::Reclaimable> of = find(volume);
  const Result<std::vector<meta::Mark>> marks = parts_.keeper.marks(volume);
  if (marks) {
    for (const meta::Mark& mark : *marks) {
      wish.moments.push_back({SequenceNumber{mark.sequence()}, VersionTime{mark.time_ns()}});
    }
  }
  // Each that is kept may be one that somebody needs.
  if ((!marks || !parts_.keeper.knows()) && of != nullptr) {
    for (const index::KeptMoment& kept : of->logged().index().kept()) {
      wish.moments.push_back(kept.moment);
    }
  }
  const auto asked = parts_.keeper.window(volume);
  if (!asked || asked->retain.none()) return wish;
  std::vector<RetainedTime> times = retained_times(asked->retain, now());
  std::erase_if(times, [&](const RetainedTime& each) { return each.time < asked->created; });
  if (const auto thinned = thinned_.find(volume); thinned != thinned_.end()) {
    const std::size_t gone = std::min(thinned->second, times.size());
    times.erase(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(gone));
  }
  if (of == nullptr) return wish;
  const index::StoredIndex& index = of->logged().index();
  for (const RetainedChoice& choice :
       choose_retained(times, {index.oldest(), index.kept(), clean_moments(volume)})) {
    if (choice.moment) {
      wish.moments.push_back(*choice.moment);
    } else {
      wish.times.push_back(choice.asked.time);
    }
  }
  return wish;
}

// Read now and then: there may be thousands, and each try asks twice.
const std::vector<index::IndexMoment>& LogSpace::clean_moments(VolumeId volume) {
  const auto now = parts_.executor.monotonic_time();
  CleanMoments& clean = clean_[volume];
  if (!clean.read || now - *clean.read >= kReadAgain) {
    clean = {parts_.keeper.clean_moments(volume), now};
  }
  return clean.moments;
}

}  // namespace mariner::node

#include "server/node/window_watch.h"

#include <algorithm>
#include <array>

namespace mariner::node {
namespace {

using std::chrono::seconds;

// It is told of when a window will be short in less than this.
constexpr std::array<seconds, 5> kStages{seconds(0), std::chrono::minutes(10),
                                         std::chrono::hours(1), std::chrono::hours(24),
                                         seconds::max()};

seconds stage_of(seconds short_in) { return *std::ranges::lower_bound(kStages, short_in); }

}  // namespace

// What is left when writes begin to wait. Where the log is compacted, what it will hold is taken to
// become as compact as what it holds has become so far.
WindowWatch::Space WindowWatch::space_of(const LogStack& log) {
  const logging::LogWriter& writer = log.writer();
  const std::uint64_t tracks = std::max<std::uint64_t>(log.track_count(), 1);
  const std::uint64_t kept = (writer.kept_tracks_at_rest() + 1) * (writer.limit_bytes() / tracks);
  const std::uint64_t history = writer.history_bytes();
  const std::uint64_t used = writer.used_bytes();
  std::uint64_t room = writer.limit_bytes() - std::min(writer.limit_bytes(), kept);
  if (log.array().packing().enabled && used > 0 && history > used) {
    room = static_cast<std::uint64_t>(static_cast<double>(room) * static_cast<double>(history) /
                                      static_cast<double>(used));
  }
  return {.used_bytes = history, .room_bytes = room, .written_bytes = log.batch_bytes().sum()};
}

void WindowWatch::look(const Space& space, const std::vector<Volume>& volumes) {
  const VersionTime now = executor_.wall_time();
  if (!begun_) {
    if (volumes.empty()) return;
    const auto oldest = std::ranges::min_element(volumes, {}, &Volume::oldest);
    forecast_.begin(oldest->oldest, now,
                    space.used_bytes - std::min(space.used_bytes, space.written_bytes));
    begun_ = true;
  }
  forecast_.sample(now, space.written_bytes);
  outlooks_.clear();
  for (const Volume& volume : volumes) {
    const auto outlook = forecast_.outlook(volume.window, space.room_bytes);
    if (!outlook) continue;
    outlooks_[volume.id] = *outlook;
    tell(volume, *outlook);
  }
  std::erase_if(told_, [&](const auto& told) { return !outlooks_.contains(told.first); });
}

void WindowWatch::tell(const Volume& volume, const WindowForecast::Outlook& outlook) {
  if (!outlook.short_in) {
    told_.erase(volume.id);
    return;
  }
  const seconds stage = stage_of(*outlook.short_in);
  const auto told = told_.find(volume.id);
  if (told != told_.end() && told->second <= stage) return;
  told_[volume.id] = stage;
  log_.warning(
      outlook.short_in->count() > 0
          ? "the log will be too small for a window if it is written to as it is now: make it "
            "larger ([log] max_size), or the window shorter"
          : "the log is too small for a window: make it larger ([log] max_size), or the window "
            "shorter",
      {{"volume", volume.name},
       {"window_s", volume.window.count()},
       {"short_in_s", outlook.short_in->count()},
       {"lasting_s", outlook.lasting.count()},
       {"bytes_per_second", static_cast<std::uint64_t>(forecast_.rate().value_or(0))}});
}

std::optional<WindowForecast::Outlook> WindowWatch::outlook(VolumeId volume) const {
  const auto found = outlooks_.find(volume);
  if (found == outlooks_.end()) return std::nullopt;
  return found->second;
}

}  // namespace mariner::node

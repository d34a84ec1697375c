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

// What is left when writes begin to wait.
WindowWatch::Space WindowWatch::space_of(const LogStack& log) {
  const logging::LogWriter& writer = log.writer();
  const std::uint64_t tracks = std::max<std::uint64_t>(log.track_count(), 1);
  const std::uint64_t kept = (writer.kept_tracks_at_rest() + 1) * (writer.limit_bytes() / tracks);
  return {.used_bytes = writer.used_bytes(),
          .room_bytes = writer.limit_bytes() - std::min(writer.limit_bytes(), kept),
          .written_bytes = log.batch_bytes().sum()};
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

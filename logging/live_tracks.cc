#include "logging/live_tracks.h"

#include "logging/log_array.h"

namespace mariner::logging {

std::vector<LiveTracks> live_tracks(const LogArray& log) {
  std::vector<LiveTracks> disks;
  for (const auto& member : log.members()) {
    const std::uint64_t oldest = member->tracks.oldest();
    const std::uint64_t current = member->log_disk->current_allocation();
    LiveTracks live{.disk = member->disk,
                    .superblock = member->superblock,
                    .oldest = oldest,
                    .current = current,
                    .current_first_batch = member->log_disk->track_first_batch(),
                    .finished = member->log_disk->finished(),
                    .tracks = {},
                    .withdrawn = log.writer().withdrawn()};
    if (log.writer().is_written_one_by_one()) live.read_bytes_max = kShortReadBytesMax;
    if (oldest <= current) {
      live.tracks = allocated_from(member->tracks, oldest, current - oldest + 1);
      std::erase_if(live.tracks, [&](const Allocated& a) { return a.allocation > current; });
    }
    disks.push_back(std::move(live));
  }
  return disks;
}

namespace {

Result<CompleteTrack> read_track(const LiveTracks& live, std::size_t number) {
  const std::vector<Allocated> rest(live.tracks.begin() + static_cast<std::ptrdiff_t>(number),
                                    live.tracks.end());
  const std::uint64_t last = live.finished ? live.current - 1 : live.current;
  if (rest.front().allocation == last) {
    return read_growing_track(*live.disk, live.superblock, rest.front(), live.read_bytes_max);
  }
  return read_complete_track(*live.disk, live.superblock, rest, live.current_first_batch,
                             live.read_bytes_max);
}

}  // namespace

Result<CompleteTrack> read_live_track(const LiveTracks& live, std::size_t number) {
  Result<CompleteTrack> track = read_track(live, number);
  if (track && live.withdrawn.size() > 0) {
    std::erase_if(track->records,
                  [&](const auto& entry) { return live.withdrawn.contains(entry.first.ordinal); });
  }
  return track;
}

}  // namespace mariner::logging

#include "server/node/index_repair.h"

#include <algorithm>

#include "proto/check.h"

namespace mariner::node {

using index::BlockAddress;
using index::LeafRepair;

IndexRepair::IndexRepair(const Parts& parts, UniqueFunction<void()> given_up)
    : parts_(parts), given_up_(std::move(given_up)) {
  parts_.store.set_mending(true);
}

IndexRepair::~IndexRepair() {
  CHECK_MSG(idle(), "the index's repair is destroyed while it reads the log");
  *alive_ = false;
}

void IndexRepair::damaged(BlockAddress address) {
  if (stopped_) return;
  if (refused_.contains(address)) {
    stop();
    return given_up_();
  }
  waiting_.insert(address);
  if (repairing_.empty()) begin_soon({});
}

void IndexRepair::forget(VolumeId volume) {
  std::erase_if(repairing_, [&](const Repairing& r) { return r.leaf.volume == volume; });
}

void IndexRepair::stop() {
  stopped_ = true;
  parts_.store.set_mending(false);
}

std::optional<IndexRepair::Progress> IndexRepair::progress() const {
  if (repairing_.empty() && waiting_.empty()) return std::nullopt;
  return Progress{repairing_.size() + waiting_.size(), next_, places_.size()};
}

void IndexRepair::begin_soon(std::chrono::nanoseconds in) {
  if (std::exchange(begins_soon_, true)) return;
  parts_.executor.after(in, [this, alive = alive_] {
    if (*alive) begin();
  });
}

void IndexRepair::begin() {
  begins_soon_ = false;
  if (stopped_ || reading_ || reads_again_ || !repairing_.empty()) return;
  for (auto next = waiting_.begin(); next != waiting_.end() && repairing_.size() < kLeavesAtOnce;) {
    const BlockAddress address = *next;
    if (parts_.store.is_allocated(address) && parts_.store.is_committing(address)) {
      ++next;
      continue;
    }
    next = waiting_.erase(next);
    if (parts_.store.is_allocated(address) && !begin_leaf(address)) refused_.insert(address);
  }
  if (repairing_.empty()) {
    if (!waiting_.empty()) return begin_soon(kCommitPatience);
    return parts_.store.mended();
  }
  parts_.logger.warning("damaged blocks of the index are made again from the log",
                        {{"blocks", repairing_.size()}});
  std::vector<LeafRepair> leaves;
  for (const Repairing& repairing : repairing_) leaves.push_back(repairing.leaf);
  filter_ = std::make_shared<index::RepairFilter>(leaves);
  disks_ =
      std::make_shared<const std::vector<logging::LiveTracks>>(logging::live_tracks(parts_.log));
  places_.clear();
  next_ = 0;
  for (std::size_t disk = 0; disk < disks_->size(); ++disk) {
    for (std::size_t track = 0; track < (*disks_)[disk].tracks.size(); ++track) {
      places_.push_back({disk, track});
    }
  }
  read_next();
}

bool IndexRepair::begin_leaf(BlockAddress address) {
  const std::uint64_t decided = parts_.log.writer().ordinal_frontier() - 1;
  for (const auto& [volume, index] : parts_.indexes) {
    if (const std::optional<LeafRepair> leaf = index->begin_repair(address, decided)) {
      repairing_.push_back({index, *leaf});
      return true;
    }
  }
  return false;
}

void IndexRepair::read_next() {
  if (stopped_) return;
  if (next_ == places_.size() || repairing_.empty()) return end();
  read(places_[next_++]);
}

void IndexRepair::read(Place place) {
  auto records = std::make_shared<Records>();
  reading_ = true;
  parts_.worker.run(
      [disks = disks_, filter = filter_, place, records]() -> Result<void> {
        auto track = logging::read_live_track((*disks)[place.disk], place.track);
        if (!track) return track.error();
        for (auto& entry : track->records) {
          if (filter->concerns(entry.first)) records->push_back(std::move(entry));
        }
        if (track->damage.empty()) return {};
        return Error{ErrorCode::kCorrupt, track->damage.front().what};
      },
      [this, place, records](const Result<void>& result) {
        reading_ = false;
        // What is left out now is missing for good. (But one that stays away is waited for once.)
        const bool is_away = !result && result.error().code != ErrorCode::kCorrupt;
        tries_ = is_away ? tries_ + 1 : 0;
        if (is_away && tries_ < kReadTries && is_needed(place)) {
          reads_again_ = true;
          return parts_.executor.after(kReadAgain, [this, place, alive = alive_] {
            if (!*alive) return;
            reads_again_ = false;
            if (!stopped_) read(place);
          });
        }
        track_read(place, *records, result);
        read_next();
      });
}

// What was freed meanwhile holds nothing that anybody needs.
bool IndexRepair::is_needed(Place place) const {
  const logging::LiveTracks& live = (*disks_)[place.disk];
  const logging::LogArray::Member* member = parts_.log.find(live.superblock.disk);
  return member != nullptr && member->tracks.kept_from() <= live.tracks[place.track].allocation;
}

void IndexRepair::track_read(Place place, const Records& records, const Result<void>& result) {
  const logging::LiveTracks& live = (*disks_)[place.disk];
  if (!result && is_needed(place)) {
    parts_.logger.error(
        "the index is made again without a part of the log that cannot be read: history is missing",
        {{"disk", live.superblock.disk},
         {"track", live.tracks[place.track].track},
         {"error", to_string(result.error())}});
  }
  for (const auto& [record, location] : records) {
    for (const Repairing& repairing : repairing_) {
      if (repairing.leaf.volume == record.volume) {
        repairing.index->restore(repairing.leaf, record, location);
      }
    }
  }
}

void IndexRepair::end() {
  for (const Repairing& repairing : repairing_) repairing.index->end_repair(repairing.leaf);
  repaired_ += repairing_.size();
  parts_.logger.info("damaged blocks of the index have been made again",
                     {{"blocks", repairing_.size()}});
  repairing_.clear();
  disks_.reset();
  filter_.reset();
  parts_.store.mended();
  if (!waiting_.empty()) begin_soon({});
}

}  // namespace mariner::node

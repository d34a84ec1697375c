#include "logging/active_disk.h"

#include <algorithm>

#include "proto/check.h"

namespace mariner::logging {

ActiveDisk::ActiveDisk(const Options& options) : options_(options) {
  CHECK(options.batch_bytes_max > 0);
}

const ActiveDisk::Disk& ActiveDisk::at(std::size_t disk) const {
  CHECK(disk < disks_.size() && disks_[disk].placement != nullptr);
  return disks_[disk];
}

ActiveDisk::Disk& ActiveDisk::at(std::size_t disk) {
  CHECK(disk < disks_.size() && disks_[disk].placement != nullptr);
  return disks_[disk];
}

std::size_t ActiveDisk::add(const Placement& placement, std::uint32_t sector_bytes) {
  CHECK(sector_bytes > 0);
  auto free = std::ranges::find(disks_, nullptr, &Disk::placement);
  if (free == disks_.end()) {
    CHECK(disks_.size() < kDisksMax);
    free = disks_.insert(disks_.end(), Disk{});
  }
  free->placement = &placement;
  free->sector_bytes = sector_bytes;
  return static_cast<std::size_t>(free - disks_.begin());
}

void ActiveDisk::drain(std::size_t disk) {
  at(disk).draining = true;
  at(disk).due = at(disk).queued > 0;
  if (active_ == disk) active_.reset();
}

bool ActiveDisk::drained(std::size_t disk) const {
  return at(disk).draining && !at(disk).busy && at(disk).queued == 0;
}

void ActiveDisk::remove(std::size_t disk) {
  at(disk) = Disk{};
  if (active_ == disk) active_.reset();
}

bool ActiveDisk::may_wait(const Disk& disk, Time now) const {
  return !disk.due && now - disk.oldest < options_.t_wait;
}

std::uint32_t ActiveDisk::batch_sectors(const Disk& disk, std::uint64_t bytes) const {
  const std::uint64_t all = bytes + options_.overhead_bytes + disk.sector_bytes - 1;
  return static_cast<std::uint32_t>(all / disk.sector_bytes);
}

bool ActiveDisk::takes_requests(const Disk& disk) const {
  if (disk.placement == nullptr || disk.draining) return false;
  return !disk.has_next || (!disk.leaving && !disk.placement->wants_next_track());
}

// When the request would be on the medium, together with what waits there already.
std::optional<ActiveDisk::Time> ActiveDisk::write_time(const Disk& disk, std::uint32_t bytes,
                                                       Time now) const {
  if (!takes_requests(disk) || bytes > options_.batch_bytes_max - disk.queued) return std::nullopt;
  const auto place =
      disk.placement->place(batch_sectors(disk, std::uint64_t{disk.queued} + bytes), now);
  return place ? std::optional(place->done) : std::nullopt;
}

// Whether the request only has to wait until a batch is gone.
bool ActiveDisk::batch_is_full(std::uint32_t bytes, Time now) const {
  return std::ranges::any_of(disks_, [&](const Disk& disk) {
    return takes_requests(disk) && bytes > options_.batch_bytes_max - disk.queued &&
           disk.placement->place(batch_sectors(disk, std::uint64_t{disk.queued} + bytes), now);
  });
}

std::optional<std::size_t> ActiveDisk::choose(std::uint32_t bytes, Time now) const {
  std::optional<std::size_t> best;
  Time best_time{0};
  for (std::size_t i = 0; i < disks_.size(); ++i) {
    const Disk& disk = disks_[i];
    const auto time = write_time(disk, bytes, now);
    if (!time) continue;
    // Of equal ones, the one to batch with.
    const bool better =
        !best || *time < best_time || (*time == best_time && disk.queued > disks_[*best].queued);
    if (!better) continue;
    best = i;
    best_time = *time;
  }
  return best;
}

// Each disk that moved on would leave a part of its track behind: one is enough.
void ActiveDisk::make_room() {
  Disk* least = nullptr;
  for (Disk& disk : disks_) {
    if (disk.placement == nullptr || disk.draining || !disk.has_next) continue;
    if (disk.leaving || disk.switching || disk.placement->wants_next_track()) return;
    if (least == nullptr || disk.placement->room() < least->placement->room()) least = &disk;
  }
  if (least != nullptr) least->leaving = true;
}

// Where going on costs nothing, an idle disk whose track has no room for the request.
ActiveDisk::Disk* ActiveDisk::idle_without_room(std::uint32_t bytes, Time now) {
  const auto found = std::ranges::find_if(disks_, [&](const Disk& disk) {
    return disk.placement != nullptr && !disk.draining && disk.has_next && !disk.busy &&
           disk.queued == 0 && !disk.placement->moves_to_tracks() &&
           !disk.placement->place(batch_sectors(disk, bytes), now);
  });
  return found == disks_.end() ? nullptr : &*found;
}

bool ActiveDisk::may_take_later(std::uint32_t bytes, Time now) const {
  return batch_is_full(bytes, now) || std::ranges::any_of(disks_, [](const Disk& disk) {
           return disk.placement != nullptr && !disk.draining && disk.has_next;
         });
}

bool ActiveDisk::nothing_queued() const {
  return std::ranges::all_of(disks_, [](const Disk& disk) { return disk.queued == 0; });
}

std::optional<std::size_t> ActiveDisk::assign(std::uint32_t bytes, Time now) {
  CHECK(bytes > 0 && bytes <= options_.batch_bytes_max);
  const bool stays = active_ && at(*active_).queued > 0 && may_wait(at(*active_), now) &&
                     write_time(at(*active_), bytes, now).has_value();
  if (!stays) {
    if (active_ && at(*active_).queued > 0) at(*active_).due = true;
    const auto chosen = choose(bytes, now);
    if (chosen && at(*chosen).busy) {
      if (Disk* idle = idle_without_room(bytes, now)) {
        idle->leaving = true;
        return std::nullopt;
      }
    }
    if (!chosen) {
      if (!batch_is_full(bytes, now)) make_room();
      return std::nullopt;
    }
    active_ = chosen;
  }
  Disk& disk = at(*active_);
  if (disk.queued == 0) {
    disk.oldest = now;
    disk.first = bytes;
    disk.due = !disk.busy && nothing_queued();
  }
  disk.queued += bytes;
  usual_eighths_ += bytes - usual_eighths_ / 8;
  return active_;
}

std::optional<std::size_t> ActiveDisk::next_dispatch(Time now) {
  for (std::size_t i = 0; i < disks_.size(); ++i) {
    Disk& disk = disks_[i];
    if (disk.busy || disk.queued == 0 || may_wait(disk, now)) continue;
    disk.busy = true;
    disk.due = false;
    disk.queued = 0;
    return i;
  }
  return std::nullopt;
}

void ActiveDisk::put_back(std::size_t disk, const Rest& rest) {
  CHECK(at(disk).busy && at(disk).queued == 0);
  CHECK(rest.first_bytes > 0 && rest.first_bytes <= rest.bytes &&
        rest.bytes <= options_.batch_bytes_max);
  at(disk).queued = rest.bytes;
  at(disk).first = rest.first_bytes;
  at(disk).oldest = rest.oldest;
  at(disk).due = true;
}

void ActiveDisk::clear_queue(std::size_t disk) {
  at(disk).queued = 0;
  at(disk).due = false;
}

bool ActiveDisk::needs_next_track(const Disk& disk) const {
  if (disk.placement->wants_next_track() || (disk.leaving && disk.queued == 0)) return true;
  if (disk.queued == 0 && !disk.placement->moves_to_tracks()) return false;
  const std::uint32_t next = disk.queued > 0 ? disk.first : usual_eighths_ / 8;
  return disk.placement->room() < batch_sectors(disk, next);
}

std::optional<std::size_t> ActiveDisk::next_switch() {
  for (std::size_t i = 0; i < disks_.size(); ++i) {
    Disk& disk = disks_[i];
    if (disk.placement == nullptr || disk.draining || disk.busy || !disk.has_next) continue;
    if (!needs_next_track(disk)) continue;
    disk.busy = true;
    disk.leaving = false;
    disk.switching = true;
    return i;
  }
  return std::nullopt;
}

void ActiveDisk::occupied(std::size_t disk) {
  CHECK(!at(disk).busy);
  at(disk).busy = true;
}

void ActiveDisk::completed(std::size_t disk) {
  CHECK(at(disk).busy);
  at(disk).busy = false;
  at(disk).switching = false;
}

std::optional<ActiveDisk::Time> ActiveDisk::wake() const {
  std::optional<Time> first;
  for (const Disk& disk : disks_) {
    if (disk.busy || disk.queued == 0) continue;
    const Time due = disk.oldest + options_.t_wait;
    if (!first || due < *first) first = due;
  }
  return first;
}

}  // namespace mariner::logging

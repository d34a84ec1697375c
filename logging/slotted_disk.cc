#include "logging/slotted_disk.h"

#include <algorithm>
#include <string>
#include <utility>

#include "logging/slot_store.h"
#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::logging {
namespace {

std::uint64_t length_of(std::span<const ConstBytes> parts) {
  std::uint64_t length = 0;
  for (const ConstBytes& part : parts) length += part.size();
  return length;
}

}  // namespace

Result<std::unique_ptr<SlottedDisk>> SlottedDisk::open(std::shared_ptr<Disk> disk,
                                                       const Superblock& superblock,
                                                       Executor& executor, unsigned readers_max) {
  Result<SlotMap::Found> found = recover_slot_map(*disk, superblock);
  if (!found) return found.error();
  return std::unique_ptr<SlottedDisk>(
      new SlottedDisk(std::move(disk), superblock, *std::move(found), executor, readers_max));
}

SlottedDisk::SlottedDisk(std::shared_ptr<Disk> disk, const Superblock& superblock,
                         SlotMap::Found found, Executor& executor, unsigned readers_max)
    : disk_(std::move(disk)),
      superblock_(superblock),
      first_(superblock.track_first_sector(0) * superblock.sector_bytes),
      track_bytes_(superblock.track_bytes()),
      executor_(executor),
      readers_max_(readers_max),
      shelf_(disk_, first_, track_bytes_),
      map_(std::move(found.map)),
      generation_(found.generation),
      first_copy_(found.overwrite_first),
      reading_(superblock.slot_count) {
  count_usable();
  find_largest_pack();
}

SlottedDisk::~SlottedDisk() {
  {
    const std::scoped_lock lock(asked_mutex_);
    CHECK_MSG(asked_.empty(), "a log disk is closed while it is read");
    ending_ = true;
  }
  asked_signal_.notify_all();
  readers_.clear();
}

std::uint64_t SlottedDisk::size_bytes() const {
  return superblock_.end_sector() * superblock_.sector_bytes;
}

// ---- where it stands ----------------------------------------------------------------------------

SlottedDisk::Part SlottedDisk::look_up(std::uint64_t offset, std::uint64_t length) {
  CHECK(!is_reserved(offset));
  const std::uint64_t track = (offset - first_) / track_bytes_;
  Part part;
  part.in_track = (offset - first_) % track_bytes_;
  part.length = std::min(length, track_bytes_ - part.in_track);
  const std::scoped_lock lock(mutex_);
  part.place = map_.place_of(track);
  if (part.place.kind == TrackPlace::Kind::kSlot) {
    reading_[part.place.number].fetch_add(1, std::memory_order_relaxed);
  } else if (part.place.kind == TrackPlace::Kind::kPack) {
    part.pack = std::make_shared<const PackPlace>(map_.pack(part.place.number));
  }
  return part;
}

// Of a range that is not packed and does not go beyond its slot: where it is on the disk itself.
// For who needs not hold on to it: the owner, who alone moves tracks, and what is written to, which
// is not moved.
std::optional<std::uint64_t> SlottedDisk::in_one_slot(std::uint64_t offset,
                                                      std::uint64_t length) const {
  if (is_reserved(offset)) {
    return offset + length <= first_ ? std::optional(offset) : std::nullopt;
  }
  const std::uint64_t in_track = (offset - first_) % track_bytes_;
  if (length > track_bytes_ - in_track) return std::nullopt;
  const std::scoped_lock lock(mutex_);
  const TrackPlace place = map_.place_of((offset - first_) / track_bytes_);
  if (place.kind != TrackPlace::Kind::kSlot) return std::nullopt;
  return slot_offset(place.number) + in_track;
}

// ---- reading ------------------------------------------------------------------------------------

Result<void> SlottedDisk::read_part(const Part& part, std::span<std::byte> to) {
  switch (part.place.kind) {
    case TrackPlace::Kind::kNowhere: break;
    case TrackPlace::Kind::kSlot: {
      Result<void> result = disk_->read(slot_offset(part.place.number) + part.in_track, to);
      let_go(part.place.number);
      return result;
    }
    case TrackPlace::Kind::kPack: {
      const Result<std::shared_ptr<const PackReader>> reader = shelf_.open(*part.pack);
      if (!reader) return reader.error();
      return (*reader)->read(part.place.in_pack, part.in_track, to);
    }
  }
  std::ranges::fill(to, std::byte{0});
  return {};
}

Result<void> SlottedDisk::read(std::uint64_t offset, std::span<std::byte> to) {
  if (!is_within({offset, to.size()})) {
    return Error{ErrorCode::kIo, "log disk " + std::to_string(superblock_.disk) + ": a read of " +
                                     std::to_string(to.size()) + " bytes at " +
                                     std::to_string(offset) + " goes beyond its tracks"};
  }
  while (!to.empty()) {
    if (is_reserved(offset)) {
      const std::size_t length = std::min<std::uint64_t>(to.size(), first_ - offset);
      if (Result<void> r = disk_->read(offset, to.first(length)); !r) return r;
      to = to.subspan(length);
      offset += length;
      continue;
    }
    const Part part = look_up(offset, to.size());
    if (Result<void> r = read_part(part, to.first(part.length)); !r) return r;
    to = to.subspan(part.length);
    offset += part.length;
  }
  return {};
}

bool SlottedDisk::try_read(std::uint64_t offset, std::span<std::byte> to) {
  const std::optional<std::uint64_t> at = in_one_slot(offset, to.size());
  return at && disk_->try_read(*at, to);
}

void SlottedDisk::async_read(std::uint64_t offset, std::span<std::byte> to, Completion done) {
  if (is_reserved(offset) && offset + to.size() <= first_) {
    return disk_->async_read(offset, to, std::move(done));
  }
  if (is_reserved(offset) || !is_within({offset, to.size()})) {
    return read_elsewhere(offset, to, std::move(done));
  }
  const Part part = look_up(offset, to.size());
  const std::uint64_t slot = part.place.number;
  if (part.place.kind != TrackPlace::Kind::kSlot || part.length < to.size()) {
    if (part.place.kind == TrackPlace::Kind::kSlot) let_go(slot);
    return read_elsewhere(offset, to, std::move(done));
  }
  disk_->async_read(slot_offset(slot) + part.in_track, to,
                    [this, slot, done = std::move(done)](Result<void> result) mutable {
                      let_go(slot);
                      done(std::move(result));
                    });
}

// What is packed is read, and unpacked, by other threads.
void SlottedDisk::read_elsewhere(std::uint64_t offset, std::span<std::byte> to, Completion done) {
  if (readers_max_ == 0) {
    return executor_.post(
        [this, offset, to, done = std::move(done)]() mutable { done(read(offset, to)); });
  }
  {
    const std::scoped_lock lock(asked_mutex_);
    asked_.push_back({offset, to, std::move(done)});
    if (idle_ < asked_.size() && readers_.size() < readers_max_) {
      readers_.emplace_back([this] { read_asked(); });
    }
  }
  asked_signal_.notify_one();
}

void SlottedDisk::read_asked() {
  std::unique_lock lock(asked_mutex_);
  for (;;) {
    ++idle_;
    asked_signal_.wait(lock, [this] { return ending_ || !asked_.empty(); });
    --idle_;
    if (ending_) return;
    Asked asked = std::move(asked_.front());
    asked_.pop_front();
    lock.unlock();
    Result<void> result = read(asked.offset, asked.to);
    executor_.post([done = std::move(asked.done), result = std::move(result)]() mutable {
      done(std::move(result));
    });
    lock.lock();
  }
}

// ---- writing ------------------------------------------------------------------------------------

Result<void> SlottedDisk::write(std::uint64_t offset, std::span<const ConstBytes> parts,
                                Durability durability) {
  if (const auto at = in_one_slot(offset, length_of(parts))) {
    return disk_->write(*at, parts, durability);
  }
  if (std::ranges::all_of(parts, [](const ConstBytes& part) { return all_zero(part); })) return {};
  return Error{ErrorCode::kIo, "nothing can be written to a track that has no slot"};
}

void SlottedDisk::async_write(std::uint64_t offset, std::vector<ConstBytes> parts,
                              Durability durability, Completion done) {
  const auto at = in_one_slot(offset, length_of(parts));
  if (!at) {
    return executor_.post([done = std::move(done)]() mutable {
      done(Error{ErrorCode::kIo, "the track has no slot: the map of the slots cannot be written"});
    });
  }
  disk_->async_write(*at, std::move(parts), durability, std::move(done));
}

void SlottedDisk::start_writeback(ByteRange range) {
  if (const auto at = in_one_slot(range.offset, range.length)) {
    disk_->start_writeback({*at, range.length});
  }
}

Result<void> SlottedDisk::discard(ByteRange range) {
  const auto at = in_one_slot(range.offset, range.length);
  if (!at) return Error{ErrorCode::kInvalidArgument, "only what stands in one slot is discarded"};
  return disk_->discard({*at, range.length});
}

void SlottedDisk::async_forget(ByteRange range, Completion done) {
  const std::optional<std::uint64_t> at = in_one_slot(range.offset, range.length);
  if (!at) return executor_.post([done = std::move(done)]() mutable { done({}); });
  if (is_reserved(range.offset)) {
    return disk_->async_forget({*at, range.length}, std::move(done));
  }
  // The track may be packed meanwhile: nobody else may write to its slot before it is forgotten.
  const std::uint64_t slot = look_up(range.offset, range.length).place.number;
  disk_->async_forget({*at, range.length},
                      [this, slot, done = std::move(done)](Result<void> result) mutable {
                        let_go(slot);
                        done(std::move(result));
                      });
}

// ---- changes ------------------------------------------------------------------------------------

void SlottedDisk::adopt(SlotMap map, std::uint64_t generation) {
  const std::scoped_lock lock(mutex_);
  map_ = std::move(map);
  generation_ = generation;
  promised_.clear();
  gone_.clear();
  count_usable();
  find_largest_pack();
}

void SlottedDisk::find_largest_pack() {
  largest_pack_bytes_ = 0;
  for (const auto& [id, pack] : map_.packs()) {
    largest_pack_bytes_ = std::max(largest_pack_bytes_, pack.bytes());
  }
}

std::uint64_t SlottedDisk::bytes_of(std::uint64_t track) const {
  const TrackPlace place = map_.place_of(track);
  switch (place.kind) {
    case TrackPlace::Kind::kNowhere: return 0;
    case TrackPlace::Kind::kSlot: break;
    case TrackPlace::Kind::kPack: {
      const PackPlace& pack = map_.pack(place.number);
      return pack.bytes() / pack.tracks.size();
    }
  }
  return track_bytes_;
}

void SlottedDisk::release(std::uint64_t track) {
  std::uint64_t gone = 0;
  {
    const std::scoped_lock lock(mutex_);
    const TrackPlace place = map_.place_of(track);
    std::vector<PackExtent> extents;
    if (place.kind == TrackPlace::Kind::kPack) extents = map_.pack(place.number).extents;
    map_.release(track);
    if (place.kind == TrackPlace::Kind::kPack && !map_.packs().contains(place.number)) {
      gone = place.number;
      for (const PackExtent& extent : extents) gone_.insert(extent.slot);
    }
    count_usable();
  }
  if (gone == 0) return;
  shelf_.forget(gone);
  find_largest_pack();
}

void SlottedDisk::may_be_found(const SlotMap& map) {
  const std::scoped_lock lock(mutex_);
  for (const auto& [id, pack] : map.packs()) {
    if (map_.packs().contains(id)) continue;
    for (const PackExtent& extent : pack.extents) gone_.insert(extent.slot);
  }
  count_usable();
}

bool SlottedDisk::is_usable(std::uint64_t slot) const {
  return map_.is_free(slot) && !building_.contains(slot) && !promised_.contains(slot) &&
         !gone_.contains(slot) && !held_.contains(slot) &&
         reading_[slot].load(std::memory_order_acquire) == 0;
}

void SlottedDisk::count_usable() {
  std::set<std::uint64_t> taken = building_;  // a slot of a pack that went may be built in
  taken.insert(promised_.begin(), promised_.end());
  taken.insert(gone_.begin(), gone_.end());
  const auto of_the_free = static_cast<std::uint64_t>(
      std::ranges::count_if(taken, [this](std::uint64_t slot) { return map_.is_free(slot); }));
  usable_.store(map_.free_slots() - of_the_free, std::memory_order_relaxed);
}

std::optional<std::uint64_t> SlottedDisk::find_usable() const {
  for (std::uint64_t slot = 0; slot < map_.slot_count(); ++slot) {
    if (is_usable(slot)) return slot;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> SlottedDisk::promise_slot() {
  const std::scoped_lock lock(mutex_);
  const std::optional<std::uint64_t> slot = find_usable();
  if (slot) promised_.insert(*slot);
  count_usable();
  return slot;
}

bool SlottedDisk::is_promised(std::uint64_t slot) const {
  const std::scoped_lock lock(mutex_);
  return promised_.contains(slot);
}

bool SlottedDisk::hold(std::uint64_t slot) {
  const std::scoped_lock lock(mutex_);
  return is_usable(slot) && held_.insert(slot).second;
}

void SlottedDisk::let_go_of_held(std::uint64_t slot) {
  const std::scoped_lock lock(mutex_);
  held_.erase(slot);
}

std::optional<PackExtent> SlottedDisk::take_extent(std::uint64_t leave) {
  const std::scoped_lock lock(mutex_);
  if (building_.empty()) {
    const std::optional<PackExtent> open = map_.open_end();
    if (open && !gone_.contains(open->slot)) {
      building_.insert(open->slot);
      return open;
    }
  }
  if (usable_slots() <= leave) return std::nullopt;
  const std::optional<std::uint64_t> slot = find_usable();
  if (!slot) return std::nullopt;
  building_.insert(*slot);
  count_usable();
  return PackExtent{static_cast<std::uint32_t>(*slot), 0, static_cast<std::uint32_t>(track_bytes_)};
}

void SlottedDisk::end_building() {
  const std::scoped_lock lock(mutex_);
  building_.clear();
  count_usable();
}

}  // namespace mariner::logging

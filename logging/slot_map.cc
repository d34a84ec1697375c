#include "logging/slot_map.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "logging/block_frame.h"
#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::logging {
namespace {

constexpr BlockKind kSlotMap{0x544f4c534e52414d, 1};  // "MARNSLOT"
constexpr std::size_t kHeaderBytes = 72;
constexpr std::size_t kSlotEntryBytes = 12;
constexpr std::size_t kPackEntryBytes = 28;
constexpr std::size_t kExtentBytes = 12;
constexpr std::size_t kTrackBytes = 8;

std::size_t in_whole_blocks(std::size_t bytes) {
  return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

std::size_t entry_bytes(std::size_t tracks, std::size_t extents) {
  return kPackEntryBytes + extents * kExtentBytes + tracks * kTrackBytes;
}

Error damaged(const std::string& what) { return {ErrorCode::kCorrupt, "the slot map: " + what}; }

}  // namespace

SlotMap::SlotMap(const Superblock& superblock)
    : log_(superblock.log),
      disk_(superblock.disk),
      track_count_(superblock.track_count),
      track_bytes_(static_cast<std::uint32_t>(superblock.track_bytes())),
      room_bytes_(std::size_t{map_blocks_for(superblock.slot_count)} * kBlockBytes),
      uses_(superblock.slot_count, 0),
      free_slots_(superblock.slot_count) {
  CHECK(superblock.has_slots());
}

TrackPlace SlotMap::place_of(std::uint64_t track) const {
  const auto found = places_.find(track);
  return found == places_.end() ? TrackPlace{} : found->second;
}

std::optional<PackExtent> SlotMap::open_end() const {
  if (packs_.empty()) return std::nullopt;
  const PackExtent& last = packs_.rbegin()->second.extents.back();
  const auto at = static_cast<std::uint32_t>(in_whole_blocks(std::size_t{last.at} + last.bytes));
  if (at >= track_bytes_) return std::nullopt;
  return PackExtent{last.slot, at, track_bytes_ - at};
}

void SlotMap::use(std::uint64_t slot) {
  if (uses_[slot]++ == 0) --free_slots_;
}

void SlotMap::leave(std::uint64_t slot) {
  CHECK(uses_[slot] > 0);
  if (--uses_[slot] == 0) ++free_slots_;
}

void SlotMap::assign(std::uint64_t track, std::uint64_t slot) {
  CHECK(track < track_count_ && is_free(slot));
  const bool fresh = places_.emplace(track, TrackPlace{TrackPlace::Kind::kSlot, 0, slot}).second;
  CHECK(fresh);
  use(slot);
}

void SlotMap::release(std::uint64_t track) {
  const auto found = places_.find(track);
  if (found == places_.end()) return;
  const TrackPlace place = found->second;
  places_.erase(found);
  if (place.kind == TrackPlace::Kind::kSlot) return leave(place.number);
  const auto pack = packs_.find(place.number);
  CHECK(pack != packs_.end());
  pack->second.tracks[place.in_pack] = PackPlace::kFreed;
  if (std::ranges::any_of(pack->second.tracks,
                          [](std::uint64_t t) { return t != PackPlace::kFreed; })) {
    return;
  }
  for (const PackExtent& extent : pack->second.extents) leave(extent.slot);
  packs_.erase(pack);
}

void SlotMap::add_pack(PackPlace pack) {
  CHECK(pack.id == next_pack_ && !pack.extents.empty());
  for (const PackExtent& extent : pack.extents) use(extent.slot);
  for (std::uint32_t i = 0; i < pack.tracks.size(); ++i) {
    if (pack.tracks[i] == PackPlace::kFreed) continue;
    TrackPlace& place = places_.at(pack.tracks[i]);
    CHECK(place.kind == TrackPlace::Kind::kSlot);
    leave(place.number);
    place = {TrackPlace::Kind::kPack, i, pack.id};
  }
  packs_.emplace(next_pack_++, std::move(pack));
}

std::size_t SlotMap::packed_bytes() const {
  std::size_t bytes = kHeaderBytes;
  std::size_t in_packs = 0;
  for (const auto& [id, pack] : packs_) {
    bytes += entry_bytes(pack.tracks.size(), pack.extents.size());
    in_packs += static_cast<std::size_t>(
        std::ranges::count_if(pack.tracks, [](auto t) { return t != PackPlace::kFreed; }));
  }
  return bytes + (places_.size() - in_packs) * kSlotEntryBytes;
}

// All slots may come to hold a track beside it.
bool SlotMap::has_room(std::size_t tracks, std::size_t extents) const {
  return packed_bytes() + entry_bytes(tracks, extents) + uses_.size() * kSlotEntryBytes <=
         room_bytes_;
}

std::vector<std::byte> SlotMap::to_bytes(std::uint64_t generation) const {
  const std::size_t length = packed_bytes();
  CHECK(length <= room_bytes_);
  std::vector<std::byte> bytes(in_whole_blocks(length));
  std::vector<std::pair<std::uint64_t, std::uint64_t>> in_slots;
  for (const auto& [track, place] : places_) {
    if (place.kind == TrackPlace::Kind::kSlot) in_slots.emplace_back(track, place.number);
  }
  std::ranges::sort(in_slots);
  std::byte* p = bytes.data();
  std::memcpy(p + 16, log_.data(), log_.size());
  store_le(p + 32, generation);
  store_le(p + 40, next_pack_);
  store_le(p + 48, std::uint64_t{in_slots.size()});
  store_le(p + 56, std::uint64_t{length});
  store_le(p + 64, static_cast<std::uint32_t>(packs_.size()));
  store_le(p + 68, std::uint32_t{disk_});
  p += kHeaderBytes;
  for (const auto& [track, slot] : in_slots) {
    store_le(p, track);
    store_le(p + 8, static_cast<std::uint32_t>(slot));
    p += kSlotEntryBytes;
  }
  for (const auto& [id, pack] : packs_) {
    store_le(p, pack.id);
    store_le(p + 8, pack.table_at);
    store_le(p + 16, pack.table_bytes);
    store_le(p + 20, static_cast<std::uint32_t>(pack.extents.size()));
    store_le(p + 24, static_cast<std::uint32_t>(pack.tracks.size()));
    p += kPackEntryBytes;
    for (const PackExtent& extent : pack.extents) {
      store_le(p, extent.slot);
      store_le(p + 4, extent.at);
      store_le(p + 8, extent.bytes);
      p += kExtentBytes;
    }
    for (const std::uint64_t track : pack.tracks) {
      store_le(p, track);
      p += kTrackBytes;
    }
  }
  CHECK(p == bytes.data() + length);
  seal_block(bytes, kSlotMap);
  return bytes;
}

Result<void> SlotMap::take_slot_entry(const std::byte* p) {
  const auto track = load_le<std::uint64_t>(p);
  const auto slot = load_le<std::uint32_t>(p + 8);
  if (track >= track_count_ || slot >= uses_.size() || !is_free(slot) || places_.contains(track)) {
    return damaged("track " + std::to_string(track) + " or slot " + std::to_string(slot) +
                   " stands there twice, or is none of the log's");
  }
  assign(track, slot);
  return {};
}

// Gives how many bytes it took.
Result<std::size_t> SlotMap::take_pack_entry(std::span<const std::byte> from) {
  if (from.size() < kPackEntryBytes) return damaged("a pack is cut off");
  const std::byte* p = from.data();
  PackPlace pack;
  pack.id = load_le<std::uint64_t>(p);
  pack.table_at = load_le<std::uint64_t>(p + 8);
  pack.table_bytes = load_le<std::uint32_t>(p + 16);
  const auto extents = load_le<std::uint32_t>(p + 20);
  const auto tracks = load_le<std::uint32_t>(p + 24);
  const std::string name = "pack " + std::to_string(pack.id);
  const std::size_t bytes = entry_bytes(tracks, extents);
  if (extents == 0 || tracks == 0 || bytes > from.size()) return damaged(name + " is cut off");
  if (pack.id == 0 || pack.id >= next_pack_ ||
      (!packs_.empty() && pack.id <= packs_.rbegin()->first)) {
    return damaged(name + " has a number that it cannot have");
  }
  p += kPackEntryBytes;
  std::uint64_t length = 0;
  for (std::uint32_t i = 0; i < extents; ++i, p += kExtentBytes) {
    const PackExtent extent{load_le<std::uint32_t>(p), load_le<std::uint32_t>(p + 4),
                            load_le<std::uint32_t>(p + 8)};
    if (extent.slot >= uses_.size() || extent.at % kBlockBytes != 0 || extent.bytes == 0 ||
        extent.at > track_bytes_ || extent.bytes > track_bytes_ - extent.at) {
      return damaged(name + " lies outside of the slots");
    }
    length += extent.bytes;
    pack.extents.push_back(extent);
  }
  if (pack.table_bytes == 0 || pack.table_at > length || pack.bytes() != length) {
    return damaged(name + " is not as long as its extents");
  }
  for (std::uint32_t i = 0; i < tracks; ++i, p += kTrackBytes) {
    const auto track = load_le<std::uint64_t>(p);
    pack.tracks.push_back(track);
    if (track == PackPlace::kFreed) continue;
    const TrackPlace place{TrackPlace::Kind::kPack, i, pack.id};
    if (track >= track_count_ || !places_.emplace(track, place).second) {
      return damaged("track " + std::to_string(track) + " of " + name +
                     " stands there twice, or is none of the log's");
    }
  }
  for (const PackExtent& extent : pack.extents) use(extent.slot);
  packs_.emplace(pack.id, std::move(pack));
  return bytes;
}

Result<SlotMap::Found> SlotMap::from_bytes(const Superblock& superblock,
                                           std::span<const std::byte> bytes) {
  SlotMap map(superblock);
  if (bytes.size() < kBlockBytes || load_le<std::uint64_t>(bytes.data()) != kSlotMap.magic) {
    return damaged("there is none");
  }
  const std::byte* p = bytes.data();
  const auto length = load_le<std::uint64_t>(p + 56);
  if (length < kHeaderBytes || length > bytes.size() || length > map.room_bytes_) {
    return damaged("it has an impossible length");
  }
  if (!is_sealed(bytes.first(std::min(bytes.size(), in_whole_blocks(length))), kSlotMap) ||
      std::memcmp(p + 16, map.log_.data(), map.log_.size()) != 0 ||
      load_le<std::uint32_t>(p + 68) != map.disk_) {
    return damaged("it is torn, damaged, or of another log disk");
  }
  const auto generation = load_le<std::uint64_t>(p + 32);
  map.next_pack_ = load_le<std::uint64_t>(p + 40);
  if (map.next_pack_ == 0) return damaged("its packs have no numbers");
  const auto in_slots = load_le<std::uint64_t>(p + 48);
  const auto packs = load_le<std::uint32_t>(p + 64);
  std::span<const std::byte> rest = bytes.first(length).subspan(kHeaderBytes);
  if (in_slots > rest.size() / kSlotEntryBytes) return damaged("a slot's entry is cut off");
  for (std::uint64_t i = 0; i < in_slots; ++i) {
    if (Result<void> r = map.take_slot_entry(rest.data()); !r) return r.error();
    rest = rest.subspan(kSlotEntryBytes);
  }
  for (std::uint32_t i = 0; i < packs; ++i) {
    const Result<std::size_t> taken = map.take_pack_entry(rest);
    if (!taken) return taken.error();
    rest = rest.subspan(*taken);
  }
  // A slot holds one track, or packs that lie beside one another.
  std::vector<PackExtent> extents;
  for (const auto& [id, pack] : map.packs_) {
    extents.insert(extents.end(), pack.extents.begin(), pack.extents.end());
  }
  std::ranges::sort(extents, {}, [](const PackExtent& e) { return std::pair(e.slot, e.at); });
  std::vector<std::uint32_t> by_packs(map.uses_.size(), 0);
  for (std::size_t i = 0; i < extents.size(); ++i) {
    ++by_packs[extents[i].slot];
    if (i > 0 && extents[i - 1].slot == extents[i].slot &&
        extents[i - 1].at + extents[i - 1].bytes > extents[i].at) {
      return damaged("two packs overlap in slot " + std::to_string(extents[i].slot));
    }
  }
  for (std::uint64_t slot = 0; slot < map.uses_.size(); ++slot) {
    if (by_packs[slot] > 0 && by_packs[slot] != map.uses_[slot]) {
      return damaged("slot " + std::to_string(slot) + " holds a track and a pack");
    }
  }
  if (!rest.empty()) return damaged("something stands behind its last entry");
  return Found{std::move(map), generation, 0, true};
}

}  // namespace mariner::logging

// Where the tracks of a log disk with slots stand. FORMAT.md section 7.
//
// The disk's room behind the reserved area is cut into slots of the length of a track. A track that
// may be written to, or was written and not packed yet, stands in a slot of its own. One that has
// been packed (PACK.md) stands in a pack, a byte string that several tracks share, in extents of
// slots that hold nothing but packs. A track that stands nowhere has not been taken since it was
// freed, and reads as zeros.
//
// A value: it does no I/O and knows nothing of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "logging/track.h"
#include "proto/error.h"

namespace mariner::logging {

// A piece of a pack: bytes [at, at + bytes) of a slot. `at` is a multiple of kBlockBytes.
struct PackExtent {
  std::uint32_t slot = 0;
  std::uint32_t at = 0;
  std::uint32_t bytes = 0;
  friend bool operator==(const PackExtent&, const PackExtent&) = default;
};

struct PackPlace {
  std::uint64_t id = 0;             // counts up in the life of the log disk, from 1
  std::vector<PackExtent> extents;  // one after another they are the pack's bytes
  std::uint64_t table_at = 0;       // in the pack: where its table begins, which ends the pack
  std::uint32_t table_bytes = 0;
  std::vector<std::uint64_t> tracks;  // in the order of the table; kFreed: freed since
  static constexpr std::uint64_t kFreed = UINT64_MAX;

  [[nodiscard]] std::uint64_t bytes() const { return table_at + table_bytes; }
  friend bool operator==(const PackPlace&, const PackPlace&) = default;
};

struct TrackPlace {
  enum class Kind : std::uint8_t { kNowhere, kSlot, kPack };
  Kind kind = Kind::kNowhere;
  std::uint32_t in_pack = 0;  // which of the pack's tracks it is
  std::uint64_t number = 0;   // of the slot, or the pack's identity
  friend bool operator==(const TrackPlace&, const TrackPlace&) = default;
};

class SlotMap {
 public:
  // Of a new log: no track stands anywhere.
  explicit SlotMap(const Superblock& superblock);

  [[nodiscard]] TrackPlace place_of(std::uint64_t track) const;
  // Requires that the pack is there.
  [[nodiscard]] const PackPlace& pack(std::uint64_t id) const { return packs_.at(id); }
  [[nodiscard]] const std::map<std::uint64_t, PackPlace>& packs() const { return packs_; }
  [[nodiscard]] std::uint64_t next_pack() const { return next_pack_; }

  // Slots that hold neither a track nor a pack.
  [[nodiscard]] std::uint64_t free_slots() const { return free_slots_; }
  [[nodiscard]] bool is_free(std::uint64_t slot) const { return uses_[slot] == 0; }
  [[nodiscard]] std::uint64_t slot_count() const { return uses_.size(); }
  // Where the last pack ends, if its slot has room behind it: another one may begin there.
  [[nodiscard]] std::optional<PackExtent> open_end() const;

  // `track` stands nowhere, and `slot` is free.
  void assign(std::uint64_t track, std::uint64_t slot);
  // What the track held is not needed any more. One that stands nowhere may be named, too.
  void release(std::uint64_t track);
  // The tracks stand in slots, which become free, and are in the pack from now on. Its identity is
  // next_pack(), its extents lie in free slots or at open_end().
  void add_pack(PackPlace pack);
  // Whether to_bytes() of it and another pack of so many tracks and extents would fit its room.
  [[nodiscard]] bool has_room(std::size_t tracks, std::size_t extents) const;

  // The bytes of one copy of the map, whole blocks. `generation`: the copy with the higher one is
  // the newer.
  [[nodiscard]] std::vector<std::byte> to_bytes(std::uint64_t generation) const;
  struct Found;
  // kCorrupt if the bytes are not a whole copy of the map of this log disk.
  static Result<Found> from_bytes(const Superblock& superblock, std::span<const std::byte> bytes);

  friend bool operator==(const SlotMap&, const SlotMap&) = default;

 private:
  void use(std::uint64_t slot);
  void leave(std::uint64_t slot);
  [[nodiscard]] std::size_t packed_bytes() const;
  Result<void> take_slot_entry(const std::byte* p);
  Result<std::size_t> take_pack_entry(std::span<const std::byte> from);

  LogId log_{};
  std::uint8_t disk_ = 0;
  std::uint64_t track_count_ = 0;
  std::uint32_t track_bytes_ = 0;
  std::size_t room_bytes_ = 0;       // of a copy
  std::vector<std::uint32_t> uses_;  // of each slot: by a track, or by so many extents
  std::uint64_t free_slots_ = 0;
  std::unordered_map<std::uint64_t, TrackPlace> places_;  // of tracks that stand somewhere
  std::map<std::uint64_t, PackPlace> packs_;
  std::uint64_t next_pack_ = 1;
};

struct SlotMap::Found {
  SlotMap map;
  std::uint64_t generation = 0;
  // Of the two copies, the one that a new map is written over first: never the only one that holds
  // this map whole.
  std::uint32_t overwrite_first = 0;
  bool alike = true;  // the other copy holds it, too
};

}  // namespace mariner::logging

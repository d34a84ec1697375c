// A log disk whose tracks stand in slots (slot_map.h), as everybody else sees it: as if each track
// stood in its own place, as Superblock says, whether it is in a slot, packed, or nowhere.
//
// Reads of a packed track give the same bytes as before it was packed (but for what lay behind its
// last batch, which is zeros). Only tracks in slots can be written to. Everything in front of the
// first track is the disk's own.
//
// As any Disk: blocking reads by any thread, the rest by the Executor's. Where tracks stand is
// changed by the owner alone (slot_keeper.h). A read that began before goes on where it began: the
// slot is used for nothing else before it has ended.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "logging/disk.h"
#include "logging/pack_shelf.h"
#include "logging/slot_map.h"
#include "proto/executor.h"

namespace mariner::logging {

class SlottedDisk final : public Disk {
 public:
  static constexpr unsigned kReaders = 4;  // threads that read what is packed

  // Reads the map. `executor` outlives it. `readers_max`: 0: what is packed is read by the owner's
  // thread. Blocking.
  static Result<std::unique_ptr<SlottedDisk>> open(std::shared_ptr<Disk> disk,
                                                   const Superblock& superblock, Executor& executor,
                                                   unsigned readers_max = kReaders);
  ~SlottedDisk() override;  // nothing may be in flight
  SlottedDisk(const SlottedDisk&) = delete;
  SlottedDisk& operator=(const SlottedDisk&) = delete;

  // Up to the end of the last track.
  [[nodiscard]] std::uint64_t size_bytes() const override;
  [[nodiscard]] std::uint32_t alignment() const override { return disk_->alignment(); }
  Result<void> read(std::uint64_t offset, std::span<std::byte> to) override;
  // To a track that stands in no slot only zeros can be written, and then nothing happens: with
  // them recovery erases what nobody needs.
  Result<void> write(std::uint64_t offset, std::span<const ConstBytes> parts,
                     Durability durability) override;
  Result<void> flush() override { return disk_->flush(); }
  void start_writeback(ByteRange range) override;
  Result<void> discard(ByteRange range) override;
  [[nodiscard]] bool can_forget() const override { return disk_->can_forget(); }
  bool try_read(std::uint64_t offset, std::span<std::byte> to) override;
  void async_read(std::uint64_t offset, std::span<std::byte> to, Completion done) override;
  void async_write(std::uint64_t offset, std::vector<ConstBytes> parts, Durability durability,
                   Completion done) override;
  void async_flush(Completion done) override { disk_->async_flush(std::move(done)); }
  void submit_now() override { disk_->submit_now(); }
  void async_forget(ByteRange range, Completion done) override;

  // ---- where tracks stand; owner's thread ----

  [[nodiscard]] const SlotMap& map() const { return map_; }
  // Of the copies on the disk.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }
  // The copy that must be overwritten first: the other one may have been the only whole one.
  [[nodiscard]] std::uint32_t first_copy() const { return first_copy_; }
  // `map` is durable as `generation`.
  void adopt(SlotMap map, std::uint64_t generation);
  // At once; not durable before the next adopted map. Until then the slots of a pack that went with
  // its last track are used for nothing: after a crash it is read, as long as the map names it.
  void release(std::uint64_t track);
  // `map` may be found after a crash although it was given up: until another one is durable, the
  // slots of its packs are used for nothing.
  void may_be_found(const SlotMap& map);
  // Of the packs that there are; 0: none.
  [[nodiscard]] std::uint64_t largest_pack_bytes() const { return largest_pack_bytes_; }
  // What the track takes of the disk: of a pack its share.
  [[nodiscard]] std::uint64_t bytes_of(std::uint64_t track) const;
  // Such slots wait for a map.
  [[nodiscard]] bool has_gone() const { return !gone_.empty(); }

  // Slots that hold nothing, but those that are promised, built in, or wait for a map. Any thread.
  [[nodiscard]] std::uint64_t usable_slots() const {
    return usable_.load(std::memory_order_relaxed);
  }
  // One of them that nobody reads; it is used for nothing else before the next map is adopted.
  [[nodiscard]] std::optional<std::uint64_t> promise_slot();
  // For a map that is being written.
  [[nodiscard]] bool is_promised(std::uint64_t slot) const;
  // Holds on to the slot, if it is usable, so that it is used for nothing else.
  [[nodiscard]] bool hold(std::uint64_t slot);
  void let_go_of_held(std::uint64_t slot);

  // ---- for who builds a pack; any thread, one pack at a time ----

  // Room for the pack that is being built, which until end_building() is used for nothing else:
  // first what is left behind the last pack, then slots. Nothing: no more than `leave` are free.
  [[nodiscard]] std::optional<PackExtent> take_extent(std::uint64_t leave);
  void end_building();

  // The disk itself, for what is written into extents.
  [[nodiscard]] Disk& under() { return *disk_; }
  [[nodiscard]] const Superblock& superblock() const { return superblock_; }
  // Byte offset of `extent` on the disk itself.
  [[nodiscard]] std::uint64_t offset_of(const PackExtent& extent) const {
    return slot_offset(extent.slot) + extent.at;
  }
  // For a pack that the map does not name yet.
  [[nodiscard]] PackShelf new_shelf(PackShelf::Reads reads = PackShelf::Reads::kAnywhere) const {
    return {disk_, first_, track_bytes_, reads};
  }

 private:
  // A part of a range that lies in one track, and where that stands.
  struct Part {
    TrackPlace place;
    std::uint64_t in_track = 0;  // bytes
    std::uint64_t length = 0;
    std::shared_ptr<const PackPlace> pack;
  };
  SlottedDisk(std::shared_ptr<Disk> disk, const Superblock& superblock, SlotMap::Found found,
              Executor& executor, unsigned readers_max);
  [[nodiscard]] std::uint64_t slot_offset(std::uint64_t slot) const {
    return first_ + slot * track_bytes_;
  }
  [[nodiscard]] bool is_reserved(std::uint64_t offset) const { return offset < first_; }
  [[nodiscard]] bool is_within(ByteRange range) const {
    return range.offset <= size_bytes() && range.length <= size_bytes() - range.offset;
  }
  [[nodiscard]] std::optional<std::uint64_t> in_one_slot(std::uint64_t offset,
                                                         std::uint64_t length) const;
  // A part that stands in a slot holds on to it until let_go().
  Part look_up(std::uint64_t offset, std::uint64_t length);
  void let_go(std::uint64_t slot) { reading_[slot].fetch_sub(1, std::memory_order_release); }
  Result<void> read_part(const Part& part, std::span<std::byte> to);
  void read_elsewhere(std::uint64_t offset, std::span<std::byte> to, Completion done);
  void read_asked();

  const std::shared_ptr<Disk> disk_;
  const Superblock superblock_;
  const std::uint64_t first_;        // byte offset of the first track, and of slot 0
  const std::uint64_t track_bytes_;  // of a track and of a slot
  Executor& executor_;
  const unsigned readers_max_;
  PackShelf shelf_;

  // Under mutex_.
  [[nodiscard]] bool is_usable(std::uint64_t slot) const;
  void count_usable();
  [[nodiscard]] std::optional<std::uint64_t> find_usable() const;

  void find_largest_pack();  // owner's thread

  mutable std::mutex mutex_;
  SlotMap map_;  // changed by the owner alone, under mutex_; read by others under mutex_
  std::uint64_t generation_;
  const std::uint32_t first_copy_;
  std::vector<std::atomic<std::uint32_t>> reading_;  // reads under way, of each slot
  // Slots that must not be used for anything else. Guarded by mutex_.
  std::set<std::uint64_t> building_;
  std::set<std::uint64_t> promised_;
  std::set<std::uint64_t> held_;
  std::set<std::uint64_t> gone_;  // changed by the owner alone
  std::atomic<std::uint64_t> usable_{0};
  std::uint64_t largest_pack_bytes_ = 0;  // the owner's

  struct Asked {
    std::uint64_t offset = 0;
    std::span<std::byte> to;
    Completion done;
  };
  std::mutex asked_mutex_;
  std::condition_variable asked_signal_;
  std::deque<Asked> asked_;            // guarded by asked_mutex_
  bool ending_ = false;                // guarded by asked_mutex_
  unsigned idle_ = 0;                  // guarded by asked_mutex_
  std::vector<std::jthread> readers_;  // guarded by asked_mutex_
};

}  // namespace mariner::logging

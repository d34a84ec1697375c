// The packs of one log disk that are read from: their tables, and regions read lately. Bounded.
//
// Any thread, unless it reads in order.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>

#include "logging/disk.h"
#include "logging/pack_reader.h"
#include "logging/slot_map.h"

namespace mariner::logging {

class PackShelf {
 public:
  static constexpr std::size_t kRegionBytesMax = 32u << 20;
  static constexpr std::size_t kTableBytesMax = 32u << 20;  // of those that nobody is reading

  // kInOrder: one thread reads whole packs, from their beginning to their end, and gets a longer
  // piece at a time.
  enum class Reads : std::uint8_t { kAnywhere, kInOrder };

  // `slots_at`: where slot 0 begins on `disk`, in bytes.
  PackShelf(std::shared_ptr<Disk> disk, std::uint64_t slots_at, std::uint64_t slot_bytes,
            Reads reads = Reads::kAnywhere)
      : disk_(std::move(disk)),
        slots_at_(slots_at),
        slot_bytes_(slot_bytes),
        reads_(reads),
        regions_(kRegionBytesMax) {}

  // Reads the pack's table if it is not at hand. kCorrupt when it is damaged, which is remembered:
  // who looks for what is whole asks for each block of its tracks. Blocking.
  Result<std::shared_ptr<const PackReader>> open(const PackPlace& pack);
  // The pack is not there any more.
  void forget(std::uint64_t pack_id);

 private:
  class Opened;
  struct Kept {
    std::uint64_t pack_id = 0;
    std::size_t bytes = 0;
    std::shared_ptr<const Opened> opened;
  };

  [[nodiscard]] std::shared_ptr<const Opened> find(std::uint64_t pack_id);
  [[nodiscard]] std::optional<Error> known_damage(std::uint64_t pack_id);
  // What to say of it, from now on.
  [[nodiscard]] Error damaged(std::uint64_t pack_id, const Error& error);

  const std::shared_ptr<Disk> disk_;
  const std::uint64_t slots_at_;
  const std::uint64_t slot_bytes_;
  const Reads reads_;
  RegionCache regions_;
  std::mutex mutex_;
  std::size_t kept_bytes_ = 0;  // guarded by mutex_
  std::list<Kept> recent_;      // most recent first; guarded by mutex_
  std::unordered_map<std::uint64_t, std::list<Kept>::iterator> by_id_;  // guarded by mutex_
  std::unordered_map<std::uint64_t, Error> damaged_;                    // guarded by mutex_
};

}  // namespace mariner::logging

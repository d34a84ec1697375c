// The log disks that can be read, by their numbers in the array.
//
// Thread-safe. A disk that is taken out stays open until the last reader has let go of it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>

#include "logging/batch.h"
#include "logging/disk.h"

namespace mariner::logging {

inline constexpr std::size_t kLogDisksMax = 256;

class LogDisks {
 public:
  struct Entry {
    std::shared_ptr<Disk> disk;
    BatchFormat format;
  };

  LogDisks() = default;
  // One disk, which outlives this.
  LogDisks(Disk& disk, const BatchFormat& format) { add(0, {not_owned(disk), format}); }

  void add(std::uint8_t number, Entry entry);
  void remove(std::uint8_t number);
  // kUnavailable, naming the disk, if it is not there.
  [[nodiscard]] Result<Entry> find(std::uint8_t number) const;

  static std::shared_ptr<Disk> not_owned(Disk& disk) { return {std::shared_ptr<void>(), &disk}; }

 private:
  mutable std::mutex mutex_;
  std::array<Entry, kLogDisksMax> entries_;  // guarded by mutex_
};

}  // namespace mariner::logging

// What a file, a directory or any other object of a file system is like at a moment, but for its
// contents.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "proto/units.h"

namespace mariner::uvfs {

// Since the Unix epoch; before it, seconds are negative.
struct FileTime {
  std::int64_t seconds = 0;
  std::uint32_t ns = 0;
  friend auto operator<=>(const FileTime&, const FileTime&) = default;
};

// Of a write.
[[nodiscard]] inline FileTime to_file_time(VersionTime time) {
  constexpr std::uint64_t kSecond_ns = 1'000'000'000;
  return {static_cast<std::int64_t>(time.ns / kSecond_ns),
          static_cast<std::uint32_t>(time.ns % kSecond_ns)};
}

struct ObjectState {
  bool exists = false;
  std::uint16_t mode = 0;  // with the kind, as in stat()
  std::uint32_t user = 0;
  std::uint32_t group = 0;
  std::uint64_t size = 0;  // bytes
  std::uint32_t links = 0;
  std::uint32_t generation = 0;  // another one: another object with the same number
  std::uint32_t device = 0;      // of a device: major << 20 | minor
  std::uint32_t flags = 0;       // as FS_IOC_GETFLAGS says
  FileTime modified;
  FileTime changed;              // of anything about it (ObjectHistory::Stamp)
  std::optional<FileTime> made;  // none: it is not known
  friend bool operator==(const ObjectState&, const ObjectState&) = default;

  // As seen by who reads it: not so when it was read, nor how many names it has, nor when anything
  // about it was changed.
  [[nodiscard]] bool looks_like(const ObjectState& other) const {
    if (!exists || !other.exists) return exists == other.exists;
    return mode == other.mode && user == other.user && group == other.group && size == other.size &&
           generation == other.generation && device == other.device && flags == other.flags &&
           modified == other.modified;
  }
};

}  // namespace mariner::uvfs

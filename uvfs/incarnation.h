// The lives of the objects that had a path, and the versions within each.
//
// (Dissertation 4.5.1: an object is its path; from when it gets that path, by being made or
// renamed, to when it loses it, is an incarnation.)
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "uvfs/object_history.h"
#include "uvfs/stretch.h"

namespace mariner::uvfs {

struct FileVersion {
  Instant from;        // the write that completed it
  SequenceNumber end;  // the next version's beginning, or that of nothing; kEndless
  ObjectState object;
  friend bool operator==(const FileVersion& one, const FileVersion& other) {
    return one.from == other.from && one.end == other.end && one.object.looks_like(other.object);
  }
};

struct Incarnation {
  std::uint64_t inode = 0;
  Instant from;              // it has the path from this write on
  Instant end;               // ... and not any more from this one on; kEndless: it has it still
  bool from_before = false;  // it had it when the stretch began, `from` is that
  std::vector<FileVersion> versions;  // ascending; at least one
};

struct PathHistory {
  std::string path;
  std::vector<Incarnation> incarnations;  // ascending
};

struct VersionRule {
  // Every state that a write left is a version of its own. If not, those that an operation passes
  // through are left out: a file system writes contents first and the inode after it (or parts of
  // the inode, one after the other).
  //
  // What belongs to one operation is told by the time of change, which it has set, and by when that
  // is written (ObjectHistory::Stamp): ext2, ext3 and ext4 write it with the inode, whose parts may
  // follow. NTFS writes it when all else about the object is written: what has none of its own is
  // under way until something follows, for no longer than under_way_max in all. Where no such time
  // is kept (FAT, exFAT) an entry of a directory says all that there is about an object and is
  // written whole: each one is a version, and contents that come without one belong to the next or
  // to the last, whichever was written nearer to them. So contents that are written twice within
  // one tick of the entry's time (2 s, of exFAT 10 ms) are one version, the last: nothing else
  // tells them apart. Of a directory each change of a name is one, unless its time of modification
  // follows.
  bool every_write = false;
  // How long that may take: as a kernel writes back what is dirty.
  std::chrono::nanoseconds under_way_max = std::chrono::seconds(35);
};

// From an object's states in [from, end) of an incarnation: `states` are the object's, of all of
// the stretch. Times of states are those of the writes.
[[nodiscard]] std::vector<FileVersion> versions_of(const ObjectHistory& history,
                                                   const Instant& from, SequenceNumber end,
                                                   const VersionRule& rule);

}  // namespace mariner::uvfs

// Replay of the journal of an ext3 or ext4 file system, as a mount does it: what was promised to be
// in the file system and had not reached its place.
//
// All of it is written to the view's overlay, or (when there is an error) nothing. What a volume
// held when its machine was running or stopped suddenly is a file system only after that. Then, as
// at a mount, come orphans (mend_orphans.h).
#pragma once

#include <cstdint>

#include "ifsck/view.h"
#include "proto/error.h"

namespace mariner::ifsck {

struct Replay {
  // The superblock says that the journal is to be replayed. If it does not, nothing else was read.
  bool needed = false;
  std::uint64_t transactions = 0;
  std::uint64_t blocks = 0;   // that they wrote: each once
  std::uint64_t revoked = 0;  // were logged, and not to be written any more
  std::uint64_t fast_commits = 0;
  std::uint64_t fast_operations = 0;   // of these: names, ranges, inodes
  std::uint64_t orphans_released = 0;  // deleted while they were open
  std::uint64_t orphans_cut = 0;       // not yet cut off
  // A checksum ended the log before its end: as after a commit that was interrupted.
  bool cut = false;
  // The journal was given up by who wrote it, or is damaged: the file system is marked as one that
  // has errors.
  bool failed = false;
};

// Afterwards the journal is empty and the superblock says so, with counts of what is free that are
// the sums of those of the groups. One thread.
//
// kNotFound, kCorrupt, kInvalidArgument: as ExtVolume::open(). kCorrupt, too: the journal is
// damaged before its end, or names blocks that cannot be its. kInvalidArgument, too: the journal is
// on a device of its own, or has features that are not known. kLimit: fast commits that take too
// long. Others: as the past says.
[[nodiscard]] Result<Replay> replay_journal(View& view);

// A journal that is to be replayed and cannot be: it is empty from then on, or, where it says
// nothing that can be believed, there is none any more (its blocks are still marked). What it
// promised is lost, the file system is marked as one that has errors, and who was an orphan is not
// believed. Errors as above.
[[nodiscard]] Result<void> give_up_journal(View& view);

}  // namespace mariner::ifsck

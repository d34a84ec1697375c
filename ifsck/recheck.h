// A file system checked by what has changed since (or before) a moment when it was sound.
//
// It reads the changed blocks of metadata at both moments, and little else: what it costs does not
// depend on how large the file system is, nor on how many files it has. It finds whether something
// is wrong exactly as a census does; of what it finds, two things are told less exactly: who of two
// inodes claimed a block first, and in which directory an unchanged name stands of an inode that is
// not there any more (inode 0). What hangs under a directory that cannot be reached is not listed.
// One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "ifsck/baseline.h"
#include "ifsck/block_ledger.h"
#include "ifsck/ext_context.h"
#include "ifsck/finding.h"
#include "proto/error.h"

namespace mariner::ifsck {

class RecheckMemory;

struct Recheck {
  struct Options {
    std::size_t findings_max = 10'000;  // more are counted, not listed
    // Of checks of the same moments before; null: none is to follow.
    RecheckMemory* memory = nullptr;
    // Blocks that are claimed otherwise; where there was a check of the same moments, it has been
    // seen to.
    std::size_t claims_max = kClaimsMax;
  };

  std::uint64_t findings_all = 0;
  std::uint64_t derived = 0;  // of these: of bitmaps and counts
  std::vector<Finding> findings;
  std::uint64_t inodes_changed = 0;
  // What makes a sound one the next baseline.
  BaselineChange next;

  [[nodiscard]] bool sound() const { return findings_all == derived; }

  // `changed`: all blocks of the volume that may differ between both, and what the overlay has of
  // either. kInvalidArgument: `then` and `now` are not comparable, or too much was claimed: take a
  // census. Others: as the past says.
  [[nodiscard]] static Result<Recheck> run(const ExtContext& then, const ExtContext& now,
                                           const Baseline& known,
                                           const std::vector<BlockRange>& changed,
                                           const Options& options);
};

}  // namespace mariner::ifsck

// All of a file system, looked at once: who is in use, what each claims and names, and what does
// not agree.
//
// This is the full check, that takes as long as there are inodes and directories. It tells what is
// so at one moment; from there the incremental one goes on with what changed. Findings are what
// e2fsck would object to in the same state, read only. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ifsck/ext_layout.h"
#include "ifsck/ext_volume.h"
#include "ifsck/finding.h"
#include "proto/error.h"

namespace mariner::ifsck {

struct Baseline;

struct Census {
  struct Options {
    std::size_t findings_max = 10'000;  // more are counted, not listed
    // Is told now and then of how many inodes of all were looked at.
    std::function<void(std::uint64_t done, std::uint64_t all)> progress;
    // Is filled, but for its moment; good for a recheck if nothing but bitmaps and counts is wrong
    // (sound()). May be null.
    Baseline* keep = nullptr;
  };

  std::uint64_t inodes_in_use = 0;
  std::uint64_t directories = 0;
  std::uint64_t blocks_in_use = 0;
  std::uint64_t findings_all = 0;
  std::vector<Finding> findings;
  std::uint64_t derived = 0;  // of all findings: of bitmaps and counts

  // What all else is made from is right.
  [[nodiscard]] bool sound() const { return findings_all == derived; }

  // kInvalidArgument: the file system has features that are not understood here. Others: as the
  // past says.
  [[nodiscard]] static Result<Census> take(const ExtVolume& volume, const ExtLayout& layout,
                                           const Options& options);
};

}  // namespace mariner::ifsck

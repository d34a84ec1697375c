// Mends moments of a file system (ext2, ext3, ext4) for who reads them: those alone in which
// something cannot be read, and when it cannot (dissertation 4.5).
//
// A host without a journal leaves names whose inodes are not written yet, and inodes whose blocks
// are not: a moment in between is made what ifsck level 2 makes of it. The first time all of the
// file system is looked at; afterwards what has changed.
#pragma once

#include <cstddef>
#include <optional>
#include <set>

#include "ifsck/known_states.h"
#include "ifsck/overlay.h"
#include "ifsck/past.h"
#include "proto/error.h"
#include "proto/units.h"

namespace mariner::uvfs {

// One thread.
class LazyMender {
 public:
  static constexpr int kStatesMax =
      4;  // from which others are checked: each as large as a baseline
  static constexpr std::size_t kMomentsMax = 1'000'000;  // that are remembered

  // `past`, as it is without any replay, outlives it.
  explicit LazyMender(ifsck::Past& past) : past_(past) {}

  // Who opens it again has it mended, too: what was found in it is still there.
  [[nodiscard]] bool has_mended(SequenceNumber at) const { return mended_.contains(at); }
  // Makes `overlay` what the moment is mended with, its journal replayed. False: nothing was wrong,
  // or nothing can be done, and `overlay` is as it was. Errors: of the past.
  [[nodiscard]] Result<bool> mend(SequenceNumber at, ifsck::Overlay& overlay);

 private:
  ifsck::Past& past_;
  std::optional<ifsck::KnownStates> states_;
  int checks_ = 0;  // since there are states
  std::set<SequenceNumber> mended_;
};

}  // namespace mariner::uvfs

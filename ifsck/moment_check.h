// A moment of a volume becomes a file system: its journal is replayed, what is wrong is found by
// what has changed since a moment that is known, and mended, in an overlay.
//
// (Dissertation 4.4. Where the paper takes for granted that all is well before the window, this
// compares with a moment that was checked, so that its verdict is that of a full check.)
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ifsck/baseline.h"
#include "ifsck/completion.h"
#include "ifsck/finding.h"
#include "ifsck/journal.h"
#include "ifsck/known_states.h"
#include "ifsck/overlay.h"
#include "ifsck/past.h"
#include "ifsck/repair.h"
#include "ifsck/view.h"
#include "proto/error.h"
#include "proto/units.h"

namespace mariner::ifsck {

enum class Verdict : std::uint8_t {
  kClean,       // nothing is wrong with it, when its journal is replayed
  kRepairable,  // ... with what it was mended to
  kDamaged,     // something cannot be mended
};
// "clean".
[[nodiscard]] std::string_view verdict_name(Verdict verdict);

struct MomentReport {
  Verdict verdict{};
  SequenceNumber at;
  VersionTime time;
  std::uint8_t level = 1;
  Replay replay;
  std::string journal_damage;  // not empty: the journal was given up, because of this
  // The check was a full one; or since when (or until when) the changes were looked at.
  bool full = false;
  SequenceNumber since;
  std::uint64_t changed_blocks = 0;  // between both
  std::uint64_t findings_all = 0;
  std::vector<Finding> findings;
  bool sound = false;  // nothing but bitmaps and counts is wrong
  // What was under way and is complete now, as of a moment soon afterwards.
  std::vector<CompletedOperation> completed;
  SequenceNumber completed_as_of;
  std::string undone_because;  // not empty: some of it was undone, and why
  std::vector<Repair> repairs;
  std::vector<Finding> left;
  std::uint64_t blocks_mended = 0;  // in the overlay, that are not as replay had put them there
  View::Counters read;              // of the past
  // What owns blocks at the moment, before anything was mended, by what owned them at the known one
  // (null: the check was a full one).
  std::shared_ptr<const KeptBaseline> known;
  BaselineChange change;
};

struct MomentCheckOptions {
  // 1: everything, as for a writable view. 2: without bitmaps and counts, as for one that is read.
  // 3: one file or folder and the way to it (path_check.h); where something is wrong with these,
  // they are mended as for 2.
  std::uint8_t level = 1;
  std::string path;  // of level 3: absolute
  // Else the overlay gets what the journal promised, and nothing more.
  bool mend = true;
  // A full check need not be taken again soon: what it knows is kept with the states.
  bool keep = true;
  // (UB of the paper.) What was under way at the moment is completed by what was written within
  // this time: as long as kernels keep things back. 0: it is undone.
  std::chrono::nanoseconds after = std::chrono::seconds(35);
  std::size_t findings_max = 10'000;  // more are counted, not listed
  // Of a full check: how many inodes of all were looked at.
  std::function<void(std::uint64_t done, std::uint64_t all)> progress;
};

// `overlay` is empty, and is what makes `at` a file system afterwards. kNotFound,
// kInvalidArgument: there is none, or one that is not understood; or nothing is at the path.
// kCorrupt: one that cannot even be opened. kOutsideWindow, and others: as the past says.
[[nodiscard]] Result<MomentReport> check_moment(Past& past, SequenceNumber at, KnownStates& states,
                                                Overlay& overlay,
                                                const MomentCheckOptions& options);

}  // namespace mariner::ifsck

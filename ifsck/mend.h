// A file system repaired: operations that were under way are undone, and what cannot be so is set
// to what is, until a check finds nothing more.
//
// It goes in rounds: check, mend, check again. Inodes and directories by themselves come first,
// then how they hang together, then what is made of it, and quota files at the end. Repairs are in
// the view's overlay; what is not wrong stays as it is. A journal that is to be replayed is to be
// replayed before. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ifsck/baseline.h"
#include "ifsck/ext_context.h"
#include "ifsck/finding.h"
#include "ifsck/mend_work.h"
#include "ifsck/recheck.h"
#include "ifsck/repair.h"
#include "ifsck/view.h"
#include "proto/error.h"

namespace mariner::ifsck {

struct Mended {
  std::vector<Repair> repairs;  // in order
  std::uint64_t blocks = 0;     // that the overlay has now
  std::vector<Finding> left;    // empty: it is sound now
  unsigned rounds = 0;          // checks, the last of which found only what is left
  BaselineChange next;          // of mend_by_change(): as the last check told
};

// What a check has found: a census, or a recheck.
struct Checked {
  std::vector<Finding> findings;
  std::uint64_t findings_all = 0;  // more, if not all are listed
};

// 48 MB. Where there are more, these go first.
inline constexpr std::size_t kMendFindingsMax = 1'000'000;

struct MendOptions {
  // Checks a volume as it is now, with the overlay.
  std::function<Result<Checked>(const ExtContext& now)> check;
  // As MendWork::Options has them; may be null.
  std::function<std::vector<InodeNumber>()> directories;
  std::function<std::vector<InodeNumber>(GroupNumber first, GroupNumber end)> directories_in;
  const ExtLayout* like = nullptr;  // maybe the same; null: none
  unsigned rounds_max = 12;
  // Bitmaps and counts, too. If not, they are left as they are, and not told of.
  bool derived = true;
};

// What cannot be mended is in `left`; a missing root is. Errors: as a check or the past says.
[[nodiscard]] Result<Mended> mend(View& view, const MendOptions& options);

// What comes before all the rest, with what else was found being doubtful until then: descriptors
// that have inodes with names among those that were never used (mend_allocation.h). Empty: there
// are none, and nothing was written. `now` is to be opened and checked again otherwise.
// (At most kBelieveMax times: what is believed may name others.)
inline constexpr int kBelieveMax = 8;
[[nodiscard]] Result<std::vector<Repair>> mend_said_unused(const ExtContext& now,
                                                           std::span<const Finding> findings);

// By a census each time. `derived`: as MendOptions has it, here and below.
[[nodiscard]] Result<Mended> mend_in_full(View& view, bool derived = true);

// By what has changed since (or before) a moment that was sound; all as Recheck::run() has it,
// without what the view's overlay has. `first`: what was found of the view as it is, at most
// kMendFindingsMax of it; nothing: it is found again. `memory`: of checks of both before; may be
// null.
[[nodiscard]] Result<Mended> mend_by_change(View& view, const ExtContext& then,
                                            const Baseline& known,
                                            const std::vector<BlockRange>& changed,
                                            bool derived = true, std::optional<Recheck> first = {},
                                            RecheckMemory* memory = nullptr);

}  // namespace mariner::ifsck

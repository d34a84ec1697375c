// Decides what the log must write again for kept moments (index::KeptMoment), before it gives
// records up or the base of blocks becomes another one.
//
// A kept moment finds a block, in this order: in what was written again for it, in the versions
// that the log has, in the base. So what it shows must be written again as soon as its version is
// given up and is not what the base is from then on.
//
// A computation: see index::BlockReader.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "index/version_lookup.h"
#include "proto/units.h"
#include "server/volume/base_map.h"

namespace mariner::volume {

// All kept moments from one to another show `range` as it was at the last one.
struct KeptShown {
  BlockRange range;
  SequenceNumber from;
  SequenceNumber through;  // inclusive
  bool zeros = false;
  friend bool operator==(const KeptShown&, const KeptShown&) = default;
};

// What the base of some blocks will be.
struct NextBase {
  index::LocatedRun run;
  bool in_log = false;  // written again there, as bytes
};

class KeptJudge {
 public:
  struct Facts {
    std::span<const index::KeptMoment> kept;  // before the horizon, by number
    SequenceNumber given_up;                  // the last write that is being given up
    std::uint64_t end_ordinal = 0;            // and everything else below it
  };

  // All outlive it.
  KeptJudge(const index::VersionLookup& lookup, const BaseMap& base, Facts facts)
      : lookup_(lookup), base_(base), facts_(facts) {}

  // Of the blocks in `ranges`, which ascend. `become`: where the base changes; nowhere twice.
  [[nodiscard]] std::vector<KeptShown> judge(std::span<const BlockRange> ranges,
                                             std::vector<NextBase> become) const;

 private:
  // Blocks that are looked at in one go: bounds the memory.
  static constexpr std::uint64_t kPartBlocks = 4096;
  struct Part;
  void judge_part(BlockRange range, std::span<const NextBase> become,
                  std::vector<KeptShown>& out) const;
  [[nodiscard]] bool is_given_up(const index::LocatedRun& run) const;
  [[nodiscard]] bool reads_as_zeros(const index::LocatedRun& run, Lbn block) const;

  const index::VersionLookup& lookup_;
  const BaseMap& base_;
  const Facts facts_;
};

// Whether two runs are of one version.
[[nodiscard]] bool is_same_version(const index::LocatedRun& a, const index::LocatedRun& b);

}  // namespace mariner::volume

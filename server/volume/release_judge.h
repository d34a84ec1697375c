// Whether what the log holds of some blocks may be given up: invariant 5 of design.md.
//
// A version older than the horizon is free where it was replaced before the horizon. Where it is
// still the newest and the image holds it durably, the image becomes its blocks' base. Where it was
// replaced since, it is the oldest version that any moment needs, so that it can become the base
// too, logged once more as a before-image. Rollbacks count: a base that a moment from the horizon
// on goes back to is not replaced.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "index/stored_index.h"
#include "proto/units.h"
#include "server/volume/base_map.h"
#include "server/volume/kept_judge.h"
#include "server/volume/track_digest.h"

namespace mariner::volume {

class ReleaseJudge {
 public:
  enum class Need {
    kNone,
    kHistory,  // a moment from the horizon on needs it
    kImage,    // the image does not hold it durably yet
  };
  struct Verdict {
    Need need = Need::kNone;
    // If nothing is needed: the blocks whose base is the image from now on ...
    std::vector<BlockRange> to_base;
    // ... of those and of zeros, the ones whose older base stands in the log as a before-image that
    // stays, which must be void first ...
    std::vector<BlockRange> to_rebase;
    // ... and those that read as zero, which the image may have kept for the history's sake.
    std::vector<BlockRange> to_punch;
    // The blocks whose contents as of the horizon must be logged as a before-image, in the place of
    // an older one.
    std::vector<BlockRange> to_move;
    // What kept moments show and would lose by all this: it must be written again for them first.
    std::vector<KeptShown> to_keep;
  };
  struct Facts {
    SequenceNumber horizon;  // the last write that every moment from the horizon on contains
    SequenceNumber durable;  // in the image, which may be behind the horizon
    bool has_image = true;   // else nothing that is current is ever free
    // What is given up: the writes up to this one, and the before-images below this ordinal.
    SequenceNumber given_up;
    std::uint64_t end_ordinal = 0;
    std::span<const index::KeptMoment> kept{};  // before the horizon, by number
  };

  // What is known without a look into the index. Only when nothing is needed, judge() is of use.
  [[nodiscard]] static Need judge_numbers(const VolumeDigest& digest, const Facts& facts);

  // Both outlive it. A verdict counts when the lookup's computation is complete.
  ReleaseJudge(const index::VersionLookup& lookup, const BaseMap& base, Facts facts);

  // Of the blocks in `ranges`, which ascend.
  [[nodiscard]] Verdict judge(std::span<const BlockRange> ranges) const;

 private:
  [[nodiscard]] Need judge_current(const index::LocatedRun& part, Verdict& verdict) const;
  [[nodiscard]] std::vector<index::LocatedRun> take_hidden(std::vector<index::LocatedRun> current,
                                                           std::vector<index::LocatedRun>& become,
                                                           Verdict& verdict) const;
  void find_rebases(std::span<const BlockRange> ranges, Verdict& verdict) const;
  [[nodiscard]] Need judge_replaced(const index::LocatedRun& part, Verdict& verdict) const;
  // `become`: what is the base from now on.
  [[nodiscard]] bool keeps_what_others_show(std::span<const BlockRange> ranges,
                                            std::span<const index::LocatedRun> become) const;
  [[nodiscard]] bool is_given_up(const index::LocatedRun& run) const;
  [[nodiscard]] bool base_is_needed(BlockRange range) const;
  [[nodiscard]] bool has_before_image(BlockRange range) const;

  const index::VersionLookup& lookup_;
  const BaseMap& base_;
  const Facts facts_;
  std::vector<SequenceNumber> others_;  // older moments that a later rollback goes back to
  SequenceNumber newest_;
};

}  // namespace mariner::volume

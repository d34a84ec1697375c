// Whether a record of the log may be given up: invariant 5 of design.md.
//
// A record older than the horizon is free where its version was replaced before the horizon. Where
// it is still the newest and the image holds it durably, the image becomes its blocks' base. Where
// it was replaced since, it is the oldest version that any moment needs, so that it can become the
// base too, logged once more as a before-image. Rollbacks count: a base that a moment from the
// horizon on goes back to is not replaced.
#pragma once

#include <vector>

#include "index/stored_index.h"
#include "proto/units.h"
#include "server/volume/base_map.h"

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
    // Of a free record: the blocks whose base is the image from now on ...
    std::vector<BlockRange> to_base;
    // ... of those and of zeros, the ones whose older base stands in the log as a before-image,
    // which must be void first ...
    std::vector<BlockRange> to_rebase;
    // ... and those that read as zero, which the image may have kept for the history's sake.
    std::vector<BlockRange> to_punch;
    // The blocks whose contents as of the horizon must be logged as a before-image, in the place of
    // an older one.
    std::vector<BlockRange> to_move;
  };
  struct Facts {
    SequenceNumber horizon;  // the last write that every moment from the horizon on contains
    SequenceNumber durable;  // in the image, which may be behind the horizon
    bool has_image = true;   // else nothing that is current is ever free
  };

  // Both outlive it. A verdict counts when the lookup's computation is complete.
  ReleaseJudge(const index::VersionLookup& lookup, const BaseMap& base, Facts facts);

  [[nodiscard]] Verdict judge(const logging::Record& record,
                              const logging::LogLocation& location) const;

 private:
  [[nodiscard]] Verdict judge_version(const logging::Record& record,
                                      const logging::LogLocation& location) const;

  [[nodiscard]] Need judge_current(const logging::Record& record, const index::LocatedRun& part,
                                   Verdict& verdict) const;
  [[nodiscard]] Need judge_replaced(const index::LocatedRun& part, Verdict& verdict) const;
  [[nodiscard]] bool base_is_needed(BlockRange range) const;
  [[nodiscard]] bool has_before_image(BlockRange range) const;

  const index::VersionLookup& lookup_;
  const BaseMap& base_;
  const Facts facts_;
  std::vector<SequenceNumber> others_;  // older moments that a later rollback goes back to
  SequenceNumber newest_;
};

}  // namespace mariner::volume

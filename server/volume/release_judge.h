// Whether a record of the log may be given up: invariant 5 of design.md.
//
// A record is free when no moment from the horizon on needs it: its version was replaced before the
// horizon; or it is the newest version of its blocks, is older than the horizon, and the image
// holds it durably, so that the image becomes its base. Rollbacks count: what a moment from the
// horizon on goes back to is needed.
#pragma once

#include <vector>

#include "index/version_index.h"
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
  };
  struct Facts {
    SequenceNumber horizon;  // the last write that every moment from the horizon on contains
    SequenceNumber durable;  // in the image
    bool has_image = true;   // else nothing that is current is ever free
  };

  // Both outlive it.
  ReleaseJudge(const index::VersionIndex& index, const BaseMap& base, Facts facts);

  [[nodiscard]] Verdict judge(const logging::Record& record,
                              const logging::LogLocation& location) const;

 private:
  [[nodiscard]] Verdict judge_version(const logging::Record& record,
                                      const logging::LogLocation& location) const;

  [[nodiscard]] bool base_is_needed(BlockRange range) const;

  const index::VersionIndex& index_;
  const BaseMap& base_;
  const Facts facts_;
  std::vector<SequenceNumber> others_;  // older moments that a later rollback goes back to
  SequenceNumber newest_;
};

}  // namespace mariner::volume

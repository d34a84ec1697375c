// What a start finds out about a volume: from the log's records, one after another, and from what
// is kept durably outside of the log about what the log has given up.
//
// Owner's thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "index/version_index.h"
#include "logging/record.h"
#include "proto/error.h"
#include "proto/units.h"
#include "server/volume/headway.h"
#include "server/volume/unapplied_bytes.h"

namespace mariner::volume {

// How far the log has given up a volume's history. Kept durably outside of the log, before the log
// gives it up.
struct Horizon {
  index::IndexMoment moment;              // no moment before it can be opened
  SequenceNumber last;                    // every number up to it has been used
  SequenceNumber frontier;                // durable in the image
  SequenceNumber given_up;                // the last write whose record the log has given up
  std::vector<index::KeptMoment> kept{};  // older ones that can still be opened, by number
};

// What recovery found out about a volume.
struct VolumeHistory {
  SequenceNumber last;  // the highest number seen in the log
  VersionTime last_time;
  SequenceNumber frontier;  // durable in the image, as far as the log knows
  SequenceNumber settled;   // every number up to it was durable or void

  // Numbers [first, last] of which the log has no trace: those above `settled` never became durable
  // and are void; at or below it they are lost.
  struct Hole {
    SequenceNumber first;
    SequenceNumber last;
  };
  std::vector<Hole> holes;  // ascending
  std::uint64_t payload_bytes = 0;
  UnappliedBytes unapplied_bytes;  // what writes behind the image's frontier wrote, zeros included
  // How far the image has got behind its frontier: from where it is kept.
  Headway headway;
  // What writes behind the image's frontier may have changed, but for what the headway says is
  // there, and when the first one came: from the index, when it has all records.
  std::vector<BlockRange> unapplied;
  VersionTime unapplied_since;

  // What the log has given up, from where it is kept: after the last add().
  void set_horizon(const Horizon& horizon);

  // The holes at or below `settled`: acknowledged writes that are lost.
  [[nodiscard]] std::vector<Hole> lost() const;

  // Takes the next record that recovery found of a volume with `blocks` blocks. True: it belongs
  // into the index. kCorrupt, and nothing is changed, when the record cannot follow what was seen
  // before or lies outside.
  Result<bool> add(const logging::Record& record, BlockCount blocks);

 private:
  void reach(SequenceNumber first, SequenceNumber until);
};

}  // namespace mariner::volume

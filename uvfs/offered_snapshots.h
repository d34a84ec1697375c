// The moments of a volume that are listed as snapshots, by their names (snapshot_times.h), and what
// any such name means.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "ifsck/past.h"
#include "proto/error.h"
#include "proto/units.h"

namespace mariner::uvfs {

struct Mark {
  std::string name;
  SequenceNumber at;
};

// Those of snapshot_times(), and of marks; no moment twice. Errors, here and below: of the past.
[[nodiscard]] Result<std::map<std::string, SequenceNumber>> offered_snapshots(
    ifsck::Past& past, std::span<const Mark> marks);

// Of a mark, or of any second up to the newest write. kNotFound: it is no such name, or later.
[[nodiscard]] Result<SequenceNumber> snapshot_moment(ifsck::Past& past, std::span<const Mark> marks,
                                                     std::string_view name);

}  // namespace mariner::uvfs

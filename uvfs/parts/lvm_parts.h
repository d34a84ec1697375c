// Logical volumes whose physical ones are parts of a volume.
#pragma once

#include <string>
#include <vector>

#include "ifsck/view.h"
#include "proto/error.h"
#include "proto/units.h"
#include "uvfs/parts/disk_parts.h"

namespace mariner::uvfs {

// Where a physical volume is.
struct LvmPlace {
  std::string name;  // for notes: "p2", "the volume"
  ByteRange on_volume;
};

// Adds logical volumes to `to`: as parts, without their contents, or as left out; with notes.
// Errors: as the past says.
[[nodiscard]] Result<void> add_lvm_parts(ifsck::View& view, const std::vector<LvmPlace>& places,
                                         DiskParts& to);

}  // namespace mariner::uvfs

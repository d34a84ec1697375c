// A logical unit as a third-party copy sees it, and how one is found.
#pragma once

#include <functional>
#include <memory>

#include "server/scsi/disk.h"
#include "server/scsi/extended_copy.h"
#include "server/scsi/unit_reservations.h"
#include "server/scsi/unit_sanitize.h"

namespace mariner::scsi {

// A logical unit that a copy may use.
struct CopyUnit {
  std::shared_ptr<Disk> disk;
  std::shared_ptr<UnitReservations> reservations;
  std::shared_ptr<UnitSanitize> sanitize;  // null: never
};
// The unit of which `target` is a designator, if this initiator may use it; null otherwise.
using FindCopyUnit = std::function<std::shared_ptr<CopyUnit>(const CopyTarget& target,
                                                             const InitiatorPort& initiator)>;

}  // namespace mariner::scsi

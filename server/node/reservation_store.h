// Persistent reservations of a logical unit in the node's store.
#pragma once

#include <string>

#include "proto/meta.pb.h"
#include "server/node/meta_store.h"
#include "server/scsi/unit_reservations.h"

namespace mariner::node {

// What a device needs for the unit of this name (MetaStore::unit_of_...), with what was saved of
// it. `store` outlives the device. kCorrupt when what was saved cannot be read.
Result<scsi::ReservationOptions> reservation_options(MetaStore& store, const std::string& unit);

// There and back. kCorrupt for what is no state of reservations.
meta::Reservations to_meta(const scsi::Reservations& state);
Result<scsi::Reservations> from_meta(const meta::Reservations& saved);

}  // namespace mariner::node

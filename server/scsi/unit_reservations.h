// The reservations of one logical unit at work: the persistent ones (SPC-4 5.13), and those of
// RESERVE(6), which a host that has never heard of the others may use (SPC-2 5.5.1).
//
// The two exclude each other: while there are registrations RESERVE(6) conflicts, and while a unit
// is reserved by it, PERSISTENT RESERVE does. Owner's thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "proto/error.h"
#include "server/scsi/cdb.h"
#include "server/scsi/nexus.h"
#include "server/scsi/reservations.h"
#include "server/scsi/target_device.h"

namespace mariner::scsi {

struct ReservationOptions {
  // As they were saved; empty without.
  Reservations restored;
  // Makes what it is given durable, or forgets what was saved if it does not persist, and then
  // calls `done`, perhaps at once. One call at a time. Null: nothing persists beyond the device.
  std::function<void(const Reservations&, UniqueFunction<void(Result<void>)> done)> save;
};

class UnitReservations : public std::enable_shared_from_this<UnitReservations> {
 public:
  explicit UnitReservations(ReservationOptions options)
      : save_(std::move(options.save)), state_(std::move(options.restored)) {}

  // Whether the command ends with RESERVATION CONFLICT.
  [[nodiscard]] bool conflicts(Operation operation, const Decoded& decoded,
                               const InitiatorNexus& nexus) const;

  // RESERVE(6) and RELEASE(6) that do not conflict.
  void reserve(const std::shared_ptr<InitiatorNexus>& nexus) { reserved_by_ = nexus; }
  void release(const InitiatorNexus& nexus);
  // A reset of the unit ends what RESERVE(6) began.
  void reset() { reserved_by_.reset(); }

  [[nodiscard]] const Reservations& state() const { return state_; }
  // Applies the service action as soon as those before it are durable. `done` hears what came of it
  // when it is durable itself; kInternal and the like when it could not be made so: nothing changed
  // then.
  using Applied = UniqueFunction<void(Result<Reservations::Outcome>)>;
  void apply(ReserveOut out, NexusId from, Applied done);

 private:
  struct Waiting {
    ReserveOut out;
    NexusId from;
    Applied done;
  };
  void apply_next();

  std::function<void(const Reservations&, UniqueFunction<void(Result<void>)>)> save_;
  Reservations state_;
  std::deque<Waiting> waiting_;  // bounded by the commands that the sessions admit
  bool saving_ = false;
  std::weak_ptr<InitiatorNexus> reserved_by_;
};

}  // namespace mariner::scsi

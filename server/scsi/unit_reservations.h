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
  // Whether `save` is given what does not persist, too, and keeps it as it is: another node may
  // have to go on with the unit. A node that is gone is no loss of power, which is what APTPL is
  // about.
  bool saves_all = false;
};

class UnitReservations : public std::enable_shared_from_this<UnitReservations> {
 public:
  explicit UnitReservations(ReservationOptions options)
      : save_(std::move(options.save)),
        saves_all_(options.saves_all),
        state_(std::move(options.restored)) {}

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

  // From now on it is as another node kept it: registrations, holder and persistence as given. It
  // is not saved, since it was kept, and nobody is told. The generation goes on above the given one
  // and the own, so that whoever remembers one of either sees that it is not the same any more.
  // What RESERVE(6) began is over: the other node knew nothing of it.
  //
  // Service actions that have not been answered yet end with kUnavailable, because they were let in
  // when this was not known: those that wait at once, and the one that is being saved when its
  // save() calls back. Whether it became part of what was kept is decided there (a save of before
  // the last election is to be refused); it is not applied to what was given.
  void replace(Reservations kept);

 private:
  struct Waiting {
    ReserveOut out;
    NexusId from;
    Applied done;
  };
  void apply_next();

  std::function<void(const Reservations&, UniqueFunction<void(Result<void>)>)> save_;
  const bool saves_all_;
  Reservations state_;
  std::uint64_t replaced_ = 0;   // how often; tells saves of before from those of after
  std::deque<Waiting> waiting_;  // bounded by the commands that the sessions admit
  bool saving_ = false;
  std::weak_ptr<InitiatorNexus> reserved_by_;
};

}  // namespace mariner::scsi

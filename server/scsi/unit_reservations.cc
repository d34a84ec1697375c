#include "server/scsi/unit_reservations.h"

#include <utility>

namespace mariner::scsi {
namespace {

// Of commands that some values of their fields keep out and others do not, those that pass in the
// presence of every reservation (SPC-4 5.13.1, SBC-3 table 13; for RESERVE(6) SPC-2 5.5.1).
bool passes_always(const Decoded& decoded) {
  if (const auto* prevent = std::get_if<PreventAllow>(&decoded)) return !prevent->prevent;
  if (const auto* command = std::get_if<StartStopUnit>(&decoded)) {
    return command->action == StartStopUnit::Action::kStart ||
           command->action == StartStopUnit::Action::kLoad;
  }
  return false;
}

// What another's RESERVE(6) does not keep out (SPC-2 table 10).
bool passes_reserve6(Operation operation) {
  switch (operation) {
    case Operation::kInquiry:
    case Operation::kReportLuns:
    case Operation::kLogSense:
    case Operation::kRequestSense:
    case Operation::kRelease6: return true;
    default: return false;
  }
}

Error replaced_meanwhile() {
  return {ErrorCode::kUnavailable, "the reservations were taken over from another node meanwhile"};
}

}  // namespace

bool UnitReservations::conflicts(Operation operation, const Decoded& decoded,
                                 const InitiatorNexus& nexus) const {
  const bool persistent =
      operation == Operation::kPersistentReserveIn || operation == Operation::kPersistentReserveOut;
  if (const auto holder = reserved_by_.lock()) {
    if (persistent) return true;
    return holder.get() != &nexus && !passes_reserve6(operation) && !passes_always(decoded);
  }
  if (operation == Operation::kReserve6 || operation == Operation::kRelease6) {
    return !state_.registrations().empty();
  }
  if (passes_always(decoded)) return false;
  return state_.conflicts(reservation_access(operation), nexus.id());
}

void UnitReservations::release(const InitiatorNexus& nexus) {
  if (reserved_by_.lock().get() == &nexus) reserved_by_.reset();
}

void UnitReservations::apply(ReserveOut out, NexusId from, Applied done) {
  waiting_.push_back({std::move(out), std::move(from), std::move(done)});
  apply_next();
}

void UnitReservations::apply_next() {
  const auto alive = shared_from_this();  // whoever is answered may drop the unit
  while (!saving_ && !waiting_.empty()) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    Reservations changed = state_;
    Reservations::Outcome outcome = changed.apply(next.out, next.from);
    const bool kept = saves_all_ || changed.persists() || state_.persists();
    if (!save_ || changed == state_ || !kept) {
      state_ = std::move(changed);
      next.done(std::move(outcome));
      continue;
    }
    saving_ = true;
    const Reservations& to_save = changed;
    save_(to_save,
          [self = shared_from_this(), before = replaced_, changed, outcome = std::move(outcome),
           done = std::move(next.done)](Result<void> saved) mutable {
            self->saving_ = false;
            if (before != self->replaced_) {
              done(replaced_meanwhile());
            } else if (saved) {
              self->state_ = std::move(changed);
              done(std::move(outcome));
            } else {
              done(saved.error());
            }
            self->apply_next();
          });
  }
}

void UnitReservations::replace(Reservations kept) {
  ++replaced_;
  state_ = kept.following(state_.generation());
  reserved_by_.reset();
  for (Waiting& waiting : std::exchange(waiting_, {})) waiting.done(replaced_meanwhile());
}

}  // namespace mariner::scsi

#include "server/scsi/reservations.h"

#include <algorithm>

#include "proto/check.h"

namespace mariner::scsi {
namespace {

using enum ReservationType;

// Bytes of the parameter list, for sense data.
constexpr std::uint16_t kAtActionKey = 8;
constexpr std::uint16_t kAtFlags = 20;
constexpr std::uint8_t kSpecifiesPortsBit = 3;
constexpr std::uint16_t kAtTransportIds = 24;

bool of_all_registrants(ReservationType type) {
  return type == kWriteExclusiveAllRegistrants || type == kExclusiveAccessAllRegistrants;
}

// Everybody who is registered may write.
bool admits_registrants(ReservationType type) {
  return of_all_registrants(type) || type == kWriteExclusiveRegistrantsOnly ||
         type == kExclusiveAccessRegistrantsOnly;
}

bool excludes_readers(ReservationType type) {
  return type == kExclusiveAccess || type == kExclusiveAccessRegistrantsOnly ||
         type == kExclusiveAccessAllRegistrants;
}

bool is_of(const Registration& registration, const NexusId& nexus) {
  return registration.nexus == nexus;
}

// The nexuses of `port` that a registration concerns (SPC-4 6.16.3, ALL_TG_PT).
std::vector<NexusId> nexuses_of(const InitiatorPort& port, const ReserveOut& out,
                                const NexusId& from) {
  if (!out.all_target_ports) return {{port, from.target_port}};
  std::vector<NexusId> nexuses;
  for (const std::uint16_t target_port : out.target_ports) nexuses.push_back({port, target_port});
  return nexuses;
}

}  // namespace

std::optional<ReservationType> reservation_type(std::uint8_t code) {
  switch (static_cast<ReservationType>(code)) {
    case kWriteExclusive:
    case kExclusiveAccess:
    case kWriteExclusiveRegistrantsOnly:
    case kExclusiveAccessRegistrantsOnly:
    case kWriteExclusiveAllRegistrants:
    case kExclusiveAccessAllRegistrants: return static_cast<ReservationType>(code);
  }
  return std::nullopt;
}

Reservations Reservations::restored(Kept kept) {
  Reservations made;
  made.generation_ = kept.generation;
  made.persists_ = kept.persists;
  made.registrations_ = std::move(kept.registrations);
  made.reservation_ = std::move(kept.reservation);
  return made;
}

Reservations Reservations::following(std::uint32_t generation) const {
  Reservations next = *this;
  next.generation_ = std::max(generation_, generation) + 1;
  return next;
}

const Registration* Reservations::find(const NexusId& nexus) const {
  const auto found =
      std::ranges::find_if(registrations_, [&](const Registration& r) { return is_of(r, nexus); });
  return found == registrations_.end() ? nullptr : &*found;
}

Registration* Reservations::own(const NexusId& nexus) {
  return const_cast<Registration*>(std::as_const(*this).find(nexus));
}

bool Reservations::all_registrants_hold() const {
  return reservation_ && of_all_registrants(reservation_->type);
}

bool Reservations::holds(const NexusId& nexus) const {
  if (!reservation_) return false;
  const Registration* own = find(nexus);
  if (own == nullptr) return false;
  return of_all_registrants(reservation_->type) || is_of(*own, reservation_->holder);
}

bool Reservations::conflicts(ReservationAccess access, const NexusId& from) const {
  if (!reservation_ || holds(from)) return false;
  switch (access) {
    case ReservationAccess::kFree: return false;
    case ReservationAccess::kReads:
      if (!excludes_readers(reservation_->type)) return false;
      break;
    case ReservationAccess::kWrites: break;
  }
  return !admits_registrants(reservation_->type) || find(from) == nullptr;
}

void Reservations::tell(Attention attention, const NexusId& except, Effects& effects) const {
  for (const Registration& registration : registrations_) {
    if (!is_of(registration, except)) {
      effects.attentions.emplace_back(registration.nexus, attention);
    }
  }
}

Reservations::Outcome Reservations::apply(const ReserveOut& out, const NexusId& from) {
  using Action = ReserveOut::Action;
  const bool registers =
      out.action == Action::kRegister || out.action == Action::kRegisterAndIgnoreExistingKey;
  if (!registers) {
    const Registration* own = find(from);
    if (own == nullptr || own->key != out.key) return Conflict{};
  }
  switch (out.action) {
    case Action::kRegister: return do_register(out, from, false);
    case Action::kRegisterAndIgnoreExistingKey: return do_register(out, from, true);
    case Action::kReserve: return do_reserve(out, from);
    case Action::kRelease: return do_release(out, from);
    case Action::kClear: return do_clear(from);
    case Action::kPreempt:
    case Action::kPreemptAndAbort: return do_preempt(out, from);
    case Action::kRegisterAndMove: return do_move(out, from);
  }
  CHECK_MSG(false, "no such service action");
}

// SPC-4 5.13.7. What the nexus may that asks decides; ALL_TG_PT does the same for its initiator
// port's other nexuses, unless one of them has another key.
Reservations::Outcome Reservations::do_register(const ReserveOut& out, const NexusId& from,
                                                bool ignore_key) {
  if (out.specifies_ports && ignore_key) return invalid_parameter(kAtFlags, kSpecifiesPortsBit);
  Effects effects;
  const Registration* registered = find(from);
  if (!ignore_key && out.key != (registered == nullptr ? 0 : registered->key)) return Conflict{};
  if (registered == nullptr && out.action_key == 0) return effects;
  if (registered != nullptr && out.specifies_ports) {
    return invalid_parameter(kAtFlags, kSpecifiesPortsBit);
  }
  for (const NexusId& nexus : nexuses_of(from.initiator, out, from)) {
    const Registration* other = find(nexus);
    if (other != nullptr && !ignore_key && other->key != out.key) return Conflict{};
  }
  if (out.action_key == 0) {
    for (const NexusId& nexus : nexuses_of(from.initiator, out, from)) unregister(nexus, effects);
  } else {
    Outcome outcome = register_new(out, from);
    if (!std::holds_alternative<Effects>(outcome)) return outcome;
  }
  persists_ = out.persists;
  ++generation_;
  return effects;
}

// All or nothing: a specified port that is registered already, or no room, refuses them all.
Reservations::Outcome Reservations::register_new(const ReserveOut& out, const NexusId& from) {
  std::vector<NexusId> wanted = nexuses_of(from.initiator, out, from);
  const Sense no_room{SenseKey::kIllegalRequest, asc::kInsufficientRegistrationResources};
  for (const InitiatorPort& port : out.ports) {
    for (NexusId& nexus : nexuses_of(port, out, from)) {
      if (find(nexus) != nullptr || std::ranges::find(wanted, nexus) != wanted.end()) {
        return invalid_parameter(kAtTransportIds);
      }
      if (wanted.size() > kRegistrationsMax) return no_room;
      wanted.push_back(std::move(nexus));
    }
  }
  const auto added =
      std::ranges::count_if(wanted, [&](const NexusId& nexus) { return find(nexus) == nullptr; });
  if (registrations_.size() + static_cast<std::size_t>(added) > kRegistrationsMax) {
    return no_room;
  }
  for (const NexusId& nexus : wanted) {
    if (Registration* other = own(nexus)) {
      other->key = out.action_key;
    } else {
      registrations_.push_back({nexus, out.action_key});
    }
  }
  return Effects{};
}

// SPC-4 5.13.11.2.3: with the holder its reservation goes, and where others could rely on it they
// are told.
void Reservations::unregister(const NexusId& nexus, Effects& effects) {
  const bool held = holds(nexus);
  std::erase_if(registrations_, [&](const Registration& r) { return is_of(r, nexus); });
  if (!held) return;
  const ReservationType type = reservation_->type;
  if (of_all_registrants(type) && !registrations_.empty()) return;
  reservation_.reset();
  if (admits_registrants(type)) tell(Attention::kReservationsReleased, nexus, effects);
}

// SPC-4 5.13.9.
Reservations::Outcome Reservations::do_reserve(const ReserveOut& out, const NexusId& from) {
  const std::optional<ReservationType> type = reservation_type(out.type);
  if (out.scope != 0) return invalid_field_in_cdb(2, std::uint8_t{7});
  if (!type) return invalid_field_in_cdb(2, std::uint8_t{3});
  if (reservation_) {
    if (!holds(from) || reservation_->type != *type) return Conflict{};
    return Effects{};
  }
  reservation_ = Reservation{*type, find(from)->nexus};
  return Effects{};
}

// SPC-4 5.13.11.2.2.
Reservations::Outcome Reservations::do_release(const ReserveOut& out, const NexusId& from) {
  Effects effects;
  if (!holds(from)) return effects;
  if (out.scope != 0 || reservation_type(out.type) != reservation_->type) {
    return Sense{SenseKey::kIllegalRequest, asc::kInvalidReleaseOfPersistentReservation};
  }
  const ReservationType type = reservation_->type;
  reservation_.reset();
  if (admits_registrants(type)) tell(Attention::kReservationsReleased, from, effects);
  return effects;
}

// SPC-4 5.13.11.2.6.
Reservations::Outcome Reservations::do_clear(const NexusId& from) {
  Effects effects;
  tell(Attention::kReservationsPreempted, from, effects);
  registrations_.clear();
  reservation_.reset();
  ++generation_;
  return effects;
}

bool Reservations::remove_with_key(std::optional<std::uint64_t> key, const NexusId& except,
                                   Effects& effects) {
  bool any = false;
  std::erase_if(registrations_, [&](const Registration& registration) {
    if (key && registration.key != *key) return false;
    any = true;
    if (is_of(registration, except)) return false;
    effects.attentions.emplace_back(registration.nexus, Attention::kRegistrationsPreempted);
    return true;
  });
  return any;
}

// SPC-4 5.13.11.2.4 and figure 5.
Reservations::Outcome Reservations::do_preempt(const ReserveOut& out, const NexusId& from) {
  Effects effects;
  const bool all_hold = all_registrants_hold();
  if (out.action_key == 0 && !all_hold) return invalid_parameter(kAtActionKey);
  const bool of_holder = reservation_ && !all_hold && [&] {
    const Registration* holder = find(reservation_->holder);
    return holder != nullptr && holder->key == out.action_key;
  }();
  const bool takes_over = of_holder || (all_hold && out.action_key == 0);
  if (!takes_over) {
    // An own key that nobody else has removes nobody; the own registration stays.
    if (!remove_with_key(out.action_key, from, effects)) return Conflict{};
    ++generation_;
    return effects;
  }
  const std::optional<ReservationType> type = reservation_type(out.type);
  if (out.scope != 0) return invalid_field_in_cdb(2, std::uint8_t{7});
  if (!type) return invalid_field_in_cdb(2, std::uint8_t{3});
  remove_with_key(all_hold ? std::nullopt : std::optional(out.action_key), from, effects);
  const bool other_type = reservation_->type != *type;
  reservation_ = Reservation{*type, find(from)->nexus};
  if (other_type) tell(Attention::kReservationsReleased, from, effects);
  ++generation_;
  return effects;
}

// SPC-4 5.13.8.
Reservations::Outcome Reservations::do_move(const ReserveOut& out, const NexusId& from) {
  if (!holds(from)) return Conflict{};
  if (all_registrants_hold()) return Conflict{};
  if (out.action_key == 0) return invalid_parameter(kAtActionKey);
  CHECK(out.ports.size() == 1);
  const NexusId to{out.ports.front(), out.target_port};
  if (is_of(*find(from), to)) return invalid_parameter(kAtTransportIds);
  Effects effects;
  if (Registration* other = own(to)) {
    other->key = out.action_key;
  } else {
    if (registrations_.size() >= kRegistrationsMax) {
      return Sense{SenseKey::kIllegalRequest, asc::kInsufficientRegistrationResources};
    }
    registrations_.push_back({to, out.action_key});
  }
  reservation_->holder = find(to)->nexus;
  if (out.unregister) {
    std::erase_if(registrations_, [&](const Registration& r) { return is_of(r, from); });
  }
  persists_ = out.persists;
  ++generation_;
  return effects;
}

}  // namespace mariner::scsi

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
  return registration.nexus.initiator == nexus.initiator &&
         (registration.all_target_ports || registration.nexus.target_port == nexus.target_port);
}

NexusId address_of(const Registration& registration) {
  return {registration.nexus.initiator,
          registration.all_target_ports ? std::uint16_t{0} : registration.nexus.target_port};
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

Reservations Reservations::restored(std::vector<Registration> registrations,
                                    std::optional<Reservation> reservation) {
  Reservations made;
  made.persists_ = true;
  made.registrations_ = std::move(registrations);
  made.reservation_ = std::move(reservation);
  return made;
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
      effects.attentions.emplace_back(address_of(registration), attention);
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

// SPC-4 5.13.7.
Reservations::Outcome Reservations::do_register(const ReserveOut& out, const NexusId& from,
                                                bool ignore_key) {
  if (out.specifies_ports && ignore_key) return invalid_parameter(kAtFlags, kSpecifiesPortsBit);
  Effects effects;
  Registration* registered = own(from);
  if (registered == nullptr) {
    if (!ignore_key && out.key != 0) return Conflict{};
    if (out.action_key == 0) return effects;
    // All or nothing: one that is registered already, or no room, refuses them all.
    std::vector<Registration> added{{from, out.all_target_ports, out.action_key}};
    for (const InitiatorPort& port : out.ports) {
      const NexusId other{port, from.target_port};
      const bool twice = std::ranges::any_of(
          added, [&](const Registration& r) { return r.nexus.initiator == port; });
      if (twice || find(other) != nullptr) return invalid_parameter(kAtTransportIds);
      added.push_back({other, out.all_target_ports, out.action_key});
    }
    if (registrations_.size() + added.size() > kRegistrationsMax) {
      return Sense{SenseKey::kIllegalRequest, asc::kInsufficientRegistrationResources};
    }
    registrations_.insert(registrations_.end(), added.begin(), added.end());
  } else {
    if (!ignore_key && out.key != registered->key) return Conflict{};
    if (out.specifies_ports) return invalid_parameter(kAtFlags, kSpecifiesPortsBit);
    if (out.action_key == 0) {
      unregister(from, effects);
    } else {
      registered->key = out.action_key;
    }
  }
  persists_ = out.persists;
  ++generation_;
  return effects;
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
    effects.attentions.emplace_back(address_of(registration), Attention::kRegistrationsPreempted);
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
    registrations_.push_back({to, false, out.action_key});
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

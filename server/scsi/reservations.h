// Persistent reservations of one logical unit (SPC-4 5.13): who is registered, who holds what, and
// whom that keeps out.
//
// A value without I/O: the owner applies a service action to a copy, makes the copy durable where
// it must be, and then takes it for its own.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "server/scsi/cdb.h"
#include "server/scsi/nexus.h"
#include "server/scsi/opcodes.h"
#include "server/scsi/sense.h"
#include "server/scsi/target_device.h"

namespace mariner::scsi {

// SPC-4 table 54.
enum class ReservationType : std::uint8_t {
  kWriteExclusive = 1,
  kExclusiveAccess = 3,
  kWriteExclusiveRegistrantsOnly = 5,
  kExclusiveAccessRegistrantsOnly = 6,
  kWriteExclusiveAllRegistrants = 7,
  kExclusiveAccessAllRegistrants = 8,
};
[[nodiscard]] std::optional<ReservationType> reservation_type(std::uint8_t code);

struct Registration {
  NexusId nexus;
  std::uint64_t key = 0;  // never 0
  friend bool operator==(const Registration&, const Registration&) = default;
};

struct Reservation {
  ReservationType type = ReservationType::kWriteExclusive;
  NexusId holder;  // of no meaning where all registrants hold it
  friend bool operator==(const Reservation&, const Reservation&) = default;
};

// PERSISTENT RESERVE OUT, decoded. SPC-4 6.16.
struct ReserveOut {
  using Action = PersistentReserveOut::Action;
  Action action = Action::kRegister;
  std::uint8_t scope = 0;  // as in the CDB
  std::uint8_t type = 0;
  std::uint64_t key = 0;
  std::uint64_t action_key = 0;
  bool persists = false;          // APTPL
  bool all_target_ports = false;  // ALL_TG_PT
  // With ALL_TG_PT, the target ports that there are; the device fills this in.
  std::vector<std::uint16_t> target_ports;
  bool unregister = false;  // UNREG, of a move
  // SPEC_I_PT: other initiator ports to register. Of a move: the one that it goes to.
  bool specifies_ports = false;
  std::vector<InitiatorPort> ports;
  std::uint16_t target_port = 0;  // of a move: relative target port identifier
};

class Reservations {
 public:
  // Registrations that one logical unit takes: more are refused (55/04).
  static constexpr std::size_t kRegistrationsMax = 1024;

  struct Effects {
    // Whom to tell what.
    std::vector<std::pair<NexusId, Attention>> attentions;
  };
  struct Conflict {};
  using Outcome = std::variant<Effects, Conflict, Sense>;

  // Does what is asked, or changes nothing.
  Outcome apply(const ReserveOut& out, const NexusId& from);

  // Whether a command of this kind from this nexus conflicts with the reservation.
  [[nodiscard]] bool conflicts(ReservationAccess access, const NexusId& from) const;

  [[nodiscard]] const Registration* find(const NexusId& nexus) const;
  [[nodiscard]] bool holds(const NexusId& nexus) const;
  [[nodiscard]] const std::vector<Registration>& registrations() const { return registrations_; }
  [[nodiscard]] const std::optional<Reservation>& reservation() const { return reservation_; }
  [[nodiscard]] std::uint32_t generation() const { return generation_; }
  // Registrations and reservation survive a loss of power (PTPL_A).
  [[nodiscard]] bool persists() const { return persists_; }
  [[nodiscard]] bool all_registrants_hold() const;

  // As it was saved by who kept it. The generation begins with the loss of power that they have
  // survived (SPC-4 6.15.2), unless whoever kept them knows it.
  struct Kept {
    std::vector<Registration> registrations;
    std::optional<Reservation> reservation;
    bool persists = true;
    std::uint32_t generation = 0;
  };
  static Reservations restored(Kept kept);

  // The same with a generation above its own and this one.
  [[nodiscard]] Reservations following(std::uint32_t generation) const;

  friend bool operator==(const Reservations&, const Reservations&) = default;

 private:
  Outcome do_register(const ReserveOut& out, const NexusId& from, bool ignore_key);
  Outcome do_reserve(const ReserveOut& out, const NexusId& from);
  Outcome do_release(const ReserveOut& out, const NexusId& from);
  Outcome do_clear(const NexusId& from);
  Outcome do_preempt(const ReserveOut& out, const NexusId& from);
  Outcome do_move(const ReserveOut& out, const NexusId& from);
  Outcome register_new(const ReserveOut& out, const NexusId& from);
  [[nodiscard]] Registration* own(const NexusId& nexus);
  void unregister(const NexusId& nexus, Effects& effects);
  // Tells all registered but `except`.
  void tell(Attention attention, const NexusId& except, Effects& effects) const;
  // Removes those with this key but `except`; whether there were any.
  bool remove_with_key(std::optional<std::uint64_t> key, const NexusId& except, Effects& effects);

  std::uint32_t generation_ = 0;
  bool persists_ = false;
  std::vector<Registration> registrations_;  // in the order in which they came
  std::optional<Reservation> reservation_;
};

}  // namespace mariner::scsi

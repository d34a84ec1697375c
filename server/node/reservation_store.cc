#include "server/node/reservation_store.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace mariner::node {
namespace {

using scsi::NexusId;
using scsi::Registration;
using scsi::Reservation;
using scsi::Reservations;

void put(const NexusId& id, meta::Reservations::Nexus& to) {
  to.set_initiator(id.initiator.name);
  to.set_isid(id.initiator.isid.data(), id.initiator.isid.size());
  to.set_target_port(id.target_port);
}

std::optional<NexusId> get(const meta::Reservations::Nexus& from) {
  NexusId id;
  id.initiator.name = from.initiator();
  id.target_port = static_cast<std::uint16_t>(from.target_port());
  if (from.isid().size() != id.initiator.isid.size() || from.initiator().empty()) {
    return std::nullopt;
  }
  std::ranges::copy(from.isid(), id.initiator.isid.begin());
  return id;
}

}  // namespace

meta::Reservations to_meta(const Reservations& state) {
  meta::Reservations out;
  for (const Registration& registration : state.registrations()) {
    meta::Reservations::Registration& to = *out.add_registrations();
    put(registration.nexus, *to.mutable_nexus());
    to.set_key(registration.key);
  }
  if (state.reservation()) {
    out.set_type(static_cast<std::uint32_t>(state.reservation()->type));
    put(state.reservation()->holder, *out.mutable_holder());
  }
  out.set_lost_with_power(!state.persists());
  out.set_generation(state.generation());
  return out;
}

Result<Reservations> from_meta(const meta::Reservations& saved) {
  const Error damaged{ErrorCode::kCorrupt, "the node's store: persistent reservations are damaged"};
  std::vector<Registration> registrations;
  for (const meta::Reservations::Registration& from : saved.registrations()) {
    const std::optional<NexusId> nexus = get(from.nexus());
    if (!nexus || from.key() == 0) return damaged;
    registrations.push_back({*nexus, from.key()});
  }
  std::optional<Reservation> reservation;
  if (saved.type() != 0) {
    const auto type = scsi::reservation_type(static_cast<std::uint8_t>(saved.type()));
    const std::optional<NexusId> holder = get(saved.holder());
    if (!type || !holder) return damaged;
    reservation = Reservation{*type, *holder};
  }
  const bool persists = !registrations.empty() && !saved.lost_with_power();
  return Reservations::restored({.registrations = std::move(registrations),
                                 .reservation = std::move(reservation),
                                 .persists = persists,
                                 .generation = saved.generation()});
}

Result<scsi::ReservationOptions> reservation_options(MetaStore& store, const std::string& unit) {
  Result<meta::Reservations> saved = store.reservations(unit);
  if (!saved) return saved.error();
  saved->clear_generation();  // SPC-4 6.15.2: begins anew when the power comes on
  Result<Reservations> restored = from_meta(*saved);
  if (!restored) {
    return Error{restored.error().code, restored.error().message + " (those of " + unit + ")"};
  }
  scsi::ReservationOptions options;
  options.restored = *std::move(restored);
  options.save = [&store, unit](const Reservations& state,
                                UniqueFunction<void(Result<void>)> done) {
    done(state.persists() ? store.put_reservations(unit, to_meta(state))
                          : store.remove_reservations(unit));
  };
  return options;
}

}  // namespace mariner::node

// PERSISTENT RESERVE IN and OUT on the wire: parameter lists and answers (SPC-4 6.15, 6.16), and
// the TransportIDs of iSCSI in them (SPC-4 7.6.4.6).
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "server/scsi/cdb.h"
#include "server/scsi/reservations.h"

namespace mariner::scsi {

// The parameter list of a PERSISTENT RESERVE OUT. A Sense when it is not one.
[[nodiscard]] std::variant<Sense, ReserveOut> parse_reserve_out(const PersistentReserveOut& command,
                                                                std::span<const std::byte> list);

// The answer to a PERSISTENT RESERVE IN, of full length.
[[nodiscard]] std::vector<std::uint8_t> reserve_in(PersistentReserveIn::Action action,
                                                   const Reservations& state);

// Format 01b: an initiator port, by its name and ISID.
[[nodiscard]] std::vector<std::uint8_t> transport_id(const InitiatorPort& port);
struct ParsedTransportId {
  InitiatorPort port;
  std::size_t bytes = 0;  // that it takes
};
// Nothing when `from` does not begin with a TransportID of an iSCSI initiator port.
[[nodiscard]] std::optional<ParsedTransportId> parse_transport_id(
    std::span<const std::uint8_t> from);

}  // namespace mariner::scsi

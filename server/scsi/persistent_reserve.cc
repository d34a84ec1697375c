#include "server/scsi/persistent_reserve.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "proto/bytes.h"
#include "proto/iscsi_name.h"

namespace mariner::scsi {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Action = ReserveOut::Action;

constexpr std::size_t kListBytes = 24;  // without TransportIDs, which follow a length
constexpr std::size_t kTransportIdBytesMin = 24;
constexpr std::uint8_t kIscsiPort = 0x45;  // format 01b, protocol 5
constexpr std::string_view kSeparator = ",i,0x";
constexpr std::size_t kHeaderBytes = 8;

constexpr std::uint16_t at(std::size_t byte) { return static_cast<std::uint16_t>(byte); }

// What all answers but that of the capabilities begin with.
Bytes header(const Reservations& state) {
  Bytes data(kHeaderBytes);
  store_be(&data[0], state.generation());
  return data;
}

Bytes finished(Bytes data) {
  store_be(&data[4], static_cast<std::uint32_t>(data.size() - kHeaderBytes));
  return data;
}

Bytes read_keys(const Reservations& state) {
  Bytes data = header(state);
  for (const Registration& registration : state.registrations()) {
    data.resize(data.size() + 8);
    store_be(&data[data.size() - 8], registration.key);
  }
  return finished(std::move(data));
}

std::uint8_t scope_and_type(const Reservation& reservation) {
  return static_cast<std::uint8_t>(reservation.type);  // the scope is the logical unit: 0
}

Bytes read_reservation(const Reservations& state) {
  Bytes data = header(state);
  if (state.reservation()) {
    data.resize(kHeaderBytes + 16);
    const Registration* holder =
        state.all_registrants_hold() ? nullptr : state.find(state.reservation()->holder);
    store_be(&data[8], holder == nullptr ? std::uint64_t{0} : holder->key);
    data[21] = scope_and_type(*state.reservation());
  }
  return finished(std::move(data));
}

Bytes report_capabilities(const Reservations& state) {
  Bytes data(8);
  store_be(&data[0], std::uint16_t{8});
  data[2] = 0x08 | 0x04 | 0x01;  // SIP_C, ATP_C, PTPL_C
  data[3] = static_cast<std::uint8_t>(0x80 | (state.persists() ? 0x01 : 0));  // TMV, PTPL_A
  data[4] = 0xEA;  // types 7, 6, 5, 3 and 1 ...
  data[5] = 0x01;  // ... and 8
  return data;
}

Bytes read_full_status(const Reservations& state) {
  constexpr std::size_t kDescriptorBytes = 24;
  Bytes data = header(state);
  for (const Registration& registration : state.registrations()) {
    const Bytes id = transport_id(registration.nexus.initiator);
    const std::size_t from = data.size();
    data.resize(from + kDescriptorBytes);
    store_be(&data[from], registration.key);
    const bool holds = state.holds(registration.nexus);
    // Each nexus has a descriptor of its own: ALL_TG_PT is 0.
    data[from + 12] = holds ? 0x01 : 0;
    if (holds) data[from + 13] = scope_and_type(*state.reservation());
    store_be(&data[from + 18], registration.nexus.target_port);
    store_be(&data[from + 20], static_cast<std::uint32_t>(id.size()));
    data.insert(data.end(), id.begin(), id.end());
  }
  return finished(std::move(data));
}

// The TransportIDs in list[from, end): all of them, or the place of what is none.
std::variant<Sense, std::vector<InitiatorPort>> parse_ports(std::span<const std::uint8_t> list,
                                                            std::size_t from) {
  std::vector<InitiatorPort> ports;
  while (from < list.size()) {
    const auto parsed = parse_transport_id(list.subspan(from));
    if (!parsed) return invalid_parameter(at(from));
    ports.push_back(parsed->port);
    from += parsed->bytes;
  }
  return ports;
}

std::variant<Sense, ReserveOut> parse_move(ReserveOut out, std::span<const std::uint8_t> list) {
  out.unregister = (list[17] & 0x02) != 0;
  out.persists = (list[17] & 0x01) != 0;
  out.target_port = load_be<std::uint16_t>(&list[18]);
  if (load_be<std::uint32_t>(&list[20]) != list.size() - kListBytes) {
    return illegal_request(asc::kParameterListLengthError);
  }
  auto ports = parse_ports(list, kListBytes);
  if (const auto* sense = std::get_if<Sense>(&ports)) return *sense;
  out.ports = std::get<std::vector<InitiatorPort>>(std::move(ports));
  if (out.ports.size() != 1) return invalid_parameter(20);
  return out;
}

}  // namespace

std::vector<std::uint8_t> transport_id(const InitiatorPort& port) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = port.name + std::string(kSeparator);
  for (const std::uint8_t byte : port.isid) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  const std::size_t padded = std::max<std::size_t>((text.size() / 4 + 1) * 4, 20);
  Bytes data(4 + padded);
  data[0] = kIscsiPort;
  store_be(&data[2], static_cast<std::uint16_t>(padded));
  std::ranges::copy(text, data.begin() + 4);
  return data;
}

std::optional<ParsedTransportId> parse_transport_id(std::span<const std::uint8_t> from) {
  if (from.size() < kTransportIdBytesMin || from[0] != kIscsiPort) return std::nullopt;
  const std::size_t bytes = 4 + load_be<std::uint16_t>(&from[2]);
  if (bytes < kTransportIdBytesMin || bytes > from.size() || bytes % 4 != 0) return std::nullopt;
  const std::string_view padded(reinterpret_cast<const char*>(&from[4]), bytes - 4);
  const std::string_view text = padded.substr(0, padded.find('\0'));
  const std::size_t comma = text.find(kSeparator);
  if (comma == std::string_view::npos) return std::nullopt;
  // As at login, where the port's own session gets the name that is compared with this one.
  auto name = normalized_iscsi_name(text.substr(0, comma));
  if (!name) return std::nullopt;
  const std::string_view digits = text.substr(comma + kSeparator.size());
  std::uint64_t isid = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), isid, 16);
  if (error != std::errc{} || end != digits.data() + digits.size() || digits.size() > 12) {
    return std::nullopt;
  }
  ParsedTransportId parsed{{.name = *std::move(name)}, bytes};
  for (std::size_t i = 0; i < parsed.port.isid.size(); ++i) {
    parsed.port.isid[i] = static_cast<std::uint8_t>(isid >> (40 - 8 * i));
  }
  return parsed;
}

std::variant<Sense, ReserveOut> parse_reserve_out(const PersistentReserveOut& command,
                                                  std::span<const std::byte> bytes) {
  // Shorter when the initiator announced less than its CDB says.
  if (command.parameter_bytes < kListBytes || bytes.size() != command.parameter_bytes) {
    return illegal_request(asc::kParameterListLengthError);
  }
  const std::span<const std::uint8_t> list{reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                           bytes.size()};
  ReserveOut out;
  out.action = command.action;
  out.scope = command.scope;
  out.type = command.type;
  out.key = load_be<std::uint64_t>(&list[0]);
  out.action_key = load_be<std::uint64_t>(&list[8]);
  if (out.action == Action::kRegisterAndMove) return parse_move(std::move(out), list);
  const std::uint8_t flags = list[20];
  out.specifies_ports = (flags & 0x08) != 0;
  const bool registers =
      out.action == Action::kRegister || out.action == Action::kRegisterAndIgnoreExistingKey;
  if (registers) {
    out.all_target_ports = (flags & 0x04) != 0;
    out.persists = (flags & 0x01) != 0;
  }
  if (!out.specifies_ports) {
    if (list.size() != kListBytes) return illegal_request(asc::kParameterListLengthError);
    return out;
  }
  if (out.action != Action::kRegister) return invalid_parameter(20, std::uint8_t{3});
  constexpr std::size_t kPortsAt = kListBytes + 4;
  if (list.size() < kPortsAt ||
      load_be<std::uint32_t>(&list[kListBytes]) != list.size() - kPortsAt) {
    return illegal_request(asc::kParameterListLengthError);
  }
  auto ports = parse_ports(list, kPortsAt);
  if (const auto* sense = std::get_if<Sense>(&ports)) return *sense;
  out.ports = std::get<std::vector<InitiatorPort>>(std::move(ports));
  return out;
}

std::vector<std::uint8_t> reserve_in(PersistentReserveIn::Action action,
                                     const Reservations& state) {
  switch (action) {
    case PersistentReserveIn::Action::kReadKeys: return read_keys(state);
    case PersistentReserveIn::Action::kReadReservation: return read_reservation(state);
    case PersistentReserveIn::Action::kReportCapabilities: return report_capabilities(state);
    case PersistentReserveIn::Action::kReadFullStatus: return read_full_status(state);
  }
  return {};
}

}  // namespace mariner::scsi

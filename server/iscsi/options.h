// The limits and times of the iSCSI server. Every bound of this folder that an administrator or a
// test may want to set has its name here; the others stand beside the code that keeps them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace mariner::iscsi {

// A clock that never steps back, as Executor::monotonic_time() gives it.
using MonotonicTime = std::chrono::nanoseconds;

// What we offer in negotiation (RFC 7143, chapter 13).
struct NegotiationLimits {
  std::uint32_t receive_segment_bytes_max = 256 * 1024;  // our MaxRecvDataSegmentLength
  std::uint32_t burst_bytes_max = 1024 * 1024;           // MaxBurstLength
  std::uint32_t first_burst_bytes_max = 256 * 1024;      // FirstBurstLength
  std::uint32_t outstanding_r2t_max = 4;                 // MaxOutstandingR2T
  std::uint32_t connections_max = 4;                     // MaxConnections, of normal sessions
  std::uint32_t error_recovery_level_max = 1;            // ErrorRecoveryLevel
  bool digests = true;                                   // accept CRC32C where it is asked for
};

// A network portal of a portal group (RFC 7143 4.1): where to listen, or what SendTargets tells.
struct PortalAddress {
  std::string address;      // "0.0.0.0:3260", "[::]:3260"
  std::uint16_t group = 1;  // the group's tag, which is the target port's number
  friend bool operator==(const PortalAddress&, const PortalAddress&) = default;
};

struct Options {
  NegotiationLimits negotiation;

  // Commands that a session may have outstanding: the width of its CmdSN window.
  std::uint32_t command_window = 128;
  // Immediate commands come on top, up to this many; further ones are rejected.
  std::uint32_t immediate_commands_max = 16;
  // Payload that the commands of one connection may hold at one time. A command that does not fit
  // waits, before its memory is allocated; one alone always fits.
  std::uint64_t payload_bytes_max = 64u << 20;
  // The longest transfer of one command; longer ones end in CHECK CONDITION.
  std::uint64_t transfer_bytes_max = 16u << 20;
  // PDUs waiting to be sent, above which nothing more is read from the initiator.
  // From one who is in his login or only discovers, nothing is while any waits.
  std::size_t output_pdus_max = 4096;

  std::chrono::nanoseconds login_time_max = std::chrono::seconds(15);
  // A connection from which nothing came for this long is pinged, and is closed when nothing comes
  // for another `ping_time_max`.
  std::chrono::nanoseconds ping_interval = std::chrono::seconds(30);
  std::chrono::nanoseconds ping_time_max = std::chrono::seconds(30);
  // How long a connection may take to receive our last words before it is cut.
  std::chrono::nanoseconds closing_time_max = std::chrono::seconds(2);

  // Normal sessions in all, and of one initiator by its name, whatever their targets: a host with
  // eight ways to each of 64 volumes has as many. At most 65,534 (a TSIH has 16 bits).
  std::size_t sessions_max = 1024;
  std::size_t initiator_sessions_max = 512;
  // Discovery sessions, which anybody may open where no account is asked for: beside the normal
  // ones, so that they take nobody's place. One more ends the oldest. Each ends when it has lived
  // for this long: what it is for takes a moment.
  std::size_t discovery_sessions_max = 64;
  std::chrono::nanoseconds discovery_time_max = std::chrono::seconds(60);
  // Payload that all commands of one initiator's sessions may hold at one time, with what waits to
  // be sent to it. Beyond it commands wait as beyond payload_bytes_max.
  std::uint64_t initiator_payload_bytes_max = 256u << 20;

  // How long a session that is asked to log out has for that before it is dropped, and what it is
  // told to wait before it comes again (Time2Wait).
  std::chrono::seconds leave_time_max{5};
  std::uint16_t drop_time2wait_s = 2;
};

}  // namespace mariner::iscsi

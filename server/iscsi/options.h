// The limits and times of the iSCSI server. Every bound of this folder that an administrator or a
// test may want to set has its name here; the others stand beside the code that keeps them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

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
  std::size_t output_pdus_max = 4096;

  std::chrono::nanoseconds login_time_max = std::chrono::seconds(15);
  // A connection from which nothing came for this long is pinged, and is closed when nothing comes
  // for another `ping_time_max`.
  std::chrono::nanoseconds ping_interval = std::chrono::seconds(30);
  std::chrono::nanoseconds ping_time_max = std::chrono::seconds(30);
  // How long a connection may take to receive our last words before it is cut.
  std::chrono::nanoseconds closing_time_max = std::chrono::seconds(2);

  std::uint16_t portal_group_tag = 1;
  std::size_t sessions_max = 1024;
};

}  // namespace mariner::iscsi

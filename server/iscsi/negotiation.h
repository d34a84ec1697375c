// The operational parameters of a session and how each is negotiated (RFC 7143, chapter 13).
//
// One table, one line a key. Keys that identify (InitiatorName, TargetName, SessionType, ...) and
// AuthMethod belong to Login; SendTargets to TextExchange.
#pragma once

#include <cstdint>
#include <span>

#include "server/iscsi/options.h"
#include "server/iscsi/text.h"

namespace mariner::iscsi {

// Starts as the defaults of the RFC, which hold for every key that is not negotiated.
struct SessionParameters {
  bool header_digest = false;
  bool data_digest = false;
  bool initial_r2t = true;
  bool immediate_data = true;
  std::uint32_t send_segment_bytes_max = 8192;     // the initiator's MaxRecvDataSegmentLength
  std::uint32_t receive_segment_bytes_max = 8192;  // ours, from the full feature phase on
  std::uint32_t burst_bytes_max = 262144;
  std::uint32_t first_burst_bytes_max = 65536;
  std::uint32_t outstanding_r2t_max = 1;
  std::uint32_t connections_max = 1;
  std::uint32_t error_recovery_level = 0;
};

// A connection that joins a session: what it does not negotiate for itself is the session's.
[[nodiscard]] SessionParameters parameters_of_joining(const SessionParameters& session);
// True if both agree about everything that is the session's and not a connection's (the keys that
// chapter 13 calls leading only).
[[nodiscard]] bool same_session(const SessionParameters& a, const SessionParameters& b);

enum class NegotiationPhase : std::uint8_t {
  kNormalLogin,
  kDiscoveryLogin,  // no digests
  kFullFeature,     // only what may change on a running session
};

// Applies the initiator's `offers` to `agreed` and writes our answers, in the offers' order.
// Declarations get no answer, unknown keys NotUnderstood, values outside a key's range Reject.
// kProtocol, and nothing is changed, when a key is negotiated twice in `offers`.
[[nodiscard]] Result<void> negotiate(std::span<const TextPair> offers, NegotiationPhase phase,
                                     const NegotiationLimits& limits, SessionParameters& agreed,
                                     TextWriter& answers);

}  // namespace mariner::iscsi

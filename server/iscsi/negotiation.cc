#include "server/iscsi/negotiation.h"

#include <algorithm>
#include <bitset>
#include <iterator>
#include <optional>
#include <string>
#include <tuple>

namespace mariner::iscsi {
namespace {

constexpr std::string_view kReject = "Reject";
constexpr std::string_view kNotUnderstood = "NotUnderstood";
constexpr std::string_view kIrrelevant = "Irrelevant";
constexpr std::uint32_t kSegmentBytesMin = 512;
constexpr std::uint32_t kSegmentBytesMax = (1u << 24) - 1;

struct Offer {
  std::string_view value;
  NegotiationPhase phase;
  const NegotiationLimits& limits;
  SessionParameters& parameters;
};

// The answer to an offer; none for a declaration.
using Answer = std::optional<std::string>;

struct Range {
  std::uint32_t min;
  std::uint32_t max;
};

std::optional<std::uint32_t> number_in(std::string_view value, Range range) {
  const auto number = parse_number(value);
  if (!number || *number < range.min || *number > range.max) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

Answer digest(const Offer& offer, bool& enabled) {
  enabled = false;
  const bool supported = offer.limits.digests && offer.phase != NegotiationPhase::kDiscoveryLogin;
  for (const std::string_view item : split_list(offer.value)) {
    if (item == "None") return "None";
    if (item == "CRC32C" && supported) {
      enabled = true;
      return "CRC32C";
    }
  }
  return std::string(kReject);
}

Answer minimum(const Offer& offer, Range range, std::uint32_t ours, std::uint32_t* result) {
  const auto theirs = number_in(offer.value, range);
  if (!theirs) return std::string(kReject);
  const std::uint32_t agreed = std::min(*theirs, ours);
  if (result != nullptr) *result = agreed;
  return std::to_string(agreed);
}

// `combine`: what the two sides' wishes make.
Answer boolean(const Offer& offer, bool (*combine)(bool theirs), bool* result) {
  const auto theirs = parse_boolean(offer.value);
  if (!theirs) return std::string(kReject);
  const bool agreed = combine(*theirs);
  if (result != nullptr) *result = agreed;
  return agreed ? "Yes" : "No";
}

bool as_offered(bool theirs) { return theirs; }
bool always(bool) { return true; }
bool never(bool) { return false; }

Answer receive_segment(const Offer& offer) {
  const auto theirs = number_in(offer.value, {kSegmentBytesMin, kSegmentBytesMax});
  if (!theirs) return std::string(kReject);
  offer.parameters.send_segment_bytes_max = *theirs;
  return std::nullopt;
}

Answer max_burst(const Offer& offer) {
  return minimum(offer, {kSegmentBytesMin, kSegmentBytesMax}, offer.limits.burst_bytes_max,
                 &offer.parameters.burst_bytes_max);
}

Answer first_burst(const Offer& offer) {
  // MUST NOT exceed MaxBurstLength (13.14): negotiate() has applied that one before.
  const std::uint32_t ours =
      std::min(offer.limits.first_burst_bytes_max, offer.parameters.burst_bytes_max);
  return minimum(offer, {kSegmentBytesMin, kSegmentBytesMax}, ours,
                 &offer.parameters.first_burst_bytes_max);
}

bool normal(const Offer& offer) { return offer.phase == NegotiationPhase::kNormalLogin; }

Answer error_recovery_level(const Offer& offer) {
  const std::uint32_t ours = normal(offer) ? offer.limits.error_recovery_level_max : 0;
  return minimum(offer, {0, 2}, ours, &offer.parameters.error_recovery_level);
}

Answer outstanding_r2t(const Offer& offer) {
  // MUST be 1 where recovery is possible and sequences are in order (13.18): negotiate() has
  // applied ErrorRecoveryLevel before.
  const std::uint32_t ours =
      offer.parameters.error_recovery_level > 0 ? 1 : offer.limits.outstanding_r2t_max;
  return minimum(offer, {1, 65535}, ours, &offer.parameters.outstanding_r2t_max);
}

Answer time_to_wait(const Offer& offer) {
  // The larger of both; we need no wait.
  const auto theirs = number_in(offer.value, {0, 3600});
  return theirs ? std::to_string(*theirs) : std::string(kReject);
}

Answer task_reporting(const Offer& offer) {
  for (const std::string_view item : split_list(offer.value)) {
    if (item == "RFC3720") return "RFC3720";
  }
  return std::string(kReject);
}

struct Rule {
  std::string_view key;
  bool full_feature;  // may be negotiated on a running session
  Answer (*apply)(const Offer&);
};

// clang-format off
constexpr Rule kRules[] = {
    {"HeaderDigest", false, [](const Offer& o) { return digest(o, o.parameters.header_digest); }},
    {"DataDigest", false, [](const Offer& o) { return digest(o, o.parameters.data_digest); }},
    {"MaxConnections", false, [](const Offer& o) {
       return minimum(o, {1, 65535}, normal(o) ? o.limits.connections_max : 1, &o.parameters.connections_max); }},
    {"InitialR2T", false, [](const Offer& o) { return boolean(o, as_offered, &o.parameters.initial_r2t); }},
    {"ImmediateData", false, [](const Offer& o) { return boolean(o, as_offered, &o.parameters.immediate_data); }},
    {"MaxRecvDataSegmentLength", true, receive_segment},
    {"MaxBurstLength", false, max_burst},
    {"FirstBurstLength", false, first_burst},
    {"MaxOutstandingR2T", false, outstanding_r2t},
    {"DataPDUInOrder", false, [](const Offer& o) { return boolean(o, always, nullptr); }},
    {"DataSequenceInOrder", false, [](const Offer& o) { return boolean(o, always, nullptr); }},
    {"DefaultTime2Wait", false, time_to_wait},
    {"DefaultTime2Retain", false, [](const Offer& o) { return minimum(o, {0, 3600}, 0, nullptr); }},
    {"ErrorRecoveryLevel", false, error_recovery_level},
    {"IFMarker", false, [](const Offer& o) { return boolean(o, never, nullptr); }},
    {"OFMarker", false, [](const Offer& o) { return boolean(o, never, nullptr); }},
    {"IFMarkInt", false, [](const Offer&) { return Answer(kIrrelevant); }},
    {"OFMarkInt", false, [](const Offer&) { return Answer(kIrrelevant); }},
    {"TaskReporting", false, task_reporting},
    {"iSCSIProtocolLevel", false, [](const Offer& o) { return minimum(o, {0, 31}, 1, nullptr); }},
    // Declared by initiators, of no consequence here.
    {"InitiatorAlias", true, [](const Offer&) { return Answer(); }},
};
// clang-format on
constexpr std::size_t kRuleCount = std::size(kRules);

// An initiator's answer to something that we declared.
bool is_answer(std::string_view value) {
  return value == kReject || value == kNotUnderstood || value == kIrrelevant;
}

Answer apply(const Rule& rule, const Offer& offer) {
  if (is_answer(offer.value)) return std::nullopt;
  if (offer.phase == NegotiationPhase::kFullFeature && !rule.full_feature) {
    return std::string(kReject);
  }
  return rule.apply(offer);
}

}  // namespace

SessionParameters parameters_of_joining(const SessionParameters& session) {
  const SessionParameters defaults;
  SessionParameters joining = session;
  joining.header_digest = defaults.header_digest;
  joining.data_digest = defaults.data_digest;
  joining.send_segment_bytes_max = defaults.send_segment_bytes_max;
  joining.receive_segment_bytes_max = defaults.receive_segment_bytes_max;
  return joining;
}

bool same_session(const SessionParameters& a, const SessionParameters& b) {
  const auto of_session = [](const SessionParameters& p) {
    return std::tuple(p.initial_r2t, p.immediate_data, p.burst_bytes_max, p.first_burst_bytes_max,
                      p.outstanding_r2t_max, p.connections_max, p.error_recovery_level);
  };
  return of_session(a) == of_session(b);
}

Result<void> negotiate(std::span<const TextPair> offers, NegotiationPhase phase,
                       const NegotiationLimits& limits, SessionParameters& agreed,
                       TextWriter& answers) {
  // What is refused in the middle changes nothing.
  SessionParameters parameters = agreed;
  // FirstBurstLength's answer depends on MaxBurstLength, and MaxOutstandingR2T's on
  // ErrorRecoveryLevel, wherever they stand.
  for (const TextPair& pair : offers) {
    if (phase == NegotiationPhase::kFullFeature) break;
    const Offer offer{pair.value, phase, limits, parameters};
    if (pair.key == "MaxBurstLength") static_cast<void>(max_burst(offer));
    if (pair.key == "ErrorRecoveryLevel") static_cast<void>(error_recovery_level(offer));
  }
  std::bitset<kRuleCount> seen;
  for (const TextPair& pair : offers) {
    const auto* rule = std::find_if(std::begin(kRules), std::end(kRules),
                                    [&](const Rule& r) { return r.key == pair.key; });
    if (rule == std::end(kRules)) {
      if (!is_answer(pair.value)) answers.add(pair.key, kNotUnderstood);
      continue;
    }
    const auto index = static_cast<std::size_t>(rule - kRules);
    if (seen.test(index)) {
      return Error{ErrorCode::kProtocol, std::string(pair.key) + " is negotiated twice"};
    }
    seen.set(index);
    const Answer answer = apply(*rule, {pair.value, phase, limits, parameters});
    if (answer) answers.add(pair.key, *answer);
  }
  parameters.first_burst_bytes_max =
      std::min(parameters.first_burst_bytes_max, parameters.burst_bytes_max);
  agreed = parameters;
  return {};
}

}  // namespace mariner::iscsi

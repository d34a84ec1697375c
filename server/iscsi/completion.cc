#include "server/iscsi/completion.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "proto/bytes.h"

namespace mariner::iscsi {
namespace {

constexpr std::size_t kFixedSenseBytes = 18;
// SenseLength is 16 bits, and no sense data is longer than this (SPC-4, 4.5.1).
constexpr std::size_t kSenseBytesMax = 252;

Residual difference(std::uint64_t moved, std::uint64_t expected) {
  constexpr std::uint64_t kCountMax = std::numeric_limits<std::uint32_t>::max();
  if (moved > expected) {
    return {.kind = Residual::Kind::kOverflow,
            .count = static_cast<std::uint32_t>(std::min(moved - expected, kCountMax))};
  }
  if (moved < expected) {
    return {.kind = Residual::Kind::kUnderflow,
            .count = static_cast<std::uint32_t>(expected - moved)};
  }
  return {};
}

std::uint64_t total_bytes(const std::vector<PayloadSlice>& slices) {
  std::uint64_t total = 0;
  for (const PayloadSlice& slice : slices) total += slice.length;
  return total;
}

bool sends_data_in(const CommandTransfer& transfer) { return transfer.read && !transfer.write; }

// What a response makes on the wire.
struct Plan {
  std::uint32_t bytes = 0;  // of data
  Residual residual;
  std::uint8_t status = 0;
  bool collapse = false;  // the last Data-In carries the status
};

Plan plan_of(const CommandTransfer& transfer, const scsi::Response& response) {
  const std::uint64_t data_in_bytes = total_bytes(response.data_in);
  Plan plan;
  plan.residual = residual_of(transfer, data_in_bytes);
  plan.status = static_cast<std::uint8_t>(response.status);
  if (sends_data_in(transfer)) {
    plan.bytes =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(data_in_bytes, transfer.expected_bytes));
  }
  plan.collapse = plan.bytes > 0 && response.sense.empty();
  return plan;
}

// Calls `visit(DataIn, bytes)` for each Data-In PDU of the plan, in order. Returns how many.
template <typename Visit>
std::uint32_t for_each_data_in(const CommandTransfer& transfer, const Plan& plan,
                               const SessionParameters& parameters, Visit visit) {
  DataIn pdu{.itt = transfer.itt};
  std::uint32_t burst_left = parameters.burst_bytes_max;
  while (pdu.offset < plan.bytes) {
    const std::uint32_t length =
        std::min({parameters.send_segment_bytes_max, burst_left, plan.bytes - pdu.offset});
    const bool last = pdu.offset + length == plan.bytes;
    burst_left -= length;
    pdu.final = last || burst_left == 0;
    if (burst_left == 0) burst_left = parameters.burst_bytes_max;
    if (last && plan.collapse) {
      pdu.status = plan.status;
      pdu.residual = plan.residual;
    }
    visit(std::as_const(pdu), length);
    pdu.offset += length;
    ++pdu.data_sn;
  }
  return pdu.data_sn;
}

// 11.4.7: SenseLength, then the sense data.
PayloadSlice sense_segment(const std::vector<std::uint8_t>& sense) {
  if (sense.empty()) return {};
  const std::size_t length = std::min(sense.size(), kSenseBytesMax);
  Payload payload = Payload::zeroed(2 + length);
  store_be(payload.data(), static_cast<std::uint16_t>(length));
  std::memcpy(payload.data() + 2, sense.data(), length);
  return {.payload = std::move(payload), .offset = 0, .length = 2 + length};
}

}  // namespace

Residual residual_of(const CommandTransfer& transfer, std::uint64_t data_in_bytes) {
  using Direction = scsi::Transfer::Direction;
  const bool data_out = transfer.asked.direction == Direction::kToTarget && transfer.write;
  const bool data_in =
      transfer.asked.direction == Direction::kToInitiator && sends_data_in(transfer);
  // Where the initiator's direction is not the CDB's, nothing of what it expected was moved.
  std::uint64_t moved = data_out ? transfer.asked.bytes : data_in ? data_in_bytes : 0;
  if (transfer.asked.open) moved = std::min<std::uint64_t>(moved, transfer.expected_bytes);
  return difference(moved, transfer.expected_bytes);
}

std::uint64_t send_completion(const CommandTransfer& transfer, const scsi::Response& response,
                              const SessionParameters& parameters, PduSender& sender) {
  const Plan plan = plan_of(transfer, response);
  SliceCursor data(response.data_in);
  const std::uint32_t data_pdus =
      for_each_data_in(transfer, plan, parameters, [&](const DataIn& pdu, std::uint32_t length) {
        sender.send(pack(pdu), pdu.status ? StatSn::kAdvance : StatSn::kTell, data, length);
      });
  if (!plan.collapse) {
    sender.send(pack(ScsiResponse{.status = plan.status,
                                  .residual = plan.residual,
                                  .itt = transfer.itt,
                                  .exp_data_sn = data_pdus}),
                StatSn::kAdvance, sense_segment(response.sense));
  }
  return plan.bytes;
}

void resend_completion(const SentCompletion& sent, const SessionParameters& parameters,
                       Repetition parts, PduSender& sender) {
  const Plan plan = plan_of(sent.transfer, sent.response);
  SliceCursor data(sent.response.data_in);
  const std::uint32_t data_pdus = for_each_data_in(
      sent.transfer, plan, parameters, [&](const DataIn& pdu, std::uint32_t length) {
        const bool asked = pdu.data_sn >= parts.first && pdu.data_sn < parts.end;
        if (asked || (parts.status && pdu.status)) {
          sender.resend(pack(pdu), sent.stat_sn, data, length);
        } else {
          data.skip(length);
        }
      });
  if (parts.status && !plan.collapse) {
    sender.resend(pack(ScsiResponse{.status = plan.status,
                                    .residual = plan.residual,
                                    .itt = sent.transfer.itt,
                                    .exp_data_sn = data_pdus}),
                  sent.stat_sn, sense_segment(sent.response.sense));
  }
}

void resend_completion_anew(const SentCompletion& sent, const SessionParameters& parameters,
                            std::uint32_t snack_tag, PduSender& sender) {
  Plan plan = plan_of(sent.transfer, sent.response);
  plan.collapse = false;  // a Data-In has no place for the tag
  SliceCursor data(sent.response.data_in);
  const std::uint32_t data_pdus = for_each_data_in(
      sent.transfer, plan, parameters, [&](const DataIn& pdu, std::uint32_t length) {
        sender.resend(pack(pdu), sent.stat_sn, data, length);
      });
  sender.resend(pack(ScsiResponse{.status = plan.status,
                                  .residual = plan.residual,
                                  .itt = sent.transfer.itt,
                                  .snack_tag = snack_tag,
                                  .exp_data_sn = data_pdus}),
                sent.stat_sn, sense_segment(sent.response.sense));
}

scsi::Response check_condition(SenseCode code) {
  std::vector<std::uint8_t> sense(kFixedSenseBytes);
  sense[0] = 0x70;  // current, fixed format
  sense[2] = code.key;
  sense[7] = kFixedSenseBytes - 8;
  sense[12] = code.asc;
  sense[13] = code.ascq;
  return {.status = scsi::Status::kCheckCondition, .sense = std::move(sense), .data_in = {}};
}

}  // namespace mariner::iscsi

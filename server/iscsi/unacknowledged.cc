#include "server/iscsi/unacknowledged.h"

#include <limits>
#include <utility>

#include "server/iscsi/command_window.h"

namespace mariner::iscsi {
namespace {

constexpr std::uint32_t kAll = std::numeric_limits<std::uint32_t>::max();

template <typename Kept>
std::uint32_t stat_sn_of(const Kept& kept) {
  return std::visit([](const auto& one) { return one.stat_sn; }, kept);
}

std::uint64_t bytes_of(const SentCompletion& sent) {
  std::uint64_t bytes = 0;
  for (const PayloadSlice& slice : sent.response.data_in) bytes += slice.length;
  return bytes;
}

// Behind the last number of the run that a SNACK asks for.
std::uint32_t end_of(const SnackRequest& snack) {
  return snack.count == 0 || snack.count > kAll - snack.first ? kAll : snack.first + snack.count;
}

}  // namespace

void Unacknowledged::keep(std::uint32_t stat_sn, const Bhs& bhs, PayloadSlice data) {
  other_bytes_ += data.length;
  kept_.emplace_back(SentPdu{stat_sn, bhs, std::move(data)});
}

void Unacknowledged::keep(SentCompletion sent) {
  answer_bytes_ += bytes_of(sent);
  kept_.emplace_back(std::move(sent));
}

void Unacknowledged::acknowledge(std::uint32_t exp_stat_sn) {
  if (kept_.empty() || serial_before(stat_sn_of(kept_.back()) + 1, exp_stat_sn)) return;
  while (!kept_.empty() && serial_before(stat_sn_of(kept_.front()), exp_stat_sn)) {
    if (const auto* pdu = std::get_if<SentPdu>(&kept_.front())) {
      other_bytes_ -= pdu->data.length;
    } else {
      answer_bytes_ -= bytes_of(std::get<SentCompletion>(kept_.front()));
    }
    kept_.pop_front();
  }
}

const SentCompletion* Unacknowledged::find(std::uint32_t itt) const {
  for (const Kept& kept : kept_) {
    const auto* sent = std::get_if<SentCompletion>(&kept);
    if (sent != nullptr && sent->transfer.itt == itt) return sent;
  }
  return nullptr;
}

std::optional<RejectReason> Unacknowledged::repeat(const SnackRequest& snack,
                                                   const SessionParameters& parameters,
                                                   PduSender& sender) const {
  using Type = SnackRequest::Type;
  if (snack.type == Type::kStatus) return repeat_statuses(snack, parameters, sender);
  if (snack.type == Type::kDataAck) return RejectReason::kInvalidDataAck;
  const SentCompletion* const sent = find(snack.itt);
  if (sent == nullptr) return RejectReason::kSnackReject;
  if (snack.type == Type::kRData) {
    resend_completion_anew(*sent, parameters, snack.tag, sender);
    return std::nullopt;
  }
  // The numbers mean something else under another MaxRecvDataSegmentLength (11.16.3).
  if (sent->segment_bytes_max != parameters.send_segment_bytes_max) {
    return RejectReason::kSnackReject;
  }
  resend_completion(*sent, parameters, {.first = snack.first, .end = end_of(snack)}, sender);
  return std::nullopt;
}

std::optional<RejectReason> Unacknowledged::repeat_statuses(const SnackRequest& snack,
                                                            const SessionParameters& parameters,
                                                            PduSender& sender) const {
  // Both zero: all that is not acknowledged (11.16.1).
  const bool all = snack.first == 0 && snack.count == 0;
  const bool acknowledged = kept_.empty() || serial_before(snack.first, stat_sn_of(kept_.front()));
  if (!all && acknowledged) return RejectReason::kProtocolError;
  for (const Kept& kept : kept_) {
    const std::uint32_t after = stat_sn_of(kept) - snack.first;
    const bool asked =
        all || (static_cast<std::int32_t>(after) >= 0 && (snack.count == 0 || after < snack.count));
    if (!asked) continue;
    if (const auto* pdu = std::get_if<SentPdu>(&kept)) {
      sender.resend(pdu->bhs, pdu->stat_sn, pdu->data);
    } else {
      const auto& sent = std::get<SentCompletion>(kept);
      SessionParameters then = parameters;
      then.send_segment_bytes_max = sent.segment_bytes_max;
      resend_completion(sent, then, {.status = true}, sender);
    }
  }
  return std::nullopt;
}

}  // namespace mariner::iscsi

#include "server/iscsi/data_out.h"

#include <algorithm>
#include <string>

namespace mariner::iscsi {
namespace {

// Of one command: an initiator that damages everything comes to an end.
constexpr std::uint32_t kRecoveriesMax = 16;

Error data_error(std::string_view what, std::uint64_t expected, std::uint64_t found) {
  return Error{ErrorCode::kProtocol, "data-out: " + std::string(what) + ": expected " +
                                         std::to_string(expected) + ", found " +
                                         std::to_string(found)};
}

}  // namespace

Result<void> DataOutTransfer::begin(const ScsiCommand& command, std::uint32_t immediate_bytes,
                                    std::uint32_t wanted, const SessionParameters& parameters) {
  *this = {};
  wanted_ = wanted;
  burst_bytes_max_ = parameters.burst_bytes_max;
  if (parameters.error_recovery_level > 0) recoveries_left_ = kRecoveriesMax;
  if (!command.write) {
    if (immediate_bytes != 0) return data_error("immediate data of no write", 0, immediate_bytes);
    return {};
  }
  if (immediate_bytes != 0 && !parameters.immediate_data) {
    return data_error("immediate data although ImmediateData=No", 0, immediate_bytes);
  }
  if (!command.final && parameters.initial_r2t) {
    return Error{ErrorCode::kProtocol, "data-out: F=0 although InitialR2T=Yes"};
  }
  unsolicited_max_ = std::min(parameters.first_burst_bytes_max, command.expected_bytes);
  if (immediate_bytes > unsolicited_max_) {
    return data_error("too much immediate data", unsolicited_max_, immediate_bytes);
  }
  received_ = immediate_bytes;
  unsolicited_open_ = !command.final;
  if (!unsolicited_open_) end_sequence(false);
  return {};
}

bool DataOutTransfer::in_sequence(const DataOut& pdu) const {
  return !failed_ && !damaged_ && pdu.data_sn == data_sn_ && pdu.offset == received_;
}

std::uint32_t DataOutTransfer::burst_at(std::uint32_t offset) const {
  return std::min(burst_bytes_max_, wanted_ - std::min(offset, wanted_));
}

Result<DataOutTransfer::Use> DataOutTransfer::check(const DataOut& pdu, std::uint32_t bytes,
                                                    bool solicited) const {
  if (solicited == unsolicited_open_) {
    return Error{ErrorCode::kProtocol, unsolicited_open_
                                           ? "data-out: solicited data before the unsolicited end"
                                           : "data-out: unexpected unsolicited data"};
  }
  if (solicited && requests_done_ == requests_sent_) {
    return Error{ErrorCode::kProtocol, "data-out: solicited data without an R2T"};
  }
  if (!in_sequence(pdu)) return Use::kDrop;
  const std::uint32_t end =
      solicited ? sequence_from_ + burst_at(sequence_from_) : unsolicited_max_;
  if (bytes > end - received_) return data_error("too many bytes", end - received_, bytes);
  if (solicited && received_ + bytes == end && !pdu.final) {
    return Error{ErrorCode::kProtocol, "data-out: F=0 at the end of the burst"};
  }
  return Use::kTake;
}

void DataOutTransfer::arrived(const DataOut& pdu, std::uint32_t bytes, bool solicited, bool good) {
  if (good && in_sequence(pdu)) {
    received_ += bytes;
    ++data_sn_;
    const std::uint32_t end = sequence_from_ + burst_at(sequence_from_);
    if (solicited && pdu.final && received_ != end) lose();
  } else {
    lose();
  }
  if (pdu.final) end_sequence(solicited);
}

// The rest of the current sequence.
void DataOutTransfer::lose() {
  if (damaged_ || failed_) return;
  if (recoveries_left_ == 0) {
    failed_ = true;
    return;
  }
  --recoveries_left_;
  damaged_ = true;
}

std::optional<DataOutTransfer::Request> DataOutTransfer::next_request(
    std::uint32_t outstanding_max) {
  if (failed_ || unsolicited_open_ || requests_sent_ - requests_done_ >= outstanding_max)
    return std::nullopt;
  if (asked_to_ >= wanted_) return std::nullopt;
  const Request request{
      .r2t_sn = requests_sent_++, .offset = asked_to_, .bytes = burst_at(asked_to_)};
  asked_to_ += request.bytes;
  return request;
}

std::optional<DataOutTransfer::Request> DataOutTransfer::repeat_request() const {
  if (requests_done_ == requests_sent_) return std::nullopt;
  return Request{
      .r2t_sn = requests_done_, .offset = sequence_from_, .bytes = burst_at(sequence_from_)};
}

void DataOutTransfer::end_sequence(bool solicited) {
  data_sn_ = 0;
  if (solicited) {
    ++requests_done_;
  } else {
    unsolicited_open_ = false;
  }
  // With recovery, one R2T is outstanding at a time (13.18): nothing beyond it has been asked for.
  if (!solicited || damaged_) asked_to_ = received_;
  damaged_ = false;
  sequence_from_ = received_;
}

}  // namespace mariner::iscsi

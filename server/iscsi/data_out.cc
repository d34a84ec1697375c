#include "server/iscsi/data_out.h"

#include <algorithm>
#include <string>

namespace mariner::iscsi {
namespace {

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

Result<void> DataOutTransfer::accept(const DataOut& pdu, std::uint32_t bytes, bool solicited) {
  if (solicited == unsolicited_open_) {
    return Error{ErrorCode::kProtocol, unsolicited_open_
                                           ? "data-out: solicited data before the unsolicited end"
                                           : "data-out: unexpected unsolicited data"};
  }
  if (solicited && requests_done_ == requests_sent_) {
    return Error{ErrorCode::kProtocol, "data-out: solicited data without an R2T"};
  }
  const std::uint32_t end = solicited ? burst_end(requests_done_) : unsolicited_max_;
  if (pdu.data_sn != data_sn_ || pdu.offset != received_) failed_ = true;
  if (!failed_) {
    if (bytes > end - received_) return data_error("too many bytes", end - received_, bytes);
    received_ += bytes;
    ++data_sn_;
    if (solicited && received_ == end && !pdu.final) {
      return Error{ErrorCode::kProtocol, "data-out: F=0 at the end of the burst"};
    }
    if (solicited && received_ != end && pdu.final) failed_ = true;
  }
  if (pdu.final) end_sequence(solicited);
  return {};
}

std::optional<DataOutTransfer::Request> DataOutTransfer::next_request(
    std::uint32_t outstanding_max) {
  if (failed_ || unsolicited_open_ || requests_sent_ - requests_done_ >= outstanding_max)
    return std::nullopt;
  const std::uint32_t offset =
      requests_sent_ == 0 ? solicited_from_ : burst_end(requests_sent_ - 1);
  if (offset >= wanted_) return std::nullopt;
  const std::uint32_t r2t_sn = requests_sent_++;
  return Request{.r2t_sn = r2t_sn, .offset = offset, .bytes = burst_end(r2t_sn) - offset};
}

std::uint32_t DataOutTransfer::burst_end(std::uint32_t r2t_sn) const {
  const std::uint64_t end =
      solicited_from_ + (std::uint64_t{r2t_sn} + 1) * std::uint64_t{burst_bytes_max_};
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(end, wanted_));
}

void DataOutTransfer::end_sequence(bool solicited) {
  data_sn_ = 0;
  if (solicited) {
    ++requests_done_;
  } else {
    unsolicited_open_ = false;
    solicited_from_ = received_;
  }
}

}  // namespace mariner::iscsi

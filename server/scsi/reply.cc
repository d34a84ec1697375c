#include "server/scsi/reply.h"

#include <algorithm>

namespace mariner::scsi {
namespace {

Sense about(SenseKey key, AdditionalSense code, std::uint64_t lba) { return {key, code, lba, {}}; }

}  // namespace

Response check_condition(const Sense& sense, SenseFormat format) {
  return {Status::kCheckCondition, encode(sense, format), {}};
}

Response parameter_data(std::span<const std::uint8_t> data, std::uint32_t allocation_bytes) {
  const auto cut = data.first(std::min<std::size_t>(data.size(), allocation_bytes));
  Response response;
  if (!cut.empty()) {
    response.data_in.push_back({Payload::copy_of(std::as_bytes(cut)), 0, cut.size()});
  }
  return response;
}

Response layer_failure(const Error& error, Access access, std::uint64_t lba, SenseFormat format) {
  const auto refuse = [&](const Sense& sense) { return check_condition(sense, format); };
  switch (error.code) {
    case ErrorCode::kNoSpace: return refuse({SenseKey::kDataProtect, asc::kSpaceAllocationFailed});
    case ErrorCode::kReadOnly: return refuse({SenseKey::kDataProtect, asc::kWriteProtected});
    case ErrorCode::kCorrupt:
      return refuse(about(SenseKey::kMediumError, asc::kUnrecoveredReadError, lba));
    case ErrorCode::kIo:
      return refuse(about(SenseKey::kMediumError,
                          access == Access::kRead ? asc::kUnrecoveredReadError : asc::kWriteError,
                          lba));
    // A fenced coordinator's initiators find the new one by trying again.
    case ErrorCode::kStaleEpoch:
    case ErrorCode::kUnavailable: return refuse({SenseKey::kNotReady, asc::kBecomingReady});
    case ErrorCode::kBusy:
    case ErrorCode::kLimit: return {Status::kBusy, {}, {}};
    case ErrorCode::kAborted: return refuse({SenseKey::kAbortedCommand, asc::kNone});
    // A layer has no reason to say these of a checked range: our own trouble, not the medium's.
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kNotFound:
    case ErrorCode::kAlreadyExists:
    case ErrorCode::kOutsideWindow:
    case ErrorCode::kProtocol:
    case ErrorCode::kMiscompare: break;
  }
  return refuse({SenseKey::kHardwareError, asc::kInternalTargetFailure});
}

}  // namespace mariner::scsi

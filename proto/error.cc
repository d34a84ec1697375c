#include "proto/error.h"

#include <cerrno>
#include <system_error>

#include "proto/check.h"

namespace mariner {

std::string_view error_code_name(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid-argument";
    case ErrorCode::kNotFound: return "not-found";
    case ErrorCode::kAlreadyExists: return "already-exists";
    case ErrorCode::kOutsideWindow: return "outside-window";
    case ErrorCode::kBusy: return "busy";
    case ErrorCode::kReadOnly: return "read-only";
    case ErrorCode::kNoSpace: return "no-space";
    case ErrorCode::kLimit: return "limit";
    case ErrorCode::kCorrupt: return "corrupt";
    case ErrorCode::kIo: return "io";
    case ErrorCode::kProtocol: return "protocol";
    case ErrorCode::kAborted: return "aborted";
    case ErrorCode::kStaleEpoch: return "stale-epoch";
    case ErrorCode::kUnavailable: return "unavailable";
    case ErrorCode::kMiscompare: return "miscompare";
  }
  return "unknown";
}

std::string to_string(const Error& error) {
  return std::string(error_code_name(error.code)) + ": " + error.message;
}

Error errno_error(int error_number, std::string_view what) {
  return Error{error_number == ENOSPC ? ErrorCode::kNoSpace : ErrorCode::kIo,
               std::string(what) + ": " + std::generic_category().message(error_number)};
}

void throw_exception_from_error(const Error& error, const boost::source_location& where) {
  check_failed(where.file_name(), static_cast<int>(where.line()),
               "value of a failed Result was read", to_string(error).c_str());
}

}  // namespace mariner

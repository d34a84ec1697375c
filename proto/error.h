// Errors: what can go wrong because of a disk, a peer or a user, as values.
//
// A function that can fail returns Result<T>. The message names the thing, what was expected,
// what was found and, where there is something to do, what to do.
#pragma once

#include <boost/system/result.hpp>
#include <cstdint>
#include <string>
#include <string_view>

namespace mariner {

enum class ErrorCode : std::uint8_t {
  kInvalidArgument,  // the caller's words are wrong; nothing was done
  kNotFound,         // the named thing does not exist
  kAlreadyExists,    // the named thing exists already
  kOutsideWindow,    // the moment is before the protection window or in the future
  kBusy,             // sessions or another operation hold the thing
  kReadOnly,         // a write to something that cannot be written
  kNoSpace,          // the log or a disk is full
  kLimit,            // a named bound was reached
  kCorrupt,          // bytes failed their check: damage on a disk
  kIo,               // the operating system or device reported an error
  kProtocol,         // a peer broke a protocol
  kAborted,          // cancelled: shutdown, reset, task management
  kStaleEpoch,       // a message of a fenced coordinator
  kUnavailable,      // not now: starting, draining, or a node is away
  kMiscompare,       // a comparison found different bytes
};

// The code's name in lower case with dashes, as shown to users and in JSON ("outside-window").
std::string_view error_code_name(ErrorCode code) noexcept;

struct Error {
  ErrorCode code = ErrorCode::kIo;
  std::string message;
};

// "outside-window: ..." for logs.
std::string to_string(const Error& error);

// An Error from errno: "<what>: <strerror>"; ENOSPC becomes kNoSpace, anything else kIo.
Error errno_error(int error_number, std::string_view what);

// Makes boost::system::result throw nothing of ours: reading a value of a failed Result is a bug.
[[noreturn]] void throw_exception_from_error(const Error& error,
                                             const boost::source_location& where);

template <typename T>
using Result = boost::system::result<T, Error>;

}  // namespace mariner

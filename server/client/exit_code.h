// How the `mariner` command ends.
#pragma once

#include "proto/error.h"

namespace mariner::client {

enum class ExitCode : int {
  kDone = 0,
  kFailed = 1,
  kUsage = 2,          // the words are wrong; nothing was done
  kOutsideWindow = 3,  // the time is outside the protection window
  kBusy = 4,           // sessions hold it
  kNotConfirmed = 5,
  kErrorsFound = 10,  // a check found a file system that needs repairs
};

[[nodiscard]] constexpr ExitCode exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return ExitCode::kUsage;
    case ErrorCode::kOutsideWindow: return ExitCode::kOutsideWindow;
    case ErrorCode::kBusy: return ExitCode::kBusy;
    default: return ExitCode::kFailed;
  }
}

}  // namespace mariner::client

// The file that a measured log stands in.
#pragma once

#include <cstdint>
#include <string>

#include "logging/track.h"
#include "proto/error.h"

namespace mariner::bench {

// Makes a file of `bytes` and writes all of it once, unless one of that size is there. Durable on
// return. Blocking.
Result<void> make_log_file(const std::string& path, std::uint64_t bytes);

// A new identity: what an earlier run left in the file is nothing to a log that has it.
[[nodiscard]] logging::LogId random_log_id();

}  // namespace mariner::bench

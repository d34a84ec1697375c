// Where the updates of a measured index are made durable before they count: a log, either Mariner's
// or the usual kind that appends to a file.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "proto/error.h"
#include "proto/payload.h"
#include "proto/unique_function.h"

namespace mariner::bench {

class UpdateLog {
 public:
  using Done = UniqueFunction<void(Result<void>)>;

  virtual ~UpdateLog() = default;  // nothing may be under way
  [[nodiscard]] virtual std::string name() const = 0;
  // Whole blocks. `done` runs in a later turn, when they are durable.
  virtual void append(const PayloadSlice& payload, Done done) = 0;
  [[nodiscard]] virtual std::uint64_t written_bytes() const = 0;
};

}  // namespace mariner::bench

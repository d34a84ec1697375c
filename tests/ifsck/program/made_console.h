// A console whose words stay in memory.
#pragma once

#include <sstream>
#include <string>
#include <utility>

#include "server/client/console.h"
#include "server/client/zone.h"

namespace mariner::ifsck {

struct Utc final : Zone {
  [[nodiscard]] std::int64_t offset_s(std::int64_t /*utc_s*/) const override { return 0; }
};

struct MadeConsole {
  [[nodiscard]] client::Console console() {
    return {.in = in, .out = out, .err = err, .in_is_terminal = false, .out_is_terminal = false};
  }
  // What was printed since the last time.
  std::string take() { return std::exchange(out, std::ostringstream()).str(); }
  std::string take_errors() { return std::exchange(err, std::ostringstream()).str(); }

  std::istringstream in;
  std::ostringstream out;
  std::ostringstream err;
};

}  // namespace mariner::ifsck

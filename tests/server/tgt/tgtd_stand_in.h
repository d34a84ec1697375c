// SPDX-License-Identifier: GPL-2.0-only
// What tgtd exports, as far as the units of the module need it in a test. `stand_in` says how it is
// built, and holds what was done.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "server/tgt/tgt_abi.h"

namespace mariner::tgt {

struct StandIn {
  // Of which function the structures are laid out otherwise; empty: of none.
  std::string differs;
  BackingStore null_store{};
  // What was given to tgtd's event loop.
  int event_fd = -1;
  EventHandler handler = nullptr;
  void* handler_data = nullptr;
};

extern StandIn stand_in;

}  // namespace mariner::tgt

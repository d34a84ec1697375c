// SPDX-License-Identifier: GPL-2.0-only
// Commands that can be told apart by the first byte of their CDB.
#pragma once

#include <array>
#include <vector>

#include "server/tgt/command.h"

namespace mariner::tgt {

inline std::vector<int> drained(CommandList& list) {
  std::vector<int> numbers;
  while (Command* command = list.take()) numbers.push_back(command->cdb[0]);
  return numbers;
}

struct Numbered {
  std::array<Command, 8> commands{};
  Numbered() {
    for (std::size_t i = 0; i < commands.size(); ++i) {
      commands[i].cdb[0] = static_cast<std::uint8_t>(i);
    }
  }
};

}  // namespace mariner::tgt

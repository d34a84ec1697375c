// SPDX-License-Identifier: GPL-2.0-only
#include "server/tgt/command.h"

#include <utility>

namespace mariner::tgt {
namespace {

constexpr std::uint8_t kUnitAttention = 6;

// Of sense data in either format; 0 if it is too short to tell.
std::uint8_t sense_key(const Command& command) {
  const auto& sense = command.sense;
  if (command.sense_bytes < 8) return 0;
  return (sense[0] & 0x7F) >= 0x72 ? sense[1] & 0x0F : sense[2] & 0x0F;
}

std::uint16_t sense_code(const Command& command) {
  const auto& sense = command.sense;
  const std::size_t at = (sense[0] & 0x7F) >= 0x72 ? 2 : 12;
  if (command.sense_bytes < at + 2) return 0;
  return static_cast<std::uint16_t>(sense[at] << 8 | sense[at + 1]);
}

}  // namespace

void CommandList::append(Command& command) {
  command.previous = last_;
  command.next = nullptr;
  (last_ != nullptr ? last_->next : first_) = &command;
  last_ = &command;
  ++size_;
}

void CommandList::remove(Command& command) {
  (command.previous != nullptr ? command.previous->next : first_) = command.next;
  (command.next != nullptr ? command.next->previous : last_) = command.previous;
  command.previous = command.next = nullptr;
  --size_;
}

Command* CommandList::take() {
  Command* command = first_;
  if (command != nullptr) remove(*command);
  return command;
}

void CommandList::put_before(CommandList& others) {
  while (Command* command = others.take()) append(*command);
  std::swap(*this, others);
}

bool is_unit_attention(const Command& command, std::uint16_t& code) {
  if (command.status != kCheckCondition || sense_key(command) != kUnitAttention) return false;
  code = sense_code(command);
  return true;
}

}  // namespace mariner::tgt

// SPDX-License-Identifier: GPL-2.0-only
#include "server/tgt/command.h"

#include <gtest/gtest.h>

#include "tests/server/tgt/numbered_commands.h"

namespace mariner::tgt {
namespace {

TEST(TgtCommandList, KeepsTheOrder) {
  Numbered all;
  CommandList list;
  EXPECT_TRUE(list.empty());
  for (Command& command : all.commands) list.append(command);
  list.remove(all.commands[0]);
  list.remove(all.commands[3]);
  list.remove(all.commands[7]);
  EXPECT_EQ(list.size(), 5u);
  EXPECT_EQ(drained(list), (std::vector{1, 2, 4, 5, 6}));
  EXPECT_TRUE(list.empty());
  list.append(all.commands[2]);
  EXPECT_EQ(drained(list), (std::vector{2}));
}

TEST(TgtCommandList, WhatIsSentAgainGoesFirst) {
  Numbered all;
  CommandList again;
  CommandList waiting;
  for (const int i : {0, 1}) again.append(all.commands[static_cast<std::size_t>(i)]);
  for (const int i : {2, 3, 4}) waiting.append(all.commands[static_cast<std::size_t>(i)]);
  again.put_before(waiting);
  EXPECT_TRUE(again.empty());
  EXPECT_EQ(drained(waiting), (std::vector{0, 1, 2, 3, 4}));
}

TEST(TgtCommand, AUnitAttentionIsKnownInBothFormats) {
  Command command;
  std::uint16_t code = 0;
  command.status = kCheckCondition;
  command.sense = {0x70, 0, 6, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x28, 0x01};
  command.sense_bytes = 18;
  EXPECT_TRUE(is_unit_attention(command, code));
  EXPECT_EQ(code, 0x2801);
  command.sense = {0x72, 6, 0x2A, 0x09};
  command.sense_bytes = 8;
  EXPECT_TRUE(is_unit_attention(command, code));
  EXPECT_EQ(code, 0x2A09);
  command.sense[1] = 5;
  EXPECT_FALSE(is_unit_attention(command, code));
  command.sense[1] = 6;
  command.sense_bytes = 4;
  EXPECT_FALSE(is_unit_attention(command, code)) << "too short";
  command.sense_bytes = 8;
  command.status = kGood;
  EXPECT_FALSE(is_unit_attention(command, code));
}

}  // namespace
}  // namespace mariner::tgt

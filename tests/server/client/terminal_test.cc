#include "server/client/terminal.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

namespace mariner::client {
namespace {

TEST(Terminal, HasColorsUnlessSomethingSpeaksAgainstThem) {
  unsetenv("NO_COLOR");
  setenv("TERM", "xterm", 1);
  EXPECT_TRUE(process_console().color);
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(process_console().color);
  setenv("TERM", "xterm", 1);
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(process_console().color);
  unsetenv("NO_COLOR");
  EXPECT_GT(process_console().columns, 0);
}

TEST(Terminal, TellsTheTime) {
  const auto first = system_now();
  EXPECT_GT(first.ns, 1'700'000'000'000'000'000u);
  EXPECT_GE(system_now(), first);
}

TEST(Terminal, WhatCouldNotBeWrittenIsAFailure) {
  EXPECT_EQ(flushed(0), 0);
  EXPECT_EQ(flushed(3), 3);
  std::cout.setstate(std::ios::failbit);
  EXPECT_EQ(flushed(0), 1);
  EXPECT_EQ(flushed(10), 10);
  std::cout.clear();
}

}  // namespace
}  // namespace mariner::client

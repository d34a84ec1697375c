#include "server/client/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string_view>

namespace mariner::client {
namespace {

bool wants_color() {
  const char* terminal = std::getenv("TERM");
  return std::getenv("NO_COLOR") == nullptr && terminal != nullptr &&
         std::string_view(terminal) != "dumb";
}

int columns() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Console process_console() {
  return {.in = std::cin,
          .out = std::cout,
          .err = std::cerr,
          .in_is_terminal = isatty(STDIN_FILENO) == 1,
          .out_is_terminal = isatty(STDOUT_FILENO) == 1,
          .columns = columns(),
          .color = wants_color()};
}

VersionTime system_now() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return {static_cast<std::uint64_t>(std::chrono::nanoseconds(since_epoch).count())};
}

int flushed(int exit_code) {
  std::cout.flush();
  return exit_code == 0 && !std::cout ? 1 : exit_code;
}

}  // namespace mariner::client

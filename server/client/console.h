// Where the command reads and writes: a terminal, a pipe, or a test's strings.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

namespace mariner::client {

// `text` without anything that could steer a terminal: names may come from a network.
[[nodiscard]] std::string printable(std::string_view text);

struct Console {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  bool in_is_terminal = false;
  bool out_is_terminal = false;
  int columns = 80;

  // Settled by the flags.
  bool color = false;
  bool quiet = false;

  [[nodiscard]] std::string bold(std::string_view text) const { return styled("1", text); }
  [[nodiscard]] std::string dim(std::string_view text) const { return styled("2", text); }
  [[nodiscard]] std::string red(std::string_view text) const { return styled("31", text); }
  [[nodiscard]] std::string green(std::string_view text) const { return styled("32", text); }
  [[nodiscard]] std::string yellow(std::string_view text) const { return styled("33", text); }

  // What was asked for.
  void print(std::string_view text) const;
  // What is good to know: not with --quiet.
  void note(std::string_view text) const;
  // Writes `question` and reads a line. Nothing at the end of the input.
  [[nodiscard]] std::optional<std::string> ask(std::string_view question) const;

 private:
  [[nodiscard]] std::string styled(std::string_view code, std::string_view text) const;
};

}  // namespace mariner::client

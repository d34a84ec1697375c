#include "server/client/console.h"

#include <fmt/format.h>

#include <istream>
#include <ostream>

#include "proto/utf8.h"

namespace mariner::client {

std::string printable(std::string_view text) {
  auto clean = to_utf8(text);
  for (auto& c : clean) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  return clean;
}

std::string Console::styled(std::string_view code, std::string_view text) const {
  return color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

void Console::print(std::string_view text) const { out << text; }

void Console::note(std::string_view text) const {
  if (!quiet) out << text;
}

std::optional<std::string> Console::ask(std::string_view question) const {
  out << question << std::flush;
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  return line;
}

}  // namespace mariner::client

// Text in the JSON that loads print.
#pragma once

#include <string>
#include <string_view>

namespace mariner::bench {

// In quotation marks; control characters as spaces.
inline std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out + '"';
}

}  // namespace mariner::bench

// Bytes as hexadecimal digits, for golden packets.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace mariner::trm {

inline std::string to_hex(std::span<const std::byte> bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte each : bytes) {
    text += kDigits[std::to_integer<unsigned>(each) >> 4];
    text += kDigits[std::to_integer<unsigned>(each) & 15];
  }
  return text;
}

}  // namespace mariner::trm

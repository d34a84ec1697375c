// Bytes as hexadecimal digits, for golden packets.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// Of well-formed digits.
inline std::vector<std::byte> from_hex(std::string_view digits) {
  std::vector<std::byte> bytes;
  for (std::size_t at = 0; at + 1 < digits.size(); at += 2) {
    bytes.push_back(
        static_cast<std::byte>(std::stoi(std::string(digits.substr(at, 2)), nullptr, 16)));
  }
  return bytes;
}

}  // namespace mariner::trm

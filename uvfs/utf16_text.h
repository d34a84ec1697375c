// UTF-16 as foreign file systems keep names, and single characters, as UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "proto/bytes.h"

namespace mariner::uvfs {

inline void append_utf8(std::uint32_t character, std::string& to) {
  const auto put = [&](std::uint32_t byte) { to += static_cast<char>(byte); };
  const auto rest = [&](unsigned shift) { put(0x80 | (character >> shift & 0x3F)); };
  if (character < 0x80) {
    put(character);
  } else if (character < 0x800) {
    put(0xC0 | character >> 6);
    rest(0);
  } else if (character < 0x10000) {
    put(0xE0 | character >> 12);
    rest(6);
    rest(0);
  } else {
    put(0xF0 | character >> 18);
    rest(12);
    rest(6);
    rest(0);
  }
}

// Little endian, of an even number of bytes. Half a pair of surrogates is written as if it were a
// character, so that no two names are one.
[[nodiscard]] inline std::string utf8_of_utf16(std::span<const std::byte> units) {
  std::string text;
  const std::size_t count = units.size() / 2;
  const auto unit = [&](std::size_t i) -> std::uint32_t {
    return load_le<std::uint16_t>(units.data() + 2 * i);
  };
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t first = unit(i);
    if ((first & 0xFC00) == 0xD800 && i + 1 < count && (unit(i + 1) & 0xFC00) == 0xDC00) {
      append_utf8(0x10000 + ((first & 0x3FF) << 10) + (unit(i + 1) & 0x3FF), text);
      ++i;
    } else {
      append_utf8(first, text);
    }
  }
  return text;
}

}  // namespace mariner::uvfs

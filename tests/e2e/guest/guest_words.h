// What the programs of a guest say to the host, on ttyS1, and what they write.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

namespace mariner::guest {

using Random = std::mt19937_64;

inline int line_fd = -1;

// False: there is none. `or_output`: then the standard output is as good.
[[nodiscard]] inline bool open_line(bool or_output = false) {
  line_fd = ::open("/dev/ttyS1", O_RDWR | O_NOCTTY);
  if (line_fd < 0 && or_output) line_fd = STDOUT_FILENO;
  return line_fd >= 0;
}

__attribute__((format(printf, 1, 2))) inline void say(const char* format, ...) {
  std::array<char, 1024> text{};
  va_list words;
  va_start(words, format);
  const int length = std::vsnprintf(text.data(), text.size() - 1, format, words);
  va_end(words);
  text[static_cast<std::size_t>(length)] = '\n';
  if (::write(line_fd, text.data(), static_cast<std::size_t>(length) + 1) != length + 1) {
    std::exit(3);
  }
}

[[noreturn]] inline void fail(const std::string& what) {
  say("ERROR %s: %s", what.c_str(), std::strerror(errno));
  std::exit(1);
}

inline void await_answer() {
  char c = 0;
  while (c != '\n') {
    if (::read(line_fd, &c, 1) != 1) std::exit(3);
  }
}

inline std::uint32_t crc32c(const std::string& bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t i = 0; i < made.size(); ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78 : 0);
      made[i] = value;
    }
    return made;
  }();
  std::uint32_t crc = ~0U;
  for (const char c : bytes) crc = (crc >> 8) ^ table[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

// No two are alike.
inline std::string content(Random& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t at = 0; at < size; at += 8) {
    const std::uint64_t word = random();
    std::memcpy(&bytes[at], &word, std::min<std::size_t>(8, size - at));
  }
  return bytes;
}

}  // namespace mariner::guest

// Endian-safe loads and stores. Big endian for SCSI and iSCSI, little endian for our own formats.
//
// The caller guarantees that the pointed-to bytes exist.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace mariner {

static_assert(std::endian::native == std::endian::little, "Mariner runs on little-endian machines");

template <typename T>
[[nodiscard]] inline T load_le(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
inline void store_le(void* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

template <typename T>
[[nodiscard]] inline T byte_swapped(T value) {
  if constexpr (sizeof(T) == 1) return value;
  if constexpr (sizeof(T) == 2) return static_cast<T>(__builtin_bswap16(value));
  if constexpr (sizeof(T) == 4) return static_cast<T>(__builtin_bswap32(value));
  if constexpr (sizeof(T) == 8) return static_cast<T>(__builtin_bswap64(value));
}

template <typename T>
[[nodiscard]] inline T load_be(const void* from) {
  return byte_swapped(load_le<T>(from));
}

template <typename T>
inline void store_be(void* to, T value) {
  store_le(to, byte_swapped(value));
}

// Big-endian 24-bit numbers: iSCSI's DataSegmentLength.
[[nodiscard]] inline std::uint32_t load_be24(const void* from) {
  const auto* p = static_cast<const std::uint8_t*>(from);
  return (std::uint32_t{p[0]} << 16) | (std::uint32_t{p[1]} << 8) | p[2];
}

inline void store_be24(void* to, std::uint32_t value) {
  auto* p = static_cast<std::uint8_t*>(to);
  p[0] = static_cast<std::uint8_t>(value >> 16);
  p[1] = static_cast<std::uint8_t>(value >> 8);
  p[2] = static_cast<std::uint8_t>(value);
}

[[nodiscard]] inline std::span<const std::byte> as_byte_span(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

[[nodiscard]] inline bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace mariner

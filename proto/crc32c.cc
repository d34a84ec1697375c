#include "proto/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

namespace mariner {
namespace {

// Polynomials over GF(2) modulo the CRC's, with the coefficient of x^0 in the highest bit, as the
// CRC itself.
constexpr std::uint32_t kPolynomial = 0x82f63b78;
constexpr std::uint32_t kX8 = 1u << (31 - 8);

constexpr std::uint32_t times_x(std::uint32_t a) {
  return (a & 1) != 0 ? (a >> 1) ^ kPolynomial : a >> 1;
}

constexpr std::uint32_t product(std::uint32_t a, std::uint32_t b) {
  std::uint32_t sum = 0;
  for (; a != 0; a <<= 1, b = times_x(b)) {
    if ((a >> 31) != 0) sum ^= b;
  }
  return sum;
}

// Multiplies by a fixed factor: what each value of each group of four bits adds to the product.
class Multiplier {
 public:
  constexpr explicit Multiplier(std::uint32_t factor) {
    for (std::size_t group = kGroups; group-- > 0;) {
      for (std::size_t bit = 4; bit-- > 0; factor = times_x(factor)) {
        const std::size_t lowest = std::size_t{1} << bit;
        for (std::size_t value = lowest; value < kValues; value = (value + 1) | lowest) {
          adds_[group][value] ^= factor;
        }
      }
    }
  }

  [[nodiscard]] std::uint32_t operator()(std::uint32_t a) const {
    const auto add = [&](std::size_t group) { return adds_[group][(a >> (4 * group)) % kValues]; };
    return add(0) ^ add(1) ^ add(2) ^ add(3) ^ add(4) ^ add(5) ^ add(6) ^ add(7);
  }

 private:
  static constexpr std::size_t kGroups = 8;
  static constexpr std::size_t kValues = 16;
  std::array<std::array<std::uint32_t, kValues>, kGroups> adds_{};
};

// A CRC followed by n bytes is multiplied by x^(8n). By squaring, for n = 1, 2, 4, ...; the powers
// come round after 31 squarings, because the order of x divides 2^31 - 1.
constexpr std::size_t kSquarings = 31;

constexpr std::uint32_t squared(std::uint32_t a, std::size_t times) {
  for (; times > 0; --times) a = product(a, a);
  return a;
}
static_assert(squared(kX8, kSquarings) == kX8);

template <std::size_t... I>
constexpr auto make_shifts(std::index_sequence<I...>) {
  return std::array{Multiplier(squared(kX8, I))...};
}
constexpr auto kShifts = make_shifts(std::make_index_sequence<kSquarings>());

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed) noexcept {
  // ISA-L takes and returns the inverted register, a signed length, and a pointer that it only
  // reads.
  std::uint32_t state = ~seed;
  while (!bytes.empty()) {
    const std::size_t piece =
        std::min<std::size_t>(bytes.size(), std::numeric_limits<std::int32_t>::max());
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    state = crc32_iscsi(data, static_cast<int>(piece), state);
    bytes = bytes.subspan(piece);
  }
  return ~state;
}

std::uint32_t crc32c_combine(std::uint32_t crc_a, std::uint32_t crc_b,
                             std::uint64_t length_b) noexcept {
  for (; length_b != 0; length_b &= length_b - 1) {
    const auto bit = static_cast<std::size_t>(std::countr_zero(length_b));
    crc_a = kShifts[bit % kSquarings](crc_a);
  }
  return crc_a ^ crc_b;
}

}  // namespace mariner

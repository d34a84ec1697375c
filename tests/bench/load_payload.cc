#include "tests/bench/load_payload.h"

#include <array>
#include <cstring>

namespace mariner::bench {

void LoadPayload::fill(std::span<unsigned char> data) {
  for (unsigned char& byte : data) byte = static_cast<unsigned char>(engine_());
}

void LoadPayload::prepare(std::span<unsigned char> data, std::uint64_t place) {
  if (options_.compressible) renew(data);
  if (options_.stamp) stamp(data, place);
}

// In each 512 bytes, as other generators of loads do: first what is random, then zeros.
void LoadPayload::renew(std::span<unsigned char> data) {
  constexpr std::size_t kPieceBytes = 512;
  const std::size_t random = kPieceBytes * (100 - *options_.compressible) / 100 / 8;
  for (std::size_t at = 0; at + kPieceBytes <= data.size(); at += kPieceBytes) {
    for (std::size_t i = 0; i < kPieceBytes / 8; ++i) {
      const std::uint64_t word = i < random ? engine_() : 0;
      std::memcpy(&data[at + 8 * i], &word, sizeof word);
    }
  }
}

void LoadPayload::stamp(std::span<unsigned char> data, std::uint64_t place) const {
  constexpr std::size_t kPieceBytes = 4096;
  for (std::size_t at = 0; at + kPieceBytes <= data.size(); at += kPieceBytes) {
    const std::array<std::uint64_t, 2> told{place + at, options_.stamp_as};
    std::memcpy(&data[at], told.data(), sizeof told);
  }
}

}  // namespace mariner::bench

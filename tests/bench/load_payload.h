// The bytes that a load writes: the same ones in every run with the same seed. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>

namespace mariner::bench {

class LoadPayload {
 public:
  struct Options {
    std::uint64_t seed = 1;      // of the random bytes
    std::uint64_t stamp_as = 1;  // what stamps tell as the seed
    // Each command's bytes are new ones, so many percent of which compress to nothing; without, a
    // buffer keeps the bytes that fill() gave it.
    std::optional<unsigned> compressible;
    // Each whole 4 KiB begin with their place on the LUN and stamp_as: 8 bytes each, in the order
    // of this machine's bytes.
    bool stamp = false;
  };

  explicit LoadPayload(const Options& options) : options_(options), engine_(options.seed) {}

  // Random bytes for a new buffer: not zeros, which a store may treat apart.
  void fill(std::span<unsigned char> data);
  // Makes a buffer ready for a command to byte `place` of the LUN.
  void prepare(std::span<unsigned char> data, std::uint64_t place);

 private:
  void renew(std::span<unsigned char> data);
  void stamp(std::span<unsigned char> data, std::uint64_t place) const;

  const Options options_;
  std::mt19937_64 engine_;
};

}  // namespace mariner::bench

// A volume whose blocks say what they are, so that what is read from a view can be told to be
// exact.
//
// Phase 0 writes every block, each later phase some of them, which the seed decides. A block that a
// phase wrote holds noise drawn from the seed, its number and that phase, and nothing else does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "proto/units.h"

namespace mariner::bench {

class StampedVolume {
 public:
  using Phase = std::uint32_t;
  using Block = std::span<std::byte, kBlockBytes>;
  using ConstBlock = std::span<const std::byte, kBlockBytes>;

  struct Options {
    std::uint64_t seed = 1;
    std::uint64_t blocks = 0;        // of the volume, 1 or more
    std::uint64_t phase_blocks = 0;  // of each phase but the first
    Phase phases = 0;                // behind phase 0
  };
  explicit StampedVolume(const Options& options);

  [[nodiscard]] const Options& options() const { return options_; }
  // What a phase behind the first writes; distinct, in order.
  [[nodiscard]] std::vector<Lbn> written_in(Phase phase) const;
  // The last phase up to `phase` that wrote the block.
  [[nodiscard]] Phase last_write(Lbn block, Phase phase) const;

  // As `phase` writes it.
  void fill(Block out, Lbn block, Phase phase) const;
  // Whether `bytes` are what a view of the moment behind `phase` shows of the block.
  [[nodiscard]] bool shows(ConstBlock bytes, Lbn block, Phase phase) const;

 private:
  const Options options_;
  std::vector<std::pair<std::uint64_t, Phase>> writes_;  // behind phase 0; by block, then by phase
};

}  // namespace mariner::bench

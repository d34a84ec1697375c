// A volume at a moment, with everything that a check needs.
#pragma once

#include <cstdint>
#include <optional>

#include "ifsck/baseline.h"
#include "ifsck/census.h"
#include "ifsck/ext_context.h"
#include "ifsck/write_trace.h"

namespace mariner::ifsck {

inline constexpr std::size_t kAllFindings = ~std::size_t{0};

struct MadeMoment {
  explicit MadeMoment(TracePast& past, SequenceNumber at = {}) : view(past, at, overlay) { open(); }
  // Again, after superblock or descriptors were written to.
  void open() {
    context.reset();
    layout.reset();
    volume.emplace(ExtVolume::open(view, {}).value());
    layout.emplace(ExtLayout::of(*volume).value());
    context.emplace(*volume, *layout);
  }
  Census census(Baseline* keep = nullptr) {
    return Census::take(*volume, *layout,
                        {.findings_max = kAllFindings, .progress = {}, .keep = keep})
        .value();
  }
  // One bit, in the overlay.
  void flip(std::uint64_t byte, unsigned bit = 0) {
    std::byte value{};
    (void)view.read({byte, 1}, std::span(&value, 1)).value();
    value ^= static_cast<std::byte>(1u << bit);
    (void)view.write({byte, 1}, std::span(&value, 1)).value();
  }
  template <typename T>
  void put(std::uint64_t byte, T value) {
    (void)view.write({byte, sizeof value}, std::as_bytes(std::span(&value, 1))).value();
  }
  // The overlay's blocks.
  [[nodiscard]] std::vector<BlockRange> changed() const {
    std::vector<BlockRange> ranges;
    overlay.for_each([&](Lbn lbn, const Overlay::Block&) {
      ranges.push_back({lbn, BlockCount{1}});
    });
    return ranges;
  }

  Overlay overlay;
  View view;
  std::optional<ExtVolume> volume;
  std::optional<ExtLayout> layout;
  std::optional<ExtContext> context;
};

}  // namespace mariner::ifsck

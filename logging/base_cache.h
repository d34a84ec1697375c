// The bytes of blocks that may become the base of a delta soon, so that they need not be read
// again. A block has one place, which the next one that falls there takes. Of one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "proto/check.h"
#include "proto/units.h"

namespace mariner::logging {

class BaseCache {
 public:
  // Of at most `places` blocks; memory is taken as it fills.
  explicit BaseCache(std::size_t places) : places_(places) { CHECK(places > 0); }

  // Empty if it is not there; valid until the next insert().
  [[nodiscard]] std::span<const std::byte> find(std::uint32_t block) const {
    if (slots_.empty()) return {};
    const Slot& slot = slots_[block % places_];
    if (slot.block != block || slot.index == kNone) return {};
    return {bytes_.data() + std::size_t{slot.index} * kBlockBytes, kBlockBytes};
  }
  void insert(std::uint32_t block, std::span<const std::byte> bytes) {
    CHECK(bytes.size() == kBlockBytes);
    if (slots_.empty()) {
      slots_.resize(places_);
      bytes_.reserve(places_ * kBlockBytes);
    }
    Slot& slot = slots_[block % places_];
    if (slot.index == kNone) {
      slot.index = static_cast<std::uint32_t>(bytes_.size() / kBlockBytes);
      bytes_.resize(bytes_.size() + kBlockBytes);
    }
    slot.block = block;
    std::memcpy(bytes_.data() + std::size_t{slot.index} * kBlockBytes, bytes.data(), kBlockBytes);
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Slot {
    std::uint32_t block = 0;
    std::uint32_t index = kNone;  // in bytes_, in blocks
  };

  const std::size_t places_;
  std::vector<Slot> slots_;
  std::vector<std::byte> bytes_;
};

}  // namespace mariner::logging

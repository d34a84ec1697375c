// Blocks that differ from those of a view: repairs, until they are thrown away or served.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <span>

#include "proto/check.h"
#include "proto/units.h"

namespace mariner::ifsck {

class Overlay {
 public:
  using Block = std::array<std::byte, kBlockBytes>;

  // Null: as in the view.
  [[nodiscard]] const Block* find(Lbn block) const {
    const auto found = blocks_.find(block);
    return found == blocks_.end() ? nullptr : found->second.get();
  }
  void put(Lbn block, std::span<const std::byte> bytes) {
    CHECK(bytes.size() == kBlockBytes);
    auto& place = blocks_[block];
    if (place == nullptr) place = std::make_unique<Block>();
    std::ranges::copy(bytes, place->begin());
  }
  void clear() { blocks_.clear(); }
  friend bool operator==(const Overlay& one, const Overlay& two) {
    return std::ranges::equal(one.blocks_, two.blocks_, [](const auto& a, const auto& b) {
      return a.first == b.first && *a.second == *b.second;
    });
  }

  [[nodiscard]] std::size_t size() const { return blocks_.size(); }
  // Calls `visit(lbn, block)` for each, ascending.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const auto& [lbn, block] : blocks_) visit(lbn, *block);
  }

 private:
  std::map<Lbn, std::unique_ptr<Block>> blocks_;
};

}  // namespace mariner::ifsck

// Blocks that differ from those of a view: repairs, until they are thrown away or served.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

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
    writes_.push_back(block);
    if (saved_ != nullptr) {
      const auto [old, first] = saved_->try_emplace(block);
      if (first) old->second = std::move(place);
    }
    if (place == nullptr) place = std::make_unique<Block>();
    std::ranges::copy(bytes, place->begin());
  }
  void clear() {
    CHECK(saved_ == nullptr);
    for (const auto& [lbn, block] : blocks_) writes_.push_back(lbn);
    blocks_.clear();
  }

  // What blocks were; null: not there.
  using Saved = std::map<Lbn, std::unique_ptr<Block>>;
  // From now on each block goes to `saved` when it is put the first time; null: none does. What had
  // them so far.
  Saved* save_to(Saved* saved) { return std::exchange(saved_, saved); }
  void put_back(Saved& saved) {
    for (auto& [lbn, block] : saved) {
      writes_.push_back(lbn);
      if (block == nullptr) {
        blocks_.erase(lbn);
      } else {
        blocks_[lbn] = std::move(block);
      }
    }
    saved.clear();
  }

  friend bool operator==(const Overlay& one, const Overlay& two) {
    return std::ranges::equal(one.blocks_, two.blocks_, [](const auto& a, const auto& b) {
      return a.first == b.first && *a.second == *b.second;
    });
  }

  // All that were put, or put back, ever: in order.
  [[nodiscard]] const std::vector<Lbn>& writes() const { return writes_; }
  [[nodiscard]] std::size_t size() const { return blocks_.size(); }
  // Calls `visit(lbn, block)` for each, ascending.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const auto& [lbn, block] : blocks_) visit(lbn, *block);
  }

 private:
  std::map<Lbn, std::unique_ptr<Block>> blocks_;
  Saved* saved_ = nullptr;
  std::vector<Lbn> writes_;
};

}  // namespace mariner::ifsck

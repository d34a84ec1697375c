#include "server/volume/base_map.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace mariner::volume {

void BaseMap::add(BlockRange range) {
  overwritten_.remove(range);
  if (everywhere_) return;
  for (Lbn at = range.first; at < range.end();) {
    const std::uint64_t page = at.value / kPageBlocks;
    const Lbn end = std::min(range.end(), Lbn{(page + 1) * kPageBlocks});
    if (blocks_.add(BlockRange::between(at, end))) changed_.insert(page);
    at = end;
  }
}

bool BaseMap::load(const Page& page) {
  BlockSet::Bits bits;
  if (page.bits.size() != bits.size()) return false;
  std::memcpy(bits.data(), page.bits.data(), bits.size());
  blocks_.set_page(page.number, bits);
  return true;
}

void BaseMap::visit(BlockRange range, const std::function<void(BlockRange, bool)>& visitor) const {
  if (!everywhere_) return blocks_.visit(range, visitor);
  if (!range.empty()) visitor(range, true);
}

void BaseMap::overwritten(BlockRange range) {
  visit(range, [this](BlockRange part, bool in_image) {
    if (in_image) overwritten_.add(part);
  });
}

bool BaseMap::may_hold_base(BlockRange range) const {
  bool may = false;
  visit(range, [&](BlockRange part, bool in_image) {
    if (!in_image || may) return;
    overwritten_.visit(part, [&](BlockRange, bool overwritten) { may = may || !overwritten; });
  });
  return may;
}

bool BaseMap::is_stored(BlockRange range) const {
  if (range.empty()) return true;
  const auto first = changed_.lower_bound(range.first.value / kPageBlocks);
  return first == changed_.end() || *first > (range.end().value - 1) / kPageBlocks;
}

std::vector<BaseMap::Page> BaseMap::changed() const {
  std::vector<Page> changed;
  for (const std::uint64_t number : changed_) {
    const BlockSet::Bits& bits = blocks_.page(number);
    changed.push_back(
        {number, std::string(reinterpret_cast<const char*>(bits.data()), bits.size())});
  }
  return changed;
}

}  // namespace mariner::volume

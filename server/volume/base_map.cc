#include "server/volume/base_map.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace mariner::volume {
namespace {

constexpr std::uint8_t mask_of(std::uint64_t block) {
  return static_cast<std::uint8_t>(1u << (block % 8));
}

}  // namespace

void BaseMap::add(BlockRange range) {
  if (everywhere_) return;
  for (std::uint64_t at = range.first.value; at < range.end().value;) {
    const std::uint64_t page = at / kPageBlocks;
    const std::uint64_t end = std::min(range.end().value, (page + 1) * kPageBlocks);
    Bits& bits = pages_[page];
    bool changed = false;
    for (; at < end; ++at) {
      std::uint8_t& byte = bits[at % kPageBlocks / 8];
      changed = changed || (byte & mask_of(at)) == 0;
      byte = static_cast<std::uint8_t>(byte | mask_of(at));
    }
    if (changed) changed_.insert(page);
  }
}

bool BaseMap::load(const Page& page) {
  Bits bits;
  if (page.bits.size() != bits.size()) return false;
  std::memcpy(bits.data(), page.bits.data(), bits.size());
  pages_[page.number] = bits;
  return true;
}

bool BaseMap::has(Lbn block) const {
  const auto page = pages_.find(block.value / kPageBlocks);
  return page != pages_.end() &&
         (page->second[block.value % kPageBlocks / 8] & mask_of(block.value)) != 0;
}

void BaseMap::visit(BlockRange range, const std::function<void(BlockRange, bool)>& visitor) const {
  if (range.empty()) return;
  if (everywhere_ || pages_.empty()) return visitor(range, everywhere_);
  Lbn start = range.first;
  bool in_image = has(start);
  for (Lbn at = start; at < range.end();) {
    const std::uint64_t page = at.value / kPageBlocks;
    const Lbn page_end = std::min(range.end(), Lbn{(page + 1) * kPageBlocks});
    if (!pages_.contains(page)) {
      if (in_image) {
        visitor(BlockRange::between(start, at), true);
        start = at;
        in_image = false;
      }
      at = page_end;
      continue;
    }
    for (; at < page_end; at = at + BlockCount{1}) {
      if (has(at) == in_image) continue;
      visitor(BlockRange::between(start, at), in_image);
      start = at;
      in_image = !in_image;
    }
  }
  visitor(BlockRange::between(start, range.end()), in_image);
}

bool BaseMap::is_stored(BlockRange range) const {
  if (range.empty()) return true;
  const auto first = changed_.lower_bound(range.first.value / kPageBlocks);
  return first == changed_.end() || *first > (range.end().value - 1) / kPageBlocks;
}

std::vector<BaseMap::Page> BaseMap::changed() const {
  std::vector<Page> changed;
  for (const std::uint64_t number : changed_) {
    const Bits& bits = pages_.at(number);
    changed.push_back(
        {number, std::string(reinterpret_cast<const char*>(bits.data()), bits.size())});
  }
  return changed;
}

}  // namespace mariner::volume

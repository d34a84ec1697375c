#include "server/volume/block_set.h"

#include <algorithm>

namespace mariner::volume {
namespace {

constexpr std::uint8_t mask_of(std::uint64_t block) {
  return static_cast<std::uint8_t>(1u << (block % 8));
}

}  // namespace

bool BlockSet::add(BlockRange range) {
  bool changed = false;
  for (std::uint64_t at = range.first.value; at < range.end().value;) {
    Bits& bits = pages_[at / kPageBlocks];
    const std::uint64_t end = std::min(range.end().value, (at / kPageBlocks + 1) * kPageBlocks);
    for (; at < end; ++at) {
      std::uint8_t& byte = bits[at % kPageBlocks / 8];
      changed = changed || (byte & mask_of(at)) == 0;
      byte = static_cast<std::uint8_t>(byte | mask_of(at));
    }
  }
  return changed;
}

void BlockSet::remove(BlockRange range) {
  for (std::uint64_t at = range.first.value; at < range.end().value;) {
    const std::uint64_t end = std::min(range.end().value, (at / kPageBlocks + 1) * kPageBlocks);
    const auto page = pages_.find(at / kPageBlocks);
    if (page == pages_.end()) {
      at = end;
      continue;
    }
    for (; at < end; ++at) {
      std::uint8_t& byte = page->second[at % kPageBlocks / 8];
      byte = static_cast<std::uint8_t>(byte & ~mask_of(at));
    }
    if (std::ranges::all_of(page->second, [](std::uint8_t byte) { return byte == 0; })) {
      pages_.erase(page);
    }
  }
}

bool BlockSet::has(Lbn block) const {
  const auto page = pages_.find(block.value / kPageBlocks);
  return page != pages_.end() &&
         (page->second[block.value % kPageBlocks / 8] & mask_of(block.value)) != 0;
}

void BlockSet::visit(BlockRange range, const std::function<void(BlockRange, bool)>& visitor) const {
  if (range.empty()) return;
  if (pages_.empty()) return visitor(range, false);
  Lbn start = range.first;
  bool in = has(start);
  for (Lbn at = start; at < range.end();) {
    const std::uint64_t page = at.value / kPageBlocks;
    const Lbn page_end = std::min(range.end(), Lbn{(page + 1) * kPageBlocks});
    if (!pages_.contains(page)) {
      if (in) {
        visitor(BlockRange::between(start, at), true);
        start = at;
        in = false;
      }
      at = page_end;
      continue;
    }
    for (; at < page_end; at = at + BlockCount{1}) {
      if (has(at) == in) continue;
      visitor(BlockRange::between(start, at), in);
      start = at;
      in = !in;
    }
  }
  visitor(BlockRange::between(start, range.end()), in);
}

}  // namespace mariner::volume

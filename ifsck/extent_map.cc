#include "ifsck/extent_map.h"

#include <algorithm>

#include "ifsck/extent_node.h"

namespace mariner::ifsck {

ExtentMap::ExtentMap(const BlockMap& map) {
  for (const BlockMap::Run& each : map.runs) {
    extents_[each.logical] = {each.physical, each.count, each.unwritten};
  }
}

void ExtentMap::remove(std::uint64_t logical, std::uint64_t count) {
  const std::uint64_t end = logical + count;
  auto each = extents_.upper_bound(logical);
  if (each != extents_.begin()) --each;
  while (each != extents_.end() && each->first < end) {
    const auto [first, extent] = *each;
    const std::uint64_t behind = first + extent.count;
    if (behind <= logical) {
      ++each;
      continue;
    }
    each = extents_.erase(each);
    if (first < logical) {
      extents_[first] = {extent.physical, logical - first, extent.unwritten};
    }
    if (behind > end) {
      extents_[end] = {extent.physical + (end - first), behind - end, extent.unwritten};
    }
  }
}

void ExtentMap::add(std::uint64_t logical, const Extent& extent) {
  if (extent.count == 0) return;
  remove(logical, extent.count);
  auto place = extents_.emplace(logical, extent).first;
  const auto follows = [](const auto& one, const auto& other) {
    return one.first + one.second.count == other.first &&
           one.second.physical + one.second.count == other.second.physical &&
           one.second.unwritten == other.second.unwritten;
  };
  if (place != extents_.begin() && follows(*std::prev(place), *place)) {
    std::prev(place)->second.count += extent.count;
    place = std::prev(extents_.erase(place));
  }
  const auto next = std::next(place);
  if (next != extents_.end() && follows(*place, *next)) {
    place->second.count += next->second.count;
    extents_.erase(next);
  }
}

Result<std::vector<std::byte>> ExtentMap::make_tree(
    std::uint32_t block_bytes, const std::function<Result<FsBlock>()>& take,
    const std::function<Result<void>(FsBlock, std::span<std::byte>)>& put) const {
  std::vector<ExtentEntry> entries;
  for (const auto& [logical, extent] : extents_) {
    add_extents({logical, extent.physical, extent.count, extent.unwritten}, entries);
  }
  const std::size_t in_root = extents_max(kRootBytes);
  const std::size_t in_node = extents_max(block_bytes);
  std::size_t height = 0;
  for (; entries.size() > in_root; ++height) {
    std::vector<ExtentEntry> above;
    for (std::size_t from = 0; from < entries.size(); from += in_node) {
      const auto some = std::span(entries).subspan(from, std::min(in_node, entries.size() - from));
      const auto block = take();
      if (!block) return block.error();
      std::vector<std::byte> bytes(block_bytes);
      put_extent_node(bytes, some, height);
      if (const Result<void> done = put(*block, bytes); !done) return done.error();
      above.push_back({some.front().logical, *block});
    }
    entries = std::move(above);
  }
  std::vector<std::byte> root(kRootBytes);
  put_extent_node(root, entries, height);
  return root;
}

}  // namespace mariner::ifsck

#include "ifsck/extent_map.h"

#include <ext2fs/ext2_fs.h>
#include <ext2fs/ext3_extents.h>

#include <algorithm>

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::ifsck {
namespace {

constexpr std::size_t kHeadBytes = sizeof(ext3_extent_header);
constexpr std::size_t kEntryBytes = sizeof(ext3_extent);
static_assert(kHeadBytes == 12 && kEntryBytes == 12);

// Of a leaf, or of a node above.
struct Entry {
  std::uint32_t logical = 0;
  FsBlock block = 0;
  std::uint16_t length = 0;  // of a leaf
};

void put_node(std::span<std::byte> to, std::span<const Entry> entries, std::size_t height) {
  const std::size_t most = (to.size() - kHeadBytes) / kEntryBytes;
  CHECK(entries.size() <= most);
  store_le<std::uint16_t>(to.data(), EXT3_EXT_MAGIC);
  store_le(to.data() + 2, static_cast<std::uint16_t>(entries.size()));
  store_le(to.data() + 4, static_cast<std::uint16_t>(most));
  store_le(to.data() + 6, static_cast<std::uint16_t>(height));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    std::byte* const at = to.data() + kHeadBytes + i * kEntryBytes;
    const Entry& each = entries[i];
    const auto low = static_cast<std::uint32_t>(each.block);
    const auto high = static_cast<std::uint16_t>(each.block >> 32);
    store_le(at, each.logical);
    if (height == 0) {
      store_le(at + 4, each.length);
      store_le(at + 6, high);
      store_le(at + 8, low);
    } else {
      store_le(at + 4, low);
      store_le(at + 8, high);
    }
  }
}

}  // namespace

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
  std::vector<Entry> entries;
  for (const auto& [logical, extent] : extents_) {
    const std::uint64_t most = extent.unwritten ? EXT_UNINIT_MAX_LEN : EXT_INIT_MAX_LEN;
    for (std::uint64_t done = 0; done < extent.count;) {
      const std::uint64_t some = std::min(most, extent.count - done);
      const std::uint64_t stored = some + (extent.unwritten ? EXT_INIT_MAX_LEN : 0);
      entries.push_back({static_cast<std::uint32_t>(logical + done), extent.physical + done,
                         static_cast<std::uint16_t>(stored)});
      done += some;
    }
  }
  const std::size_t in_root = (kRootBytes - kHeadBytes) / kEntryBytes;
  const std::size_t in_node = (block_bytes - kHeadBytes) / kEntryBytes;
  std::size_t height = 0;
  for (; entries.size() > in_root; ++height) {
    std::vector<Entry> above;
    for (std::size_t from = 0; from < entries.size(); from += in_node) {
      const auto some = std::span(entries).subspan(from, std::min(in_node, entries.size() - from));
      const auto block = take();
      if (!block) return block.error();
      std::vector<std::byte> bytes(block_bytes);
      put_node(bytes, some, height);
      if (const Result<void> done = put(*block, bytes); !done) return done.error();
      above.push_back({some.front().logical, *block});
    }
    entries = std::move(above);
  }
  std::vector<std::byte> root(kRootBytes);
  put_node(root, entries, height);
  return root;
}

}  // namespace mariner::ifsck

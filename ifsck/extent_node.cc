#include "ifsck/extent_node.h"

#include <algorithm>

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::ifsck {

static_assert(kExtentHeadBytes == 12 && kExtentEntryBytes == 12);

void add_extents(const BlockMap::Run& run, std::vector<ExtentEntry>& to) {
  const std::uint64_t most = run.unwritten ? EXT_UNINIT_MAX_LEN : EXT_INIT_MAX_LEN;
  for (std::uint64_t done = 0; done < run.count;) {
    const std::uint64_t some = std::min(most, run.count - done);
    to.push_back({static_cast<std::uint32_t>(run.logical + done), run.physical + done,
                  static_cast<std::uint16_t>(some + (run.unwritten ? EXT_INIT_MAX_LEN : 0))});
    done += some;
  }
}

void put_extent_node(std::span<std::byte> to, std::span<const ExtentEntry> entries,
                     std::size_t height) {
  const std::size_t most = extents_max(to.size());
  CHECK(entries.size() <= most);
  store_le<std::uint16_t>(to.data(), EXT3_EXT_MAGIC);
  store_le(to.data() + 2, static_cast<std::uint16_t>(entries.size()));
  store_le(to.data() + 4, static_cast<std::uint16_t>(most));
  store_le(to.data() + 6, static_cast<std::uint16_t>(height));
  std::byte* at = to.data() + kExtentHeadBytes;
  for (const ExtentEntry& each : entries) {
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
      store_le<std::uint16_t>(at + 10, 0);
    }
    at += kExtentEntryBytes;
  }
}

}  // namespace mariner::ifsck

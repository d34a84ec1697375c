#include "ifsck/map_prefetch.h"

#include <algorithm>
#include <utility>

#include "ifsck/block_map.h"
#include "ifsck/ext_inode.h"
#include "ifsck/extent_node.h"
#include "proto/bytes.h"

namespace mariner::ifsck {
namespace {

constexpr std::size_t kDirect = 12;

class Level {
 public:
  struct Node {
    FsBlock block = 0;
    int height = 0;  // 1: describes contents
    bool extents = false;
  };

  explicit Level(const MapPrefetch& maps) : context_(*maps.context) {
    for (const auto& inode : maps.inodes) take_inode(inode);
  }

  [[nodiscard]] View& view() const { return context_.volume.view(); }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  [[nodiscard]] std::vector<Lbn> blocks() const {
    std::vector<Lbn> all;
    for (const Node& each : nodes_) {
      const BlockRange range = context_.layout.bytes_of(each.block).covering_blocks();
      for (Lbn lbn = range.first; lbn < range.end(); lbn = lbn + BlockCount{1}) {
        all.push_back(lbn);
      }
    }
    return all;
  }

  Result<void> descend() {
    for (const Node& each : std::exchange(nodes_, {})) {
      if (each.height < 2) continue;
      const auto bytes = context_.read_block(each.block);
      if (!bytes) return bytes.error();
      if (each.extents) {
        take_entries(*bytes);
      } else {
        for (std::size_t at = 0; at < bytes->size(); at += 4) {
          add({load_le<std::uint32_t>(bytes->data() + at), each.height - 1, false});
        }
      }
    }
    return {};
  }

 private:
  void take_inode(InodeBytes inode) {
    if (inode.empty() || ExtInode(inode).links() == 0 || !has_block_map(inode)) return;
    const InodeBytes map = inode.subspan(InodeAt::kMap, InodeAt::kMapBytes);
    if ((load_le<std::uint32_t>(inode.data() + InodeAt::kFlags) & EXT4_EXTENTS_FL) != 0) {
      take_entries(map);
      return;
    }
    for (std::size_t i = kDirect; i < EXT2_N_BLOCKS; ++i) {
      add({load_le<std::uint32_t>(map.data() + 4 * i), static_cast<int>(i - kDirect + 1), false});
    }
  }

  void take_entries(std::span<const std::byte> bytes) {
    const auto field = [&](std::size_t at) { return load_le<std::uint16_t>(bytes.data() + at); };
    const int height = field(6);
    if (field(0) != EXT3_EXT_MAGIC || height == 0) return;
    const std::size_t fitting = (bytes.size() - kExtentHeadBytes) / kExtentEntryBytes;
    for (std::size_t i = 0; i < std::min<std::size_t>(field(2), fitting); ++i) {
      const std::size_t at = kExtentHeadBytes + i * kExtentEntryBytes;
      add({load_le<std::uint32_t>(bytes.data() + at + 4) | FsBlock{field(at + 8)} << 32, height,
           true});
    }
  }

  void add(const Node& node) {
    if (context_.layout.may_claim(node.block)) nodes_.push_back(node);
  }

  const ExtContext& context_;
  std::vector<Node> nodes_;
};

}  // namespace

Result<void> prefetch_maps(std::span<const MapPrefetch> maps) {
  std::vector<Level> levels(maps.begin(), maps.end());
  for (std::size_t nodes = 0;;) {
    std::vector<View::Wish> wishes;
    std::size_t wanted = 0;
    for (const Level& each : levels) {
      wishes.push_back({&each.view(), each.blocks()});
      wanted += each.size();
    }
    nodes += wanted;
    if (wanted == 0 || nodes > kPrefetchedNodesMax) return {};
    if (const Result<void> done = View::prefetch_all(wishes); !done) return done;
    for (Level& each : levels) {
      if (const Result<void> done = each.descend(); !done) return done;
    }
  }
}

}  // namespace mariner::ifsck

#include "uvfs/map_spans.h"

#include <ext2fs/ext2_fs.h>
#include <ext2fs/ext3_extents.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "ifsck/ext_inode.h"
#include "ifsck/overlay.h"
#include "ifsck/view.h"
#include "uvfs/inode_record.h"

namespace mariner::uvfs {
namespace {

using ifsck::BlockMap;
using ifsck::InodeAt;

bool has_map(std::span<const std::byte> inode) {
  return state_of(inode).exists && ifsck::has_block_map(inode);
}

// Of two inodes that have one, it is said to be the same.
bool same_root(std::span<const std::byte> one, std::span<const std::byte> other) {
  const auto root = [](std::span<const std::byte> inode) {
    return inode.subspan(InodeAt::kMap, InodeAt::kMapBytes);
  };
  const ifsck::ExtInode mine(one);
  const ifsck::ExtInode theirs(other);
  return std::ranges::equal(root(one), root(other)) && mine.type() == theirs.type() &&
         mine.flags() == theirs.flags() &&
         load_le<std::uint32_t>(one.data() + InodeAt::kGeneration) ==
             load_le<std::uint32_t>(other.data() + InodeAt::kGeneration);
}

bool same_map(const BlockMap& one, const BlockMap& other) {
  return one.runs == other.runs && one.nodes == other.nodes;
}

class Reader {
 public:
  Reader(BlockTimelines& timelines, VersionCache& cache, const ifsck::ExtContext& context,
         ifsck::InodeNumber number)
      : timelines_(timelines), cache_(cache), context_(context), number_(number) {}

  // The map that begins with a slice, up to `end`, where another one does.
  Result<void> add(const InodeSlice& slice, SequenceNumber end) {
    SequenceNumber from = slice.from;
    VersionTime time = slice.time;
    while (true) {
      ifsck::Overlay none;
      ifsck::View view(cache_, from, none);
      auto map = ifsck::map_blocks(view, context_.volume, context_.layout, number_, slice.bytes);
      if (!map) return map.error();
      const auto next = next_change(*map, from, end);
      if (!next) return next.error();
      add(from, time, std::move(*map));
      if (!*next) return {};
      from = (*next)->sequence;
      time = (*next)->time;
    }
  }
  void add_none(const InodeSlice& slice) { add(slice.from, slice.time, {}); }

  std::vector<MapSpan> take() { return std::move(spans_); }

 private:
  // The first write in (from, end) to a block that says where others are.
  Result<std::optional<BlockTimelines::Version>> next_change(const BlockMap& map,
                                                             SequenceNumber from,
                                                             SequenceNumber end) {
    std::vector<Lbn> blocks;
    for (const BlockMap::Node& node : map.nodes) {
      timelines_.add_written(context_.layout.bytes_of(node.block).covering_blocks(), blocks);
    }
    if (const auto loaded = timelines_.load(blocks); !loaded) return loaded.error();
    std::optional<BlockTimelines::Version> first;
    for (const Lbn each : blocks) {
      const auto versions = timelines_.of(each, from, end);
      if (versions.empty() || (first && first->sequence <= versions.front().sequence)) continue;
      first = versions.front();
    }
    return first;
  }
  void add(SequenceNumber from, VersionTime time, BlockMap map) {
    if (!spans_.empty() && same_map(spans_.back().map, map)) return;
    spans_.push_back({from, time, std::move(map)});
  }

  BlockTimelines& timelines_;
  VersionCache& cache_;
  const ifsck::ExtContext& context_;
  const ifsck::InodeNumber number_;
  std::vector<MapSpan> spans_;
};

// Those that an inode names itself: indirect blocks, or nodes below the root of its tree.
std::vector<ifsck::FsBlock> nodes_of(std::span<const std::byte> inode) {
  constexpr std::size_t kDirect = 12;
  const auto root = inode.subspan(InodeAt::kMap, InodeAt::kMapBytes);
  std::vector<ifsck::FsBlock> nodes;
  if (ifsck::ExtInode(inode).has_extents()) {
    ext3_extent_header head{};
    std::memcpy(&head, root.data(), sizeof head);
    if (head.eh_depth == 0) return nodes;
    for (std::size_t at = sizeof head, i = 0; i < head.eh_entries && at < root.size();
         at += sizeof(ext3_extent_idx), ++i) {
      ext3_extent_idx entry{};
      std::memcpy(&entry, root.data() + at, sizeof entry);
      nodes.push_back(entry.ei_leaf | ifsck::FsBlock{entry.ei_leaf_hi} << 32);
    }
  } else {
    for (std::size_t at = 4 * kDirect; at < root.size(); at += 4) {
      nodes.push_back(load_le<std::uint32_t>(root.data() + at));
    }
  }
  std::erase(nodes, ifsck::FsBlock{0});
  return nodes;
}

}  // namespace

Result<void> prefetch_map_nodes(VersionCache& cache, const ifsck::ExtContext& context,
                                std::span<const std::span<const InodeSlice>> inodes) {
  std::vector<ifsck::Past::Question> questions;
  for (const std::span<const InodeSlice> slices : inodes) {
    for (const InodeSlice& each : slices) {
      if (!has_map(each.bytes)) continue;
      for (const ifsck::FsBlock block : nodes_of(each.bytes)) {
        if (!context.layout.may_claim(block)) continue;
        const BlockRange range = context.layout.bytes_of(block).covering_blocks();
        for (Lbn lbn = range.first; lbn < range.end(); lbn = lbn + BlockCount{1}) {
          questions.push_back({lbn, each.from});
        }
      }
    }
  }
  return cache.prefetch(questions);
}

Result<std::vector<MapSpan>> read_map_spans(BlockTimelines& timelines, VersionCache& cache,
                                            const ifsck::ExtContext& context,
                                            ifsck::InodeNumber number,
                                            std::span<const InodeSlice> slices) {
  Reader reader(timelines, cache, context, number);
  for (std::size_t i = 0; i < slices.size();) {
    std::size_t next = i + 1;
    if (!has_map(slices[i].bytes)) {
      while (next < slices.size() && !has_map(slices[next].bytes)) ++next;
      reader.add_none(slices[i]);
    } else {
      while (next < slices.size() && has_map(slices[next].bytes) &&
             same_root(slices[i].bytes, slices[next].bytes)) {
        ++next;
      }
      const SequenceNumber end = next < slices.size() ? slices[next].from : kEndless;
      if (const auto added = reader.add(slices[i], end); !added) return added.error();
    }
    i = next;
  }
  return reader.take();
}

}  // namespace mariner::uvfs

#include "uvfs/map_spans.h"

#include <algorithm>
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
  Reader(BlockTimelines& timelines, const ifsck::ExtContext& context, ifsck::InodeNumber number)
      : timelines_(timelines), context_(context), number_(number) {}

  // The map that begins with a slice, up to `end`, where another one does.
  Result<void> add(const InodeSlice& slice, SequenceNumber end) {
    SequenceNumber from = slice.from;
    VersionTime time = slice.time;
    while (true) {
      ifsck::Overlay none;
      ifsck::View view(timelines_.past(), from, none);
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
  const ifsck::ExtContext& context_;
  const ifsck::InodeNumber number_;
  std::vector<MapSpan> spans_;
};

}  // namespace

Result<std::vector<MapSpan>> read_map_spans(BlockTimelines& timelines,
                                            const ifsck::ExtContext& context,
                                            ifsck::InodeNumber number,
                                            std::span<const InodeSlice> slices) {
  Reader reader(timelines, context, number);
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

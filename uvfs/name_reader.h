// Reads the names of directories of ext2, ext3 or ext4 over a stretch.
#pragma once

#include <span>
#include <vector>

#include "ifsck/ext_layout.h"
#include "proto/error.h"
#include "uvfs/block_timelines.h"
#include "uvfs/inode_slices.h"
#include "uvfs/map_spans.h"
#include "uvfs/name_history.h"

namespace mariner::uvfs {

class NameReader {
 public:
  // Both outlive it.
  NameReader(BlockTimelines& timelines, const ifsck::ExtLayout& layout)
      : timelines_(timelines), layout_(layout) {}

  // `names` are to be those of an inode, while it is a directory. All but `layout` of what is given
  // is kept until read(); the blocks of the maps that were written in the stretch are loaded.
  // kLimit: it has more than kDirectoryBlocksMax blocks.
  [[nodiscard]] Result<void> add(ifsck::InodeNumber number, std::span<const InodeSlice> slices,
                                 std::span<const MapSpan> maps, NameHistory& names);
  // Of all that were added. Errors: of the past.
  [[nodiscard]] Result<void> read();

 private:
  class Planner;
  // What is told to a NameHistory.
  struct Step {
    enum class What : std::uint8_t { kBlock, kBytes, kForget, kForgetAll };
    NameHistory* names = nullptr;
    Instant at;
    What what{};
    std::uint64_t logical = 0;
    ifsck::FsBlock block = 0;          // of kBlock
    std::span<const std::byte> bytes;  // of kBytes
  };

  void apply(std::span<const Step> steps, std::span<const std::byte> blocks) const;

  BlockTimelines& timelines_;
  const ifsck::ExtLayout& layout_;
  std::vector<Step> steps_;
};

}  // namespace mariner::uvfs

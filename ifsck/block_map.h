// Which blocks belong to an inode: those of its contents, and those that say where these are
// (indirect blocks, nodes of an extent tree).
//
// Read level by level, each with one question to the past. Whatever the blocks say, it ends: no
// block that describes others is followed twice, and no more are taken than the file system has.
#pragma once

#include <ext2fs/ext2_fs.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ifsck/ext_layout.h"
#include "ifsck/view.h"
#include "proto/error.h"

namespace mariner::ifsck {

struct BlockMap {
  // Contents: blocks [logical, logical + count) of the file.
  struct Run {
    std::uint64_t logical = 0;
    FsBlock physical = 0;
    std::uint64_t count = 0;
    bool unwritten = false;  // allocated, and reads as zeros
    friend bool operator==(const Run&, const Run&) = default;
  };
  // A block that describes others.
  struct Node {
    FsBlock block = 0;
    std::uint8_t height = 0;    // 1: describes contents
    std::uint64_t logical = 0;  // of the first it may describe
    friend bool operator==(const Node&, const Node&) = default;
  };
  struct Fault {
    enum class What : std::uint8_t {
      kOutside,   // a block that no inode may have
      kRepeated,  // a node that was met before
      kNoNode,    // a block is not a node of an extent tree, or of another height
      kChecksum,  // of a node
      kOrder,     // extents overlap, or are not ascending
      kEmpty,     // an extent of no blocks, or beyond what a file may have
      kTooMany,   // more blocks than the file system has
      kStrange,   // not what such an inode has (said of the resize inode and of journals alone)
    };
    What what{};
    FsBlock at = 0;  // the node that says so; 0: the inode
    std::uint64_t logical = 0;
    FsBlock block = 0;
    friend bool operator==(const Fault&, const Fault&) = default;
  };

  std::vector<Run> runs;    // ascending by `logical`; neighbours are merged
  std::vector<Node> nodes;  // parents before children
  std::vector<Fault> faults;

  [[nodiscard]] std::uint64_t blocks() const;  // of both
};

// An inode as it stands in its table: at least 128 bytes.
using InodeBytes = std::span<const std::byte>;

// The map of an inode that may have one (has_block_map()). Errors: of the past alone; what the
// blocks have wrong is in the map's faults.
[[nodiscard]] Result<BlockMap> map_blocks(const ExtVolume& volume, const ExtLayout& layout,
                                          InodeNumber number, InodeBytes inode);
// The same at another moment of that file system, at which its blocks lie alike.
[[nodiscard]] Result<BlockMap> map_blocks(View& moment, const ExtVolume& volume,
                                          const ExtLayout& layout, InodeNumber number,
                                          InodeBytes inode);

// Its i_block says where blocks are: it is no device, no short symbolic link, nor has its contents
// within itself.
[[nodiscard]] bool has_block_map(InodeBytes inode);

}  // namespace mariner::ifsck

// One inode, by itself: what it is, what it claims, and what is wrong with it whatever the others
// say.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ifsck/block_map.h"
#include "ifsck/ext_context.h"
#include "ifsck/finding.h"
#include "proto/error.h"

namespace mariner::ifsck {

struct CheckedInode {
  static constexpr std::uint8_t kStrange = 255;  // in use, and of no kind that there is

  // EXT2_FT_*; 0: not in use. (Inodes below the first one have a kind if they have links.)
  std::uint8_t kind = 0;
  std::uint16_t links = 0;  // as it says; of who has a kind
  std::uint64_t size = 0;   // bytes, as it says
  std::uint32_t generation = 0;
  // When it, or a name of its, was changed last; to be compared with that of another moment.
  std::uint64_t changed = 0;
  bool counted = false;    // in use, and not below the first one
  bool directory = false;  // with entries to be looked at
  bool inlined = false;    // they are in the inode
  bool indexed = false;    // ... in blocks of which some are an index of the others
  BlockMap map;
  FsBlock attributes = 0;  // 0: none, or none that can be
  std::vector<Finding> findings;

  // Calls `visit(block)` for each that it claims, its attributes' not: inodes share these.
  template <typename Visit>
  void for_each_claim(Visit visit) const {
    for (const BlockMap::Run& run : map.runs) {
      for (std::uint64_t i = 0; i < run.count; ++i) visit(run.physical + i);
    }
    for (const BlockMap::Node& node : map.nodes) visit(node.block);
  }
};

// As the inode stands in its table; `bytes` are touched, and left as they were. `follow`: its
// blocks are looked for, too; if not, that is a finding (kTooMany). Errors: of the past alone.
[[nodiscard]] Result<CheckedInode> check_inode(const ExtContext& context, InodeNumber number,
                                               std::span<std::byte> bytes, bool follow);

// Of a symbolic link: it has a target, as long as it says, within itself; or one block of it.
// (How long that is is not looked at.)
[[nodiscard]] bool has_link_target(InodeBytes inode, std::uint32_t block_bytes);

// A block of extended attributes.
struct CheckedAttributes {
  bool good = false;
  std::uint32_t inodes = 0;  // that share it, as it says
};
[[nodiscard]] Result<CheckedAttributes> check_attributes(const ExtContext& context,
                                                         InodeNumber number, FsBlock block);

}  // namespace mariner::ifsck

// Extended attributes, within an inode or in a block of their own: whether they are such as e2fsck
// takes (check_ea_in_inode(), check_ext_attr()).
//
// Pure: bytes in. Those whose values are inodes (ea_inode) are not.
#pragma once

#include <cstddef>
#include <span>

#include "ifsck/block_map.h"

namespace mariner::ifsck {

// Of an inode as it stands in its table. One that has none there, or no place for them, is right.
[[nodiscard]] bool has_right_attributes(InodeBytes inode);

// All of a block, but for its checksum and how many inodes share it.
[[nodiscard]] bool is_right_attribute_block(std::span<const std::byte> block);

}  // namespace mariner::ifsck

// An inode of ext2, ext3 or ext4 as it stands in its table: what it says of the object, and what is
// in the inode itself.
//
// Pure: bytes in. (Linux, Documentation/filesystems/ext4/inodes.rst and attributes.rst.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proto/error.h"
#include "uvfs/object_state.h"

namespace mariner::uvfs {

// At least 128 bytes, as long as inodes of the file system are.
[[nodiscard]] ObjectState state_of(std::span<const std::byte> inode);

// The same inode but for what changes without anybody having done anything to it: when it was read
// last, how often it was written, checksums.
[[nodiscard]] bool is_same_inode(std::span<const std::byte> one, std::span<const std::byte> other);

struct ExtendedAttribute {
  std::string name;  // "user.comment"
  std::span<const std::byte> value;
  std::uint32_t value_inode = 0;  // where the value is, if not here
};
// Those in an inode. What is not one ends them.
[[nodiscard]] std::vector<ExtendedAttribute> attributes_of_inode(std::span<const std::byte> inode);
// Those in a block of attributes.
[[nodiscard]] std::vector<ExtendedAttribute> attributes_of_block(std::span<const std::byte> block);
// What in such a block is of its attributes: not how many share it, nor checksums.
[[nodiscard]] std::span<const std::byte> told_by_attributes(std::span<const std::byte> block);

// The contents are in the inode: of a short symbolic link, or with inline_data.
[[nodiscard]] bool has_inline_contents(std::span<const std::byte> inode);
// These, as many bytes as there are of size.
[[nodiscard]] std::vector<std::byte> inline_contents(std::span<const std::byte> inode);
// A directory's blocks that are read, at most: some ten million names in blocks of 4 KiB. One that
// says it has more is kLimit, as damage may say anything.
inline constexpr std::uint64_t kDirectoryBlocksMax = 256 * 1024;
[[nodiscard]] Error directory_too_large(std::uint32_t inode, std::uint64_t blocks);
// Of a directory with inline_data: blocks of entries, in their order. (Without "." and "..".)
[[nodiscard]] std::vector<std::span<const std::byte>> inline_entries(
    std::span<const std::byte> inode);

}  // namespace mariner::uvfs

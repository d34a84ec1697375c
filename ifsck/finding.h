// What is wrong with a file system: one thing, where, and how it would be right.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "ifsck/ext_layout.h"

namespace mariner::ifsck {

struct Finding {
  enum class Code : std::uint8_t {
    kSuperblockChecksum,
    kGroupChecksum,
    kBlockBitmapChecksum,
    kInodeBitmapChecksum,
    kInodeChecksum,
    kInodeMode,        // it is in use, and of no kind that there is
    kInodeFields,      // a field has what it cannot have
    kInodeDeleted,     // when it was deleted: said of one in use, or not of one that is not
    kInodeIndex,       // it says that it is an indexed directory, and is none
    kInodeMap,         // its blocks cannot be as it says (BlockMap::Fault)
    kInodeSize,        // found; expected: at least
    kInodeBlocks,      // i_blocks, in blocks of 512 bytes
    kAttributes,       // its block of extended attributes is none; 0: those within it are none
    kAttributeCount,   // inodes that share a block of extended attributes
    kClaimsStructure,  // an inode claims blocks (found; the first) that are bitmaps, inode tables,
                       // ...
    kClaimedTwice,     // ... that were claimed before, by another one or by itself
    kDirectoryBlock,   // is none, or has another checksum
    kDirectoryHole,    // a block of a directory is missing
    kDots,             // "." or ".." is missing, or elsewhere
    kEntryInode,       // names an inode (found) that cannot be, or is not in use; so many do
                       // (expected), if it is not told in which directory
    kEntryType,        // says another kind of file than its inode
    kEntryName,        // is empty, has a slash, or is there twice
    kDirectoryLinked,  // a directory has several names, or none
    kParent,           // ".." is not where its name is
    kUnreachable,      // a directory, from the root
    kRoot,             // there is no root directory
    kUnattached,       // in use, and has no name
    kLinks,            // names that there are, and that it says
    kBlockMarked,      // in the bitmap: expected and found
    kInodeMarked,
    kPadding,     // of a bitmap: what stands behind what there is is not set
    kFreeBlocks,  // of a group, or (group is all) of the file system
    kFreeInodes,
    kDirectories,  // of a group
    kQuota,        // a quota file says otherwise (no check looks at it)
  };
  static constexpr GroupNumber kAll = ~GroupNumber{0};

  Code code{};
  InodeNumber inode = 0;
  FsBlock block = 0;
  GroupNumber group = 0;
  std::uint64_t expected = 0;
  std::uint64_t found = 0;
  friend auto operator<=>(const Finding&, const Finding&) = default;
};

// Bitmaps, counts, and the checksums of these: what can be made anew from all the rest.
[[nodiscard]] bool is_derived(Finding::Code code);

// Of one inode: itself, what it claims, its attributes.
[[nodiscard]] bool is_of_inode(Finding::Code code);

// "inode-checksum".
[[nodiscard]] std::string_view finding_code_name(Finding::Code code);

// A line for people.
[[nodiscard]] std::string describe(const Finding& finding);

}  // namespace mariner::ifsck

// Which blocks and inodes are in use, group by group, while a file system is being changed.
//
// Only groups that are asked for are read, and only what differs is written. Blocks are those of
// libext2fs' own bitmap (fs->block_map), in which a group that has not been read is full; so
// libext2fs takes blocks from those groups alone that were.
#pragma once

#include <map>
#include <vector>

#include "ifsck/ext_layout.h"
#include "ifsck/ext_volume.h"
#include "proto/error.h"

namespace mariner::ifsck {

class GroupMaps {
 public:
  // Both outlive it. `volume` is writable, and has no bigalloc.
  GroupMaps(const ExtVolume& volume, const ExtLayout& layout);

  // Reads a group, if it was not yet. Errors: of the past.
  [[nodiscard]] Result<void> load(GroupNumber group);
  // Another group is read that was not; false: there is none.
  [[nodiscard]] Result<bool> load_another();

  // Blocks that may be claimed (ExtLayout::may_claim()).
  [[nodiscard]] Result<void> set_blocks(FsBlock first, std::uint64_t count, bool in_use);
  // Takes a free block, near `near` if possible. kNoSpace.
  [[nodiscard]] Result<FsBlock> take_block(FsBlock near);
  // Of an inode that there is.
  [[nodiscard]] Result<bool> inode(InodeNumber number);
  [[nodiscard]] Result<void> set_inode(InodeNumber number, bool in_use);
  // More directories, or fewer, in the group of an inode.
  [[nodiscard]] Result<void> add_directories(InodeNumber number, int more);

  // Writes bitmaps and descriptors of the groups that have changed.
  [[nodiscard]] Result<void> store();

 private:
  using Bytes = std::vector<std::byte>;
  struct Group {
    Bytes blocks;  // as read
    Bytes inodes;
    bool inodes_changed = false;
    int directories = 0;  // more than before
  };

  [[nodiscard]] FsBlock first_of(GroupNumber group) const;
  [[nodiscard]] std::uint32_t blocks_of(GroupNumber group) const;
  [[nodiscard]] GroupNumber group_of(FsBlock block) const;
  [[nodiscard]] Result<Bytes> read_blocks(GroupNumber group) const;
  [[nodiscard]] Result<Bytes> read_inodes(GroupNumber group) const;
  [[nodiscard]] Result<void> store_blocks(GroupNumber number, Group& group);
  [[nodiscard]] Result<void> store_inodes(GroupNumber number, Group& group);
  [[nodiscard]] Result<void> store_descriptor(GroupNumber number) const;

  const ExtVolume& volume_;
  const ExtLayout& layout_;
  const ext2_filsys fs_;
  std::map<GroupNumber, Group> groups_;
  GroupNumber next_ = 0;  // to be read by load_another()
};

}  // namespace mariner::ifsck

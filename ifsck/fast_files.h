// The inodes and the blocks of files while fast commits are replayed (fast_replay.h): what an
// operation says of them, and in the end the bitmaps and counts that go with it.
//
// Errors, of all: kCorrupt, an operation cannot be done; kLimit, it takes too long; kNoSpace; and
// as the past says. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "ifsck/block_map.h"
#include "ifsck/ext_layout.h"
#include "ifsck/ext_volume.h"
#include "ifsck/extent_map.h"
#include "ifsck/fast_commit.h"
#include "ifsck/group_maps.h"
#include "proto/error.h"

namespace mariner::ifsck {

class FastFiles {
 public:
  using Bytes = std::vector<std::byte>;

  // Both outlive it. `volume` is writable, and has no bigalloc.
  FastFiles(const ExtVolume& volume, const ExtLayout& layout);

  // First of all: blocks that any of the operations names are nobody else's.
  [[nodiscard]] Result<void> reserve(std::span<const FastOperation> operations);
  // Before an inode is changed: remembers how it was, the first time.
  [[nodiscard]] Result<void> touch(InodeNumber number);
  // kInode.
  [[nodiscard]] Result<void> put_inode(const FastOperation& operation);
  // kAddRange, kDelRange.
  [[nodiscard]] Result<void> change_range(const FastOperation& operation);
  // Last of all: what has lost its last name is no more, and bitmaps and descriptors say so.
  [[nodiscard]] Result<void> finish();

  [[nodiscard]] Result<bool> in_use(InodeNumber number);
  [[nodiscard]] Result<Bytes> read_inode(InodeNumber number);
  [[nodiscard]] Result<void> write_inode(InodeNumber number, Bytes& bytes);
  [[nodiscard]] static std::uint16_t links(const Bytes& inode);
  // Without faults.
  [[nodiscard]] Result<BlockMap> read_map(InodeNumber number, const Bytes& inode);
  // Writes down the blocks of a file that were changed, if it is one: for who reads it then.
  [[nodiscard]] Result<void> settle(InodeNumber number);
  // Of a new directory: the one that it says, or another one.
  [[nodiscard]] Result<FsBlock> first_block(InodeNumber number);
  // Groups that libext2fs takes blocks from, should the directory grow.
  [[nodiscard]] Result<void> make_room(InodeNumber directory);

  [[nodiscard]] static Error failed(errcode_t error, InodeNumber number);
  [[nodiscard]] static Error corrupt(std::string_view what, InodeNumber inode);
  [[nodiscard]] static Error too_much();

 private:
  static constexpr std::uint64_t kRangeBlocksMax = 16u << 20;

  struct Range {
    FsBlock first = 0;
    std::uint64_t count = 0;
  };
  // An inode whose blocks are being changed.
  struct File {
    ExtentMap before;
    ExtentMap now;
    std::vector<FsBlock> nodes;
  };
  // An inode as it was before all.
  struct Was {
    bool in_use = false;
    bool directory = false;
    bool linked = false;
  };

  Result<void> release(InodeNumber number, const Bytes& inode);
  void release(const BlockMap& map);
  static Bytes empty_root();
  static void put_root(Bytes& inode, const Bytes& root);
  static void keep_directory(Bytes& inode, const Bytes& found);
  Result<File*> file(InodeNumber number);
  Result<FsBlock> take_near(InodeNumber number);
  Result<Bytes> make_tree(InodeNumber number, const File& file, std::vector<Range>& claim);
  void count_blocks(Bytes& inode, const std::vector<Range>& claim) const;
  bool spend_ranges(std::uint64_t count);
  Result<void> count_inodes();
  Result<void> mark_blocks();

  const ExtVolume& volume_;
  const ExtLayout& layout_;
  const ext2_filsys fs_;
  GroupMaps maps_;
  std::map<InodeNumber, File> files_;
  std::map<InodeNumber, Was> was_;
  std::map<InodeNumber, std::vector<Range>> claims_;  // what settled files have now
  std::vector<Range> regions_;                        // that are reserved
  std::vector<Range> released_;
  std::uint64_t ranges_left_ = kRangeBlocksMax;
};

}  // namespace mariner::ifsck

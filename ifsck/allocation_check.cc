#include "ifsck/allocation_check.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;

class Scan {
 public:
  explicit Scan(CensusFacts& facts) : facts_(facts) {}

  Result<void> run() {
    for (GroupNumber group = 0; group < facts_.layout.groups(); ++group) {
      if (const Result<void> done = check_group(group); !done) return done;
    }
    check_totals();
    return {};
  }

 private:
  Result<void> check_group(GroupNumber group) {
    if (ext2fs_has_group_desc_csum(facts_.fs) != 0 &&
        ext2fs_group_desc_csum_verify(facts_.fs, group) == 0) {
      facts_.add({.code = Code::kGroupChecksum, .group = group});
    }
    if (const Result<void> done = check_block_bitmap(group); !done) return done;
    return check_inode_bitmap(group);
  }

  static bool bit_of(std::span<const std::byte> bytes, std::uint64_t bit) {
    return (std::to_integer<unsigned>(bytes[bit / 8]) >> (bit % 8) & 1) != 0;
  }

  Result<void> check_block_bitmap(GroupNumber group) {
    const FsBlock first = ext2fs_group_first_block2(facts_.fs, group);
    const FsBlock last = ext2fs_group_last_block2(facts_.fs, group);
    std::uint64_t free_blocks = 0;
    const bool uninitialized = facts_.is_uninitialized(group, EXT2_BG_BLOCK_UNINIT);
    auto bitmap = facts_.read_block(ext2fs_block_bitmap_loc(facts_.fs, group));
    if (!bitmap) return bitmap.error();
    if (!uninitialized && facts_.checksums &&
        ext2fs_block_bitmap_csum_verify(facts_.fs, group, reinterpret_cast<char*>(bitmap->data()),
                                        static_cast<int>(facts_.super.s_clusters_per_group / 8)) ==
            0) {
      facts_.add({.code = Code::kBlockBitmapChecksum, .group = group});
    }
    for (FsBlock block = first; block <= last; ++block) {
      const bool used = facts_.is_used(block);
      free_blocks += used ? 0 : 1;
      // What is not initialized has structures alone.
      const bool marked = uninitialized
                              ? facts_.layout.place_of(block).kind != ExtLayout::Kind::kData
                              : bit_of(*bitmap, block - first);
      compare({.code = Code::kBlockMarked, .block = block, .group = group}, used, marked);
    }
    if (!uninitialized) {
      check_padding(group, ext2fs_block_bitmap_loc(facts_.fs, group), *bitmap, last - first + 1,
                    std::uint64_t{facts_.layout.block_bytes()} * 8);
    }
    compare({.code = Code::kFreeBlocks, .group = group}, free_blocks,
            ext2fs_bg_free_blocks_count(facts_.fs, group));
    free_blocks_ += free_blocks;
    return {};
  }

  void check_padding(GroupNumber group, FsBlock block, std::span<const std::byte> bitmap,
                     std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t bit = from; bit < to; ++bit) {
      if (bit_of(bitmap, bit)) continue;
      return facts_.add({.code = Code::kPadding, .block = block, .group = group});
    }
  }

  void compare(Finding finding, std::uint64_t expected, std::uint64_t found) {
    if (expected == found) return;
    finding.expected = expected;
    finding.found = found;
    facts_.add(finding);
  }

  Result<void> check_inode_bitmap(GroupNumber group) {
    const bool uninitialized = facts_.is_uninitialized(group, EXT2_BG_INODE_UNINIT);
    auto bitmap = facts_.read_block(ext2fs_inode_bitmap_loc(facts_.fs, group));
    if (!bitmap) return bitmap.error();
    if (!uninitialized && facts_.checksums &&
        ext2fs_inode_bitmap_csum_verify(facts_.fs, group, reinterpret_cast<char*>(bitmap->data()),
                                        static_cast<int>(facts_.layout.inodes_per_group() / 8)) ==
            0) {
      facts_.add({.code = Code::kInodeBitmapChecksum, .group = group});
    }
    std::uint64_t free_inodes = 0;
    std::uint64_t directories = 0;
    for (std::uint32_t i = 0; i < facts_.layout.inodes_per_group(); ++i) {
      const InodeNumber number = group * facts_.layout.inodes_per_group() + i + 1;
      const bool used = facts_.kinds[number] != 0 || facts_.is_reserved(number);
      const bool marked = !uninitialized && bit_of(*bitmap, i);
      free_inodes += used ? 0 : 1;
      directories += facts_.kinds[number] == EXT2_FT_DIR && !facts_.is_reserved(number) ? 1 : 0;
      compare({.code = Code::kInodeMarked, .inode = number, .group = group}, used, marked);
    }
    if (!uninitialized) {
      check_padding(group, ext2fs_inode_bitmap_loc(facts_.fs, group), *bitmap,
                    facts_.layout.inodes_per_group(),
                    std::uint64_t{facts_.layout.block_bytes()} * 8);
    }
    compare({.code = Code::kFreeInodes, .group = group}, free_inodes,
            ext2fs_bg_free_inodes_count(facts_.fs, group));
    compare({.code = Code::kDirectories, .group = group}, directories,
            ext2fs_bg_used_dirs_count(facts_.fs, group));
    free_inodes_ += free_inodes;
    return {};
  }

  void check_totals() {
    compare({.code = Code::kFreeBlocks, .group = Finding::kAll}, free_blocks_,
            ext2fs_free_blocks_count(facts_.fs->super));
    compare({.code = Code::kFreeInodes, .group = Finding::kAll}, free_inodes_,
            facts_.super.s_free_inodes_count);
  }

  CensusFacts& facts_;
  std::uint64_t free_blocks_ = 0;
  std::uint64_t free_inodes_ = 0;
};

}  // namespace

Result<void> check_allocation(CensusFacts& facts) { return Scan(facts).run(); }

}  // namespace mariner::ifsck

// A file system at a moment, as its checks see it: the volume and where it has what.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "ifsck/ext_layout.h"
#include "ifsck/ext_volume.h"
#include "proto/error.h"

namespace mariner::ifsck {

struct ExtContext {
  // Both outlive it.
  ExtContext(const ExtVolume& volume_in, const ExtLayout& layout_in)
      : volume(volume_in),
        fs(volume_in.fs()),
        super(*volume_in.fs()->super),
        layout(layout_in),
        checksums(ext2fs_has_feature_metadata_csum(volume_in.fs()->super) != 0) {}

  // It has its number from the file system, and no name.
  [[nodiscard]] bool is_reserved(InodeNumber number) const {
    return (number < EXT2_FIRST_INODE(fs->super) && number != EXT2_ROOT_INO) ||
           (ext2fs_has_feature_orphan_file(fs->super) && number == super.s_orphan_file_inum);
  }
  // Inodes that the superblock names, or has a feature for, as it does at this moment or at the
  // other one. None: it says the same of them.
  [[nodiscard]] std::vector<InodeNumber> named_otherwise(const ExtContext& other) const {
    const ext2_super_block& theirs = other.super;
    if (super.s_feature_compat == theirs.s_feature_compat &&
        super.s_journal_inum == theirs.s_journal_inum &&
        super.s_prj_quota_inum == theirs.s_prj_quota_inum &&
        super.s_reserved_gdt_blocks == theirs.s_reserved_gdt_blocks) {
      return {};
    }
    std::vector<InodeNumber> all{super.s_journal_inum, theirs.s_journal_inum,
                                 super.s_prj_quota_inum, theirs.s_prj_quota_inum};
    for (InodeNumber each = 1; each < EXT2_GOOD_OLD_FIRST_INO; ++each) all.push_back(each);
    std::erase_if(all, [&](InodeNumber each) { return each == 0 || each > layout.inodes(); });
    return all;
  }
  [[nodiscard]] bool is_uninitialized(GroupNumber group, std::uint16_t flag) const {
    return ext2fs_has_group_desc_csum(fs) != 0 && ext2fs_bg_flags_test(fs, group, flag) != 0;
  }
  // How many of the group's inodes were ever used.
  [[nodiscard]] std::uint32_t table_end(GroupNumber group) const {
    if (is_uninitialized(group, EXT2_BG_INODE_UNINIT)) return 0;
    if (ext2fs_has_group_desc_csum(fs) == 0) return layout.inodes_per_group();
    return layout.inodes_per_group() -
           std::min(layout.inodes_per_group(), ext2fs_bg_itable_unused(fs, group));
  }
  // Where a kernel puts the blocks of directories whose inodes are in groups from `first` to before
  // `end`: there, in their flexible group, or in the next if that is full. From the first block to
  // before the second.
  [[nodiscard]] std::pair<FsBlock, FsBlock> likely_blocks(GroupNumber first,
                                                          GroupNumber end) const {
    const std::uint64_t together = ext2fs_has_feature_flex_bg(fs->super) != 0
                                       ? std::uint64_t{1} << (super.s_log_groups_per_flex % 32)
                                       : 1;
    const std::uint64_t from = first / together * together;
    const std::uint64_t to = (end + together - 1) / together * together + 1;
    const auto begin_of = [&](std::uint64_t group) {
      return super.s_first_data_block + group * super.s_blocks_per_group;
    };
    return {begin_of(from), begin_of(to)};
  }
  // Its times are not as small as its inodes' numbers, as they are when a clock has no battery.
  [[nodiscard]] bool knows_time() const {
    return super.s_wtime >= super.s_inodes_count && super.s_mkfs_time >= super.s_inodes_count &&
           (super.s_mtime == 0 || super.s_mtime >= super.s_inodes_count);
  }
  // What is right in one is right in the other: they differ in what changes while it is used,
  // alone.
  [[nodiscard]] bool is_comparable_with(const ExtContext& other) const {
    const ext2_super_block& theirs = other.super;
    const auto alike = [](std::uint32_t one, std::uint32_t two, std::uint32_t changing) {
      return ((one ^ two) & ~changing) == 0;
    };
    // (What checksums of descriptors, and hashes of names, are made with changes without any block
    // that has one.)
    return layout == other.layout && EXT2_DESC_SIZE(fs->super) == EXT2_DESC_SIZE(other.fs->super) &&
           std::ranges::equal(super.s_uuid, theirs.s_uuid) &&
           std::ranges::equal(super.s_hash_seed, theirs.s_hash_seed) &&
           alike(super.s_flags, theirs.s_flags, ~std::uint32_t{EXT2_FLAGS_UNSIGNED_HASH}) &&
           orphan_file() == other.orphan_file() &&
           alike(super.s_feature_incompat, theirs.s_feature_incompat,
                 EXT3_FEATURE_INCOMPAT_RECOVER) &&
           alike(super.s_feature_ro_compat, theirs.s_feature_ro_compat,
                 EXT2_FEATURE_RO_COMPAT_LARGE_FILE) &&
           alike(super.s_feature_compat, theirs.s_feature_compat,
                 ~std::uint32_t{EXT2_FEATURE_COMPAT_DIR_INDEX}) &&
           EXT2_FIRST_INODE(fs->super) == EXT2_FIRST_INODE(other.fs->super) &&
           fs->csum_seed == other.fs->csum_seed && knows_time() == other.knows_time();
  }
  [[nodiscard]] Result<std::vector<std::byte>> read_block(FsBlock block) const {
    std::vector<std::byte> bytes(layout.block_bytes());
    const auto read = volume.view().read(layout.bytes_of(block), bytes);
    if (!read) return read.error();
    return bytes;
  }

  const ExtVolume& volume;
  const ext2_filsys fs;
  const ext2_super_block& super;
  const ExtLayout& layout;
  const bool checksums;

 private:
  // 0: there is none.
  [[nodiscard]] InodeNumber orphan_file() const {
    return ext2fs_has_feature_orphan_file(fs->super) != 0 ? super.s_orphan_file_inum : 0;
  }
};

}  // namespace mariner::ifsck

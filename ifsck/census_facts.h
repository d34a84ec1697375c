// What the parts of a census tell each other: who is in use, and what is claimed and named.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "ifsck/block_map.h"
#include "ifsck/census.h"
#include "ifsck/ext_layout.h"
#include "ifsck/ext_volume.h"
#include "ifsck/finding.h"

namespace mariner::ifsck {

struct CensusFacts {
  struct Directory {
    BlockMap map;
    bool inlined = false;  // its entries are in the inode
    InodeNumber dotdot = 0;
    InodeNumber parent = 0;  // where its name is
    std::uint32_t names = 0;
  };
  static constexpr std::uint8_t kStrange = 255;  // in use, and of no kind that there is

  CensusFacts(const ExtVolume& volume_in, const ExtLayout& layout_in,
              const Census::Options& options_in)
      : volume(volume_in),
        fs(volume_in.fs()),
        super(*volume_in.fs()->super),
        layout(layout_in),
        options(options_in),
        checksums(ext2fs_has_feature_metadata_csum(volume_in.fs()->super) != 0),
        kinds(layout_in.inodes() + 1),
        links(layout_in.inodes() + 1),
        names(layout_in.inodes() + 1),
        used((layout_in.blocks() + 63) / 64) {}

  void add(const Finding& finding) {
    ++census.findings_all;
    if (census.findings.size() < options.findings_max) census.findings.push_back(finding);
  }
  [[nodiscard]] bool is_used(FsBlock block) const {
    return (used[block / 64] >> (block % 64) & 1) != 0;
  }
  // False: it was already.
  bool use(FsBlock block) {
    if (is_used(block)) return false;
    used[block / 64] |= std::uint64_t{1} << (block % 64);
    ++census.blocks_in_use;
    return true;
  }
  [[nodiscard]] bool is_reserved(InodeNumber number) const {
    return number < EXT2_FIRST_INODE(fs->super) && number != EXT2_ROOT_INO;
  }
  [[nodiscard]] bool is_uninitialized(GroupNumber group, std::uint16_t flag) const {
    return ext2fs_has_group_desc_csum(fs) != 0 && ext2fs_bg_flags_test(fs, group, flag) != 0;
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
  const Census::Options& options;
  const bool checksums;
  Census census;
  std::vector<std::uint8_t> kinds;   // by inode: EXT2_FT_*; 0: not in use
  std::vector<std::uint16_t> links;  // ... as it says
  std::vector<std::uint32_t> names;  // ... that were found, "." and ".." included
  std::vector<std::uint64_t> used;   // a bit for each block
  std::map<InodeNumber, Directory> directories;
};

}  // namespace mariner::ifsck

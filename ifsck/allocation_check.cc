#include "ifsck/allocation_check.h"

#include <utility>

#include "ifsck/group_bitmaps.h"

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
    if (facts_.options.keep != nullptr) facts_.options.keep->groups = std::move(groups_);
    return {};
  }

 private:
  Result<void> check_group(GroupNumber group) {
    auto bitmaps = GroupBitmaps::read(facts_, group);
    if (!bitmaps) return bitmaps.error();
    bitmaps->check([this](const Finding& finding) { facts_.add(finding); });
    groups_.emplace_back();
    check_blocks(group, *bitmaps);
    check_inodes(group, *bitmaps);
    return {};
  }

  void check_blocks(GroupNumber group, const GroupBitmaps& bitmaps) {
    std::int64_t& free_blocks = groups_.back().free_blocks;
    for (FsBlock block = bitmaps.first(); block <= bitmaps.last(); ++block) {
      const bool used = facts_.is_used(block);
      free_blocks += used ? 0 : 1;
      compare({.code = Code::kBlockMarked, .block = block, .group = group}, used,
              bitmaps.is_marked(block));
    }
    compare({.code = Code::kFreeBlocks, .group = group}, free_blocks,
            ext2fs_bg_free_blocks_count(facts_.fs, group));
    free_blocks_ += free_blocks;
  }

  void check_inodes(GroupNumber group, const GroupBitmaps& bitmaps) {
    Baseline::Group& counts = groups_.back();
    for (std::uint32_t i = 0; i < facts_.layout.inodes_per_group(); ++i) {
      const InodeNumber number = group * facts_.layout.inodes_per_group() + i + 1;
      const bool used = facts_.kinds[number] != 0 || facts_.is_reserved(number);
      counts.free_inodes += used ? 0 : 1;
      const bool directory = facts_.kinds[number] == EXT2_FT_DIR && !facts_.is_reserved(number);
      counts.directories += directory ? 1 : 0;
      compare({.code = Code::kInodeMarked, .inode = number, .group = group}, used,
              bitmaps.is_marked_inode(number));
    }
    compare({.code = Code::kFreeInodes, .group = group}, counts.free_inodes,
            ext2fs_bg_free_inodes_count(facts_.fs, group));
    compare({.code = Code::kDirectories, .group = group}, counts.directories,
            ext2fs_bg_used_dirs_count(facts_.fs, group));
    free_inodes_ += counts.free_inodes;
  }

  void check_totals() {
    compare({.code = Code::kFreeBlocks, .group = Finding::kAll}, free_blocks_,
            ext2fs_free_blocks_count(facts_.fs->super));
    compare({.code = Code::kFreeInodes, .group = Finding::kAll}, free_inodes_,
            facts_.super.s_free_inodes_count);
  }

  void compare(Finding finding, std::int64_t expected, std::uint64_t found) {
    if (expected == static_cast<std::int64_t>(found)) return;
    finding.expected = static_cast<std::uint64_t>(expected);
    finding.found = found;
    facts_.add(finding);
  }

  CensusFacts& facts_;
  std::int64_t free_blocks_ = 0;
  std::int64_t free_inodes_ = 0;
  std::vector<Baseline::Group> groups_;
};

}  // namespace

Result<void> check_allocation(CensusFacts& facts) { return Scan(facts).run(); }

}  // namespace mariner::ifsck

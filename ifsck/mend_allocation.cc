#include "ifsck/mend_allocation.h"

#include <map>
#include <vector>

#include "proto/bytes.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;
using Done = Repair::Done;

constexpr std::size_t kSharedAt = 4;  // in a block of attributes

void put_bit(std::span<std::byte> bytes, std::uint64_t bit, bool set) {
  const auto mask = static_cast<std::byte>(1u << bit % 8);
  bytes[bit / 8] = set ? bytes[bit / 8] | mask : bytes[bit / 8] & ~mask;
}

class AllocationMender {
 public:
  explicit AllocationMender(MendWork& work) : work_(work), context_(work.context()) {}

  Result<void> run() {
    std::map<GroupNumber, std::vector<Finding>> groups;
    for (const Finding& each : work_.findings()) {
      if (each.code == Code::kAttributeCount) {
        if (const Result<void> done = set_shared(each); !done) return done;
      } else if (is_derived(each.code)) {
        groups[each.group].push_back(each);
      }
    }
    for (const auto& [group, findings] : groups) {
      const Result<void> done =
          group == Finding::kAll ? set_totals(findings) : mend(group, findings);
      if (!done) return done;
    }
    return {};
  }

 private:
  Result<void> set_shared(const Finding& finding) {
    auto bytes = context_.read_block(finding.block);
    if (!bytes) return bytes.error();
    store_le(bytes->data() + kSharedAt, static_cast<std::uint32_t>(finding.expected));
    (void)ext2fs_ext_attr_block_csum_set(context_.fs, 0, finding.block,
                                         reinterpret_cast<ext2_ext_attr_header*>(bytes->data()));
    work_.done(finding, Done::kCountSet);
    return work_.put_block(finding.block, *bytes);
  }

  Result<void> set_totals(const std::vector<Finding>& findings) {
    for (const Finding& each : findings) {
      if (each.code == Code::kFreeBlocks) {
        ext2fs_free_blocks_count_set(context_.fs->super, each.expected);
      } else {
        context_.fs->super->s_free_inodes_count = static_cast<std::uint32_t>(each.expected);
      }
      work_.done(each, Done::kCountSet);
    }
    work_.touch_superblock();
    return {};
  }

  Result<void> mend(GroupNumber group, const std::vector<Finding>& findings) {
    bool blocks = false;
    bool inodes = false;
    for (const Finding& each : findings) {
      switch (each.code) {
        case Code::kBlockMarked:
        case Code::kBlockBitmapChecksum: blocks = true; break;
        case Code::kInodeMarked:
        case Code::kInodeBitmapChecksum: inodes = true; break;
        case Code::kPadding:
          (each.block == ext2fs_block_bitmap_loc(context_.fs, group) ? blocks : inodes) = true;
          break;
        default: set_count(group, each);
      }
      work_.done(each, is_bit(each.code) ? Done::kBitmapSet : Done::kCountSet);
    }
    work_.touch_descriptor(group);
    if (blocks) {
      if (const Result<void> done = mend_blocks(group, findings); !done) return done;
    }
    return inodes ? mend_inodes(group, findings) : Result<void>{};
  }

  static bool is_bit(Code code) {
    return code == Code::kBlockMarked || code == Code::kInodeMarked || code == Code::kPadding;
  }

  void set_count(GroupNumber group, const Finding& finding) {
    const ext2_filsys fs = context_.fs;
    const auto count = static_cast<std::uint32_t>(finding.expected);
    if (finding.code == Code::kFreeBlocks) ext2fs_bg_free_blocks_count_set(fs, group, count);
    if (finding.code == Code::kFreeInodes) ext2fs_bg_free_inodes_count_set(fs, group, count);
    if (finding.code == Code::kDirectories) ext2fs_bg_used_dirs_count_set(fs, group, count);
  }

  Result<void> mend_blocks(GroupNumber group, const std::vector<Finding>& findings) {
    if (context_.is_uninitialized(group, EXT2_BG_BLOCK_UNINIT)) {
      if (const Result<void> done = work_.initialize_blocks(group); !done) return done;
    }
    auto bytes = context_.read_block(ext2fs_block_bitmap_loc(context_.fs, group));
    if (!bytes) return bytes.error();
    const FsBlock first = ext2fs_group_first_block2(context_.fs, group);
    const FsBlock last = ext2fs_group_last_block2(context_.fs, group);
    for (const Finding& each : findings) {
      if (each.code == Code::kBlockMarked) put_bit(*bytes, each.block - first, each.expected != 0);
    }
    for (std::uint64_t bit = last - first + 1; bit < bytes->size() * 8; ++bit) {
      put_bit(*bytes, bit, true);
    }
    return work_.put_block_bitmap(group, *bytes);
  }

  Result<void> mend_inodes(GroupNumber group, const std::vector<Finding>& findings) {
    if (context_.is_uninitialized(group, EXT2_BG_INODE_UNINIT)) {
      if (const Result<void> done = work_.initialize_inodes(group); !done) return done;
    }
    auto bytes = context_.read_block(ext2fs_inode_bitmap_loc(context_.fs, group));
    if (!bytes) return bytes.error();
    const std::uint32_t inodes = work_.layout().inodes_per_group();
    for (const Finding& each : findings) {
      if (each.code != Code::kInodeMarked) continue;
      put_bit(*bytes, (each.inode - 1) % inodes, each.expected != 0);
    }
    for (std::uint64_t bit = inodes; bit < bytes->size() * 8; ++bit) put_bit(*bytes, bit, true);
    return work_.put_inode_bitmap(group, *bytes);
  }

  MendWork& work_;
  const ExtContext& context_;
};

// The group's descriptor has it behind all that was ever used.
bool is_said_unused(const ExtContext& context, InodeNumber number) {
  const std::uint32_t of_group = context.layout.inodes_per_group();
  return number != 0 && number <= context.layout.inodes() &&
         (number - 1) % of_group >= context.table_end(context.layout.group_of(number));
}

}  // namespace

Result<void> mend_allocation(MendWork& work) { return AllocationMender(work).run(); }

Result<bool> mend_descriptors(MendWork& work) {
  const ext2_filsys fs = work.context().fs;
  bool believed = false;
  for (const Finding& each : work.findings()) {
    if (each.code == Code::kEntryInode) {
      const auto number = static_cast<InodeNumber>(each.found);
      if (!is_said_unused(work.context(), number)) continue;
      const GroupNumber group = work.layout().group_of(number);
      ext2fs_bg_flags_clear(fs, group, EXT2_BG_INODE_UNINIT);
      ext2fs_bg_itable_unused_set(fs, group, 0);
      believed = true;
      work.touch_descriptor(group);
      work.done(each, Done::kFieldSet);
    }
    if (each.code != Code::kGroupChecksum) continue;
    const GroupNumber group = each.group;
    if (work.context().is_uninitialized(group, EXT2_BG_INODE_UNINIT) ||
        work.context().is_uninitialized(group, EXT2_BG_BLOCK_UNINIT) ||
        ext2fs_bg_itable_unused(fs, group) != 0) {
      ext2fs_bg_flags_clear(fs, group, EXT2_BG_INODE_UNINIT | EXT2_BG_BLOCK_UNINIT);
      ext2fs_bg_itable_unused_set(fs, group, 0);
      believed = true;
    }
    work.touch_descriptor(group);
    work.done(each, Done::kChecksumSet);
  }
  return believed;
}

}  // namespace mariner::ifsck

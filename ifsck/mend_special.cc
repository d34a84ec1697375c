#include "ifsck/mend_special.h"

#include <ext2fs/ext3_extents.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "ifsck/ext_inode.h"
#include "ifsck/journal_file.h"
#include "ifsck/journal_superblock.h"
#include "ifsck/mend_inode.h"
#include "ifsck/resize_inode.h"
#include "proto/bytes.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;
using Done = Repair::Done;

class SpecialMender {
 public:
  SpecialMender(MendWork& work, std::span<const Finding> findings,
                const std::function<bool(FsBlock)>& is_shared)
      : work_(work), context_(work.context()), findings_(findings), is_shared_(is_shared) {}

  Result<void> run(InodeNumber number) {
    auto bytes = work_.inode(number);
    if (!bytes) return bytes.error();
    if (bytes->empty()) return {};
    if (number != EXT2_RESIZE_INO) return mend_journal(number, *bytes);
    const auto resize = ResizeInode::of(context_);
    return resize ? restore_resize(*resize, *bytes) : Result<void>{};
  }

 private:
  void note(Done done) {
    for (const Finding& each : findings_) work_.done(each, done);
  }

  // The superblock has a copy of its map and size; where that is not good either, there is no
  // journal any more. What it had was replayed before.
  Result<void> mend_journal(InodeNumber number, std::span<std::byte> bytes) {
    const bool shared =
        std::ranges::find(findings_, Code::kClaimedTwice, &Finding::code) != findings_.end();
    if (restore_journal(bytes) && !shared) {
      const auto checked = check_inode(context_, number, bytes, true);
      if (!checked) return checked.error();
      const auto is_bad = [](const Finding& each) {
        return each.code != Code::kInodeChecksum && each.code != Code::kInodeBlocks;
      };
      const auto begins = begins_as_one(checked->map, bytes);
      if (!begins) return begins.error();
      if (std::ranges::none_of(checked->findings, is_bad) && is_whole(checked->map, bytes) &&
          *begins) {
        note(Done::kRestored);
        return settle_inode(work_, number, bytes);
      }
    }
    forget_journal(*context_.fs->super);
    work_.touch_superblock();
    note(Done::kJournalDropped);
    std::ranges::fill(bytes, std::byte{});
    return work_.put_inode(number, bytes);
  }

  // Of a file without holes.
  [[nodiscard]] bool is_whole(const BlockMap& map, InodeBytes bytes) const {
    std::uint64_t next = 0;
    for (const BlockMap::Run& run : map.runs) {
      if (run.logical != next) return false;
      next += run.count;
    }
    return next * work_.layout().block_bytes() >= ExtInode(bytes).size();
  }

  // Its first block is a journal's.
  Result<bool> begins_as_one(const BlockMap& map, InodeBytes bytes) {
    if (map.runs.empty()) return false;
    std::array<std::byte, JournalSuperblock::kBytes> super{};
    const std::uint64_t offset = work_.layout().bytes_of(map.runs.front().physical).offset;
    const auto read = context_.volume.view().read({offset, super.size()}, super);
    if (!read) return read.error();
    const std::uint32_t block_bytes = work_.layout().block_bytes();
    const auto good =
        JournalSuperblock::check(super, block_bytes, ExtInode(bytes).size() / block_bytes);
    return good || good.error().code != ErrorCode::kCorrupt;
  }

  // (EXT3_JNL_BACKUP_BLOCKS)
  bool restore_journal(std::span<std::byte> bytes) {
    const ext2_super_block& super = context_.super;
    if (super.s_jnl_backup_type != EXT3_JNL_BACKUP_BLOCKS || super.s_jnl_blocks[0] == 0) {
      return false;
    }
    const bool extents = (super.s_jnl_blocks[0] & 0xffff) == EXT3_EXT_MAGIC;
    clear_all_but_generation(bytes);
    std::memcpy(bytes.data() + InodeAt::kMap, super.s_jnl_blocks, InodeAt::kMapBytes);
    put_field<std::uint16_t>(bytes, InodeAt::kMode, LINUX_S_IFREG | 0600);
    put_field<std::uint16_t>(bytes, InodeAt::kLinks, 1);
    put_field<std::uint32_t>(bytes, InodeAt::kFlags, extents ? EXT4_EXTENTS_FL : 0);
    put_size(bytes, super.s_jnl_blocks[16] | (std::uint64_t{super.s_jnl_blocks[15]} << 32));
    return true;
  }

  // (Nodes of extents have checksums that begin with it.)
  static void clear_all_but_generation(std::span<std::byte> bytes) {
    const auto generation = load_le<std::uint32_t>(bytes.data() + InodeAt::kGeneration);
    std::ranges::fill(bytes, std::byte{});
    put_field(bytes, InodeAt::kGeneration, generation);
    if (bytes.size() >= 160) put_field(bytes, InodeAt::kExtra, InodeAt::kExtraUsual);
  }

  // All its blocks are known, but the one that names them.
  Result<void> restore_resize(const ResizeInode& resize, std::span<std::byte> bytes) {
    constexpr std::size_t kAt = InodeAt::kMap + 4 * EXT2_DIND_BLOCK;
    FsBlock block = load_le<std::uint32_t>(bytes.data() + kAt);
    if (!work_.layout().may_claim(block) || is_shared_(block) ||
        work_.layout().place_of(block).kind != ExtLayout::Kind::kData) {
      const auto other = work_.allocate(kNumbersEnd);
      if (!other) return other.error();
      if (!*other) return {};
      block = **other;
    }
    const std::size_t block_bytes = work_.layout().block_bytes();
    const std::uint64_t numbers = block_bytes / 4;
    std::vector<std::byte> top(block_bytes);
    for (std::size_t i = 0; i < resize.reserved.size(); ++i) {
      put_field(top, (resize.first + i) % numbers * 4,
                static_cast<std::uint32_t>(resize.reserved[i]));
      std::vector<std::byte> one(block_bytes);
      for (std::size_t k = 0; k < resize.copies[i].size(); ++k) {
        put_field(one, 4 * k, static_cast<std::uint32_t>(resize.copies[i][k]));
      }
      const auto done = work_.put_block(resize.reserved[i], one);
      if (!done) return done;
    }
    if (const auto done = work_.put_block(block, top); !done) return done;
    clear_all_but_generation(bytes);
    put_field<std::uint16_t>(bytes, InodeAt::kMode, LINUX_S_IFREG | 0600);
    put_field<std::uint16_t>(bytes, InodeAt::kLinks, 1);
    put_field(bytes, kAt, static_cast<std::uint32_t>(block));
    put_size(bytes, (numbers * numbers + numbers + EXT2_NDIR_BLOCKS) * block_bytes);
    note(Done::kRestored);
    return settle_inode(work_, EXT2_RESIZE_INO, bytes);
  }

  MendWork& work_;
  const ExtContext& context_;
  const std::span<const Finding> findings_;
  const std::function<bool(FsBlock)>& is_shared_;
};

}  // namespace

bool is_special_inode(const ExtContext& context, InodeNumber number) {
  if (number == 0) return false;
  return number == context.super.s_journal_inum ||
         (number == EXT2_RESIZE_INO && ResizeInode::of(context).has_value());
}

Result<void> mend_special_inode(MendWork& work, InodeNumber number,
                                std::span<const Finding> findings,
                                const std::function<bool(FsBlock)>& is_shared) {
  return SpecialMender(work, findings, is_shared).run(number);
}

}  // namespace mariner::ifsck

#include "ifsck/mend_orphans.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

#include "ifsck/block_map.h"
#include "ifsck/ext_inode.h"
#include "ifsck/map_writer.h"
#include "ifsck/mend_inode.h"
#include "ifsck/mend_work.h"
#include "proto/bytes.h"

namespace mariner::ifsck {
namespace {

class Releaser {
 public:
  Releaser(MendWork& work, bool believed)
      : work_(work), context_(work.context()), believed_(believed) {}

  Result<Orphans> run() {
    ext2_super_block& super = *context_.fs->super;
    if (const Result<void> done = follow_list(super.s_last_orphan); !done) return done.error();
    if (super.s_last_orphan != 0) {
      super.s_last_orphan = 0;
      work_.touch_superblock();
    }
    if (ext2fs_has_feature_orphan_present(&super)) {
      if (const Result<void> done = empty_file(super.s_orphan_file_inum); !done) {
        return done.error();
      }
      ext2fs_clear_feature_orphan_present(&super);
      work_.touch_superblock();
    }
    if (const Result<void> done = work_.finish(); !done) return done.error();
    return orphans_;
  }

 private:
  Result<void> follow_list(InodeNumber number) {
    while (believed_ && number != 0) {
      const auto next = release(number);
      if (!next) return next.error();
      if (!*next) break;
      number = **next;
    }
    return {};
  }

  // What its time of deletion says; nothing: it is no orphan.
  Result<std::optional<InodeNumber>> release(InodeNumber number) {
    const std::optional<InodeNumber> none;
    if (context_.is_reserved(number) || number == EXT2_ROOT_INO || !seen_.insert(number).second) {
      return none;
    }
    auto bytes = work_.inode(number);
    if (!bytes) return bytes.error();
    if (bytes->empty()) return none;
    const ExtInode inode(*bytes);
    const std::optional<InodeNumber> next = inode.deleted_at();
    if (inode.type() == 0) return none;
    if (inode.links() == 0) {
      ++orphans_.released;
      if (const Result<void> done = work_.release(number); !done) return done.error();
      return next;
    }
    put_field<std::uint32_t>(*bytes, InodeAt::kDeleted, 0);
    if (const Result<void> done = cut(number, *bytes); !done) return done.error();
    ++orphans_.cut;
    return next;
  }

  // To its size.
  Result<void> cut(InodeNumber number, std::span<std::byte> bytes) {
    if (!has_block_map(bytes)) return work_.put_inode(number, bytes);
    const auto map = map_blocks(context_.volume, work_.layout(), number, bytes);
    if (!map) return map.error();
    // (What is wrong with it a check finds, too.)
    if (!map->faults.empty()) return work_.put_inode(number, bytes);
    const std::uint64_t size = ExtInode(bytes).size();
    const std::uint32_t block = work_.layout().block_bytes();
    const std::uint64_t end = size / block + (size % block != 0 ? 1 : 0);
    std::vector<BlockMap::Run> kept;
    for (BlockMap::Run run : map->runs) {
      if (run.logical >= end) break;
      run.count = std::min(run.count, end - run.logical);
      kept.push_back(run);
    }
    if (kept != map->runs) {
      const Result<void> done = write_map(work_, number, bytes, kept, map->nodes);
      if (!done) return done;
    }
    if (const Result<void> done = clear_tail(kept, size); !done) return done;
    return settle_inode(work_, number, bytes);
  }

  // Behind its size, in its last block.
  Result<void> clear_tail(const std::vector<BlockMap::Run>& runs, std::uint64_t size) {
    const std::uint32_t block = work_.layout().block_bytes();
    if (size % block == 0 || runs.empty() || runs.back().unwritten ||
        runs.back().logical + runs.back().count != size / block + 1) {
      return {};
    }
    const FsBlock last = runs.back().physical + runs.back().count - 1;
    auto bytes = context_.read_block(last);
    if (!bytes) return bytes.error();
    std::fill(bytes->begin() + static_cast<std::ptrdiff_t>(size % block), bytes->end(),
              std::byte{});
    return work_.put_block(last, *bytes);
  }

  // Blocks of numbers, each with a mark and a checksum at its end.
  Result<void> empty_file(InodeNumber file) {
    auto inode = work_.inode(file);
    if (!inode) return inode.error();
    if (inode->empty() || !has_block_map(*inode)) return {};
    const auto map = map_blocks(context_.volume, work_.layout(), file, *inode);
    if (!map) return map.error();
    for (const BlockMap::Run& run : map->runs) {
      for (std::uint64_t i = 0; i < run.count; ++i) {
        if (const auto done = empty_block(file, run.physical + i); !done) return done;
      }
    }
    return {};
  }

  Result<void> empty_block(InodeNumber file, FsBlock block) {
    auto bytes = context_.read_block(block);
    if (!bytes) return bytes.error();
    auto* const text = reinterpret_cast<char*>(bytes->data());
    const auto numbers = static_cast<std::size_t>(ext2fs_inodes_per_orphan_block(context_.fs));
    std::byte* const mark = bytes->data() + numbers * sizeof(std::uint32_t);
    const bool good = load_le<std::uint32_t>(mark) == EXT4_ORPHAN_BLOCK_MAGIC &&
                      ext2fs_orphan_file_block_csum_verify(context_.fs, file, block, text) != 0;
    for (std::size_t i = 0; i < numbers; ++i) {
      const auto number = load_le<std::uint32_t>(bytes->data() + i * sizeof(std::uint32_t));
      if (number == 0 || !believed_ || !good) continue;
      if (const auto done = release(number); !done) return done.error();
    }
    std::fill(bytes->begin(), bytes->end(), std::byte{});
    store_le<std::uint32_t>(mark, EXT4_ORPHAN_BLOCK_MAGIC);
    if (const errcode_t error = ext2fs_orphan_file_block_csum_set(context_.fs, file, block, text)) {
      return Error{ErrorCode::kIo, "ext4: the file of orphans: " + ext_error_text(error)};
    }
    return work_.put_block(block, *bytes);
  }

  MendWork& work_;
  const ExtContext& context_;
  const bool believed_;
  Orphans orphans_;
  std::unordered_set<InodeNumber> seen_;
};

}  // namespace

Result<Orphans> release_orphans(View& view, bool believed) {
  const auto volume = ExtVolume::open(view, {.writable = true});
  if (!volume) return volume.error();
  const ext2_super_block& super = *volume->fs()->super;
  if (super.s_last_orphan == 0 && !ext2fs_has_feature_orphan_present(volume->fs()->super)) {
    return Orphans{};
  }
  const auto layout = ExtLayout::of(*volume);
  if (!layout) return layout.error();
  const ExtContext context(*volume, *layout);
  MendWork work(context, {.findings = {}, .cut_short = false, .directories = {}});
  return Releaser(work, believed && (super.s_state & EXT2_ERROR_FS) == 0).run();
}

}  // namespace mariner::ifsck

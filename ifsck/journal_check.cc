#include "ifsck/journal_check.h"

#include <array>

#include "ifsck/block_map.h"
#include "ifsck/journal_file.h"
#include "ifsck/journal_superblock.h"

namespace mariner::ifsck {

Result<std::optional<Finding>> check_journal(const ExtContext& context,
                                             const std::function<bool(FsBlock)>& wanted) {
  const InodeNumber number = context.super.s_journal_inum;
  if (ext2fs_has_feature_journal(context.fs->super) == 0 || number == 0) {
    return std::optional<Finding>();
  }
  const auto file = JournalFile::open(context.volume, context.layout);
  if (!file && file.error().code != ErrorCode::kCorrupt) return file.error();
  FsBlock first = 0;
  if (file) {
    const std::uint64_t offset = file->bytes_of(0).offset;
    first = offset / context.layout.block_bytes();
    if (!wanted(first)) return std::optional<Finding>();
    std::array<std::byte, JournalSuperblock::kBytes> bytes{};
    const auto read = context.volume.view().read({offset, bytes.size()}, bytes);
    if (!read) return read.error();
    const auto good = JournalSuperblock::check(bytes, file->block_bytes(), file->blocks());
    const bool corrupt = !good && good.error().code == ErrorCode::kCorrupt;
    if (!corrupt && !file->is_short()) return std::optional<Finding>();
  }
  // (Where there is no such inode, it is nobody's.)
  return std::optional(
      Finding{.code = Finding::Code::kInodeMap,
              .inode = number <= context.layout.inodes() ? number : 0,
              .block = first,
              .found = static_cast<std::uint64_t>(BlockMap::Fault::What::kStrange)});
}

}  // namespace mariner::ifsck

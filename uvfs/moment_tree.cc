#include "uvfs/moment_tree.h"

#include <ext2fs/ext2_fs.h>
#include <fmt/format.h>

#include <algorithm>

#include "ifsck/block_map.h"
#include "ifsck/directory_block.h"
#include "ifsck/ext_inode.h"
#include "ifsck/journal.h"
#include "uvfs/inode_record.h"

namespace mariner::uvfs {
namespace {

using ifsck::InodeNumber;

std::uint32_t kind_of(std::uint8_t type) {
  switch (type) {
    case EXT2_FT_REG_FILE: return LINUX_S_IFREG;
    case EXT2_FT_DIR: return LINUX_S_IFDIR;
    case EXT2_FT_CHRDEV: return LINUX_S_IFCHR;
    case EXT2_FT_BLKDEV: return LINUX_S_IFBLK;
    case EXT2_FT_FIFO: return LINUX_S_IFIFO;
    case EXT2_FT_SOCK: return LINUX_S_IFSOCK;
    case EXT2_FT_SYMLINK: return LINUX_S_IFLNK;
    default: return 0;
  }
}

}  // namespace

ObjectNumber MomentTree::root() const { return EXT2_ROOT_INO; }

Result<std::unique_ptr<MomentTree>> MomentTree::open(ifsck::Past& past, SequenceNumber at) {
  std::unique_ptr<MomentTree> tree(new MomentTree(past, at));
  if (const auto opened = tree->moment_.open(); !opened) return opened.error();
  if (const auto replayed = tree->replay(); !replayed) return replayed.error();
  return tree;
}

Result<void> MomentTree::replay() {
  if (ext2fs_has_feature_journal_needs_recovery(context().fs->super) == 0) return {};
  const auto done = ifsck::replay_journal(moment_.view());
  if (!done) {
    const bool past_failed = done.error().code != ErrorCode::kCorrupt &&
                             done.error().code != ErrorCode::kInvalidArgument &&
                             done.error().code != ErrorCode::kLimit;
    if (past_failed) return done.error();
    journal_error_ = done.error().message;
    overlay_.clear();
  }
  return moment_.open();
}

Result<MomentTree::Object> MomentTree::object(ObjectNumber number) {
  const ifsck::ExtLayout& layout = context().layout;
  if (number != 0 && number <= layout.inodes()) {
    Object one{.number = static_cast<InodeNumber>(number), .state = {}, .inode = {}};
    one.inode.resize(layout.inode_bytes());
    const auto read = moment_.view().read(layout.inode_place(one.number), one.inode);
    if (!read) return read.error();
    one.state = state_of(one.inode);
    if (one.state.exists) return one;
  }
  return Error{ErrorCode::kNotFound,
               fmt::format("inode {} is not in use at #{}", number, at_.value)};
}

Result<ObjectState> MomentTree::state(ObjectNumber number) {
  const auto found = object(number);
  return found ? Result<ObjectState>(found->state) : found.error();
}

Result<FileContents> MomentTree::contents(ObjectNumber number) {
  const auto found = object(number);
  if (!found) return found.error();
  return FileContents::open(replayed_, context(),
                            {.number = found->number, .inode = found->inode, .at = at_});
}

Result<ObjectAttributes> MomentTree::attributes(ObjectNumber number) {
  const auto found = object(number);
  if (!found) return found.error();
  return read_attributes(replayed_, context(), found->inode, at_);
}

Result<MomentTree::Names> MomentTree::names(ObjectNumber directory) {
  if (auto kept = kept_.find(directory)) return kept;
  const auto object = this->object(directory);
  if (!object) return object.error();
  if (!LINUX_S_ISDIR(object->state.mode)) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("inode {} is no directory", directory)};
  }
  auto read = read_names(*object);
  if (!read) return read.error();
  const auto made = std::make_shared<const std::vector<Name>>(std::move(*read));
  kept_.keep(directory, made);
  return Names(made);
}

Result<std::vector<MomentTree::Name>> MomentTree::read_names(const Object& directory) {
  const ifsck::ExtLayout& layout = context().layout;
  std::vector<Name> names;
  const auto take = [&](std::span<const std::byte> block) {
    (void)ifsck::for_each_entry(block, [&](const ifsck::DirectoryEntry& each) {
      if (each.inode == 0 || each.name.empty() || each.name == "." || each.name == "..") return;
      names.push_back({std::string(each.name), each.inode, kind_of(each.type)});
    });
  };
  if (ifsck::ExtInode(directory.inode).has_inline_data()) {
    for (const auto entries : inline_entries(directory.inode)) take(entries);
  } else {
    const auto map = ifsck::map_blocks(context().volume, layout, directory.number, directory.inode);
    if (!map) return map.error();
    const std::uint64_t blocks = directory.state.size / layout.block_bytes();
    if (map->blocks() > kDirectoryBlocksMax) {
      return directory_too_large(directory.number, map->blocks());
    }
    std::vector<ifsck::FsBlock> places;
    for (const ifsck::BlockMap::Run& run : map->runs) {
      for (std::uint64_t i = 0; i < run.count && run.logical + i < blocks; ++i) {
        if (!run.unwritten) places.push_back(run.physical + i);
      }
    }
    // As many at a time as are kept.
    constexpr std::size_t kAtOnce = kBlocksMax / 2;
    for (std::span<const ifsck::FsBlock> left(places); !left.empty();) {
      const auto some = left.first(std::min(left.size(), kAtOnce));
      left = left.subspan(some.size());
      if (const auto fetched = fetch(some); !fetched) return fetched.error();
      for (const ifsck::FsBlock each : some) {
        const auto block = context().read_block(each);
        if (!block) return block.error();
        take(*block);
      }
    }
  }
  // (Of a name that is twice, the first is meant.)
  std::ranges::stable_sort(names, {}, &Name::name);
  const auto repeated = std::ranges::unique(names, {}, &Name::name);
  names.erase(repeated.begin(), repeated.end());
  return names;
}

Result<void> MomentTree::fetch(std::span<const ifsck::FsBlock> blocks) {
  std::vector<Lbn> wanted;
  for (const ifsck::FsBlock each : blocks) {
    const BlockRange range = context().layout.bytes_of(each).covering_blocks();
    for (Lbn lbn = range.first; lbn < range.end(); lbn = lbn + BlockCount{1}) {
      wanted.push_back(lbn);
    }
  }
  return moment_.view().prefetch(wanted);
}

}  // namespace mariner::uvfs

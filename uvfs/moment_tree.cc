#include "uvfs/moment_tree.h"

#include <ext2fs/ext2_fs.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

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

Result<std::unique_ptr<MomentTree>> MomentTree::open(ifsck::Past& past, SequenceNumber at,
                                                     LazyMender* mender) {
  std::unique_ptr<MomentTree> tree(new MomentTree(past, at, mender));
  if (const auto opened = tree->moment_.open(); !opened) return opened.error();
  if (const auto replayed = tree->replay(); !replayed) return replayed.error();
  if (mender != nullptr && mender->has_mended(at)) {
    if (const auto mended = tree->mend(); !mended) return mended.error();
  }
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

Result<void> MomentTree::mend() {
  LazyMender& mender = *std::exchange(mender_, nullptr);
  const auto mended = mender.mend(at_, overlay_);
  if (!mended) return mended.error();
  if (!*mended) return {};
  kept_.clear();
  return moment_.open();
}

template <typename Read>
auto MomentTree::mended_if_needed(Read read) -> decltype(read()) {
  auto found = read();
  if (found || found.error().code != ErrorCode::kCorrupt || mender_ == nullptr) return found;
  if (const auto mended = mend(); !mended) return mended.error();
  return read();
}

Result<MomentTree::Object> MomentTree::object(ObjectNumber number) {
  return mended_if_needed([&]() -> Result<Object> {
    auto found = object_as_it_is(number);
    if (found || found.error().code != ErrorCode::kNotFound) return found;
    // (What nobody names need not be.)
    if (mender_ == nullptr || !kept_.has(number)) return found;
    return Error{ErrorCode::kCorrupt, found.error().message};
  });
}

Result<MomentTree::Object> MomentTree::object_as_it_is(ObjectNumber number) {
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
  return mended_if_needed([&]() -> Result<FileContents> {
    auto found = contents_as_they_are(number);
    if (!found || found->is_whole() || mender_ == nullptr) return found;
    return Error{ErrorCode::kCorrupt,
                 fmt::format("what says where inode {} has its blocks is damaged", number)};
  });
}

Result<FileContents> MomentTree::contents_as_they_are(ObjectNumber number) {
  const auto found = object(number);
  if (!found) return found.error();
  return FileContents::open(replayed_, context(),
                            {.number = found->number, .inode = found->inode, .at = at_});
}

Result<ObjectAttributes> MomentTree::attributes(ObjectNumber number) {
  return mended_if_needed([&]() -> Result<ObjectAttributes> {
    const auto found = object(number);
    if (!found) return found.error();
    return read_attributes(replayed_, context(), found->inode, at_);
  });
}

Result<MomentTree::Names> MomentTree::names(ObjectNumber directory) {
  if (auto kept = kept_.find(directory)) return kept;
  auto read = mended_if_needed([&] { return read_names(directory); });
  if (!read) return read.error();
  const auto made = std::make_shared<const std::vector<Name>>(std::move(*read));
  kept_.keep(directory, made);
  return Names(made);
}

Result<std::vector<MomentTree::Name>> MomentTree::read_names(ObjectNumber directory) {
  const auto object = this->object(directory);
  if (!object) return object.error();
  if (!LINUX_S_ISDIR(object->state.mode)) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("inode {} is no directory", directory)};
  }
  std::vector<Name> names;
  const auto good = read_entries(*object, names);
  if (!good) return good.error();
  if (!*good && mender_ != nullptr) {
    return Error{ErrorCode::kCorrupt, fmt::format("directory {} is damaged", directory)};
  }
  // (Of a name that is twice, the first is meant.)
  std::ranges::stable_sort(names, {}, &Name::name);
  const auto repeated = std::ranges::unique(names, {}, &Name::name);
  names.erase(repeated.begin(), repeated.end());
  return names;
}

Result<bool> MomentTree::read_entries(const Object& directory, std::vector<Name>& names) {
  const ifsck::ExtLayout& layout = context().layout;
  bool good = true;
  const auto take = [&](std::span<const std::byte> block) {
    const bool whole = ifsck::for_each_entry(block, [&](const ifsck::DirectoryEntry& each) {
      if (each.inode == 0 || each.name.empty() || each.name == "." || each.name == "..") return;
      names.push_back({std::string(each.name), each.inode, kind_of(each.type)});
    });
    good = good && whole;
  };
  if (ifsck::ExtInode(directory.inode).has_inline_data()) {
    for (const auto entries : inline_entries(directory.inode)) take(entries);
    return good;
  }
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
  good = places.size() == blocks;
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
  return good;
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

// Blocks are neither freed nor marked while operations are being done, for what one file has freed
// another one may have taken. All blocks that any range names are reserved at the beginning. At the
// end what touched files had before is free, and what they have now is not.
#include "ifsck/fast_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ifsck/ext_inode.h"
#include "proto/bytes.h"

namespace mariner::ifsck {
namespace {

using Kind = FastOperation::Kind;

constexpr std::size_t kMapEnd = InodeAt::kMap + ExtentMap::kRootBytes;

}  // namespace

FastFiles::FastFiles(const ExtVolume& volume, const ExtLayout& layout)
    : volume_(volume), layout_(layout), fs_(volume.fs()), maps_(volume, layout) {}

// ---- errors

Error FastFiles::corrupt(std::string_view what, InodeNumber inode) {
  return {ErrorCode::kCorrupt, fmt::format("a fast commit of inode {}: {}", inode, what)};
}

Error FastFiles::too_much() {
  return {ErrorCode::kLimit,
          "the journal's fast commits take too long to be replayed; a mount, "
          "or e2fsck, may help"};
}

// ---- inodes

Result<FastFiles::Bytes> FastFiles::read_inode(InodeNumber number) {
  Bytes bytes(layout_.inode_bytes());
  const errcode_t error = ext2fs_read_inode_full(
      fs_, number, reinterpret_cast<ext2_inode*>(bytes.data()), static_cast<int>(bytes.size()));
  if (error != 0) return failed(error, number);
  return bytes;
}

Result<void> FastFiles::write_inode(InodeNumber number, Bytes& bytes) {
  const errcode_t error = ext2fs_write_inode_full(
      fs_, number, reinterpret_cast<ext2_inode*>(bytes.data()), static_cast<int>(bytes.size()));
  if (error != 0) return failed(error, number);
  return {};
}

Error FastFiles::failed(errcode_t error, InodeNumber number) {
  const ErrorCode code = error == EIO                        ? ErrorCode::kIo
                         : error == EXT2_ET_BLOCK_ALLOC_FAIL ? ErrorCode::kNoSpace
                                                             : ErrorCode::kCorrupt;
  return {code, fmt::format("a fast commit of inode {}: {}", number, ext_error_text(error))};
}

std::uint16_t FastFiles::links(const Bytes& inode) {
  return load_le<std::uint16_t>(inode.data() + InodeAt::kLinks);
}

Result<void> FastFiles::touch(InodeNumber number) {
  if (number == 0 || number > layout_.inodes()) return corrupt("there is no such inode", number);
  const bool special = number < EXT2_FIRST_INODE(fs_->super) && number != EXT2_ROOT_INO;
  if (special) return corrupt("it is one of the file system's own", number);
  if (was_.contains(number)) return {};
  const auto in_use = maps_.inode(number);
  if (!in_use) return in_use.error();
  const auto inode = read_inode(number);
  if (!inode) return inode.error();
  was_[number] = {*in_use, *in_use && ExtInode(*inode).is_directory(),
                  *in_use && links(*inode) != 0};
  return {};
}

// What an inode had that is no more, or is another one now.
Result<void> FastFiles::release(InodeNumber number, const Bytes& inode) {
  files_.erase(number);
  claims_.erase(number);
  if (has_block_map(inode)) {
    const auto map = read_map(number, inode);
    if (!map) return map.error();
    release(*map);
  }
  const FsBlock attributes = ExtInode(inode).attributes();
  if (attributes == 0 || !layout_.may_claim(attributes)) return {};
  Bytes block(layout_.block_bytes());
  __u32 count = 0;
  const errcode_t error = ext2fs_adjust_ea_refcount3(
      fs_, attributes, reinterpret_cast<char*>(block.data()), -1, &count, number);
  if (error != 0) return failed(error, number);
  if (count == 0) released_.push_back({attributes, 1});
  return {};
}

void FastFiles::release(const BlockMap& map) {
  for (const BlockMap::Run& each : map.runs) released_.push_back({each.physical, each.count});
  for (const BlockMap::Node& each : map.nodes) released_.push_back({each.block, 1});
}

bool FastFiles::spend_ranges(std::uint64_t count) {
  if (ranges_left_ < count) return false;
  ranges_left_ -= count;
  return true;
}

Result<BlockMap> FastFiles::read_map(InodeNumber number, const Bytes& inode) {
  auto map = map_blocks(volume_, layout_, number, inode);
  if (!map) return map;
  if (!map->faults.empty()) return corrupt("its blocks cannot be as it says", number);
  if (!spend_ranges(map->runs.size() + map->nodes.size())) return too_much();
  return map;
}

Result<void> FastFiles::put_inode(const FastOperation& operation) {
  const InodeNumber number = operation.inode;
  const auto found = read_inode(number);
  if (!found) return found.error();
  const auto in_use = maps_.inode(number);
  if (!in_use) return in_use.error();
  Bytes bytes = *found;
  const auto generation = [](std::span<const std::byte> inode) {
    return load_le<std::uint32_t>(inode.data() + InodeAt::kGeneration);
  };
  const bool same = *in_use && generation(bytes) == generation(operation.bytes);
  if (!same) {
    if (*in_use) {
      if (const Result<void> done = release(number, bytes); !done) return done;
    }
    std::ranges::fill(bytes, std::byte{0});
    if (const Result<void> done = maps_.set_inode(number, true); !done) return done;
  }
  const bool kept_directory = same && ExtInode(*found).is_directory();
  const std::size_t size = std::min(operation.bytes.size(), bytes.size());
  const auto from = std::span(operation.bytes).first(size);
  std::ranges::copy(from.first(InodeAt::kMap), bytes.begin());
  std::ranges::copy(from.subspan(kMapEnd), bytes.begin() + kMapEnd);
  const ExtInode inode(bytes);
  if (!inode.has_extents()) {
    std::ranges::copy(from.subspan(InodeAt::kMap, kMapEnd - InodeAt::kMap),
                      bytes.begin() + InodeAt::kMap);
    files_.erase(number);
  } else if (!same || !ExtInode(*found).has_extents()) {
    put_root(bytes, empty_root());
    files_[number] = {};
  }
  // What is in a directory is replayed by names: it has the blocks that it has here.
  if (kept_directory) {
    keep_directory(bytes, *found);
  } else if (const auto claim = claims_.find(number); claim != claims_.end()) {
    count_blocks(bytes, claim->second);
  }
  return write_inode(number, bytes);
}

FastFiles::Bytes FastFiles::empty_root() { return ExtentMap().make_tree(1024, {}, {}).value(); }

void FastFiles::put_root(Bytes& inode, const Bytes& root) {
  std::ranges::copy(root, inode.begin() + InodeAt::kMap);
}

void FastFiles::keep_directory(Bytes& inode, const Bytes& found) {
  const auto keep = [&](std::size_t at, std::size_t bytes) {
    std::copy_n(found.begin() + static_cast<std::ptrdiff_t>(at), bytes,
                inode.begin() + static_cast<std::ptrdiff_t>(at));
  };
  keep(InodeAt::kSize, 4);
  keep(InodeAt::kSizeHigh, 4);
  keep(InodeAt::kSectors, 4);
  keep(InodeAt::kSectorsHigh, 2);
  keep(InodeAt::kFlags, 4);
  keep(InodeAt::kMap, kMapEnd - InodeAt::kMap);
}

// ---- blocks

Result<void> FastFiles::reserve(std::span<const FastOperation> operations) {
  for (const FastOperation& each : operations) {
    if (each.kind != Kind::kAddRange || each.count == 0) continue;
    if (!spend_ranges(each.count)) return too_much();
    for (FsBlock block = each.physical; block < each.physical + each.count; ++block) {
      if (layout_.may_claim(block) && layout_.place_of(block).kind == ExtLayout::Kind::kData) {
        continue;
      }
      return corrupt(fmt::format("it cannot have block {}", block), each.inode);
    }
    regions_.push_back({each.physical, each.count});
    const auto done = maps_.set_blocks(each.physical, each.count, true);
    if (!done) return done;
  }
  return {};
}

Result<FastFiles::File*> FastFiles::file(InodeNumber number) {
  if (const auto found = files_.find(number); found != files_.end()) return &found->second;
  const auto inode = read_inode(number);
  if (!inode) return inode.error();
  if (!ExtInode(*inode).has_extents() || !has_block_map(*inode)) {
    return corrupt("a range of blocks, and it has no extents", number);
  }
  const auto map = read_map(number, *inode);
  if (!map) return map.error();
  claims_.erase(number);
  release(*map);
  File file{ExtentMap(*map), ExtentMap(*map), {}};
  for (const BlockMap::Node& each : map->nodes) file.nodes.push_back(each.block);
  return &(files_[number] = std::move(file));
}

Result<void> FastFiles::change_range(const FastOperation& operation) {
  const auto inode = read_inode(operation.inode);
  if (!inode) return inode.error();
  const bool directory = ExtInode(*inode).is_directory();
  // Of a new directory its first block is of interest: the others it gets with its names.
  if (directory && (!files_.contains(operation.inode) || operation.logical != 0)) return {};
  const auto changed = file(operation.inode);
  if (!changed) return changed.error();
  const std::uint64_t end = std::uint64_t{1} << 32;
  const std::uint64_t count = std::min(operation.count, end - operation.logical);
  if (operation.kind == Kind::kDelRange) {
    (*changed)->now.remove(operation.logical, count);
  } else {
    (*changed)->now.add(operation.logical,
                        {operation.physical, directory ? 1 : count, operation.unwritten});
  }
  return {};
}

Result<void> FastFiles::settle(InodeNumber number) {
  const auto found = files_.find(number);
  if (found == files_.end()) return {};
  const File file = std::move(found->second);
  files_.erase(found);
  std::vector<Range>& claim = claims_[number];
  claim.clear();
  for (const auto& [logical, extent] : file.now.extents()) {
    claim.push_back({extent.physical, extent.count});
  }
  auto inode = read_inode(number);
  if (!inode) return inode.error();
  if (file.now == file.before) {
    for (const FsBlock each : file.nodes) claim.push_back({each, 1});
  } else {
    const auto root = make_tree(number, file, claim);
    if (!root) return root.error();
    put_root(*inode, *root);
  }
  count_blocks(*inode, claim);
  return write_inode(number, *inode);
}

Result<FsBlock> FastFiles::take_near(InodeNumber number) {
  return maps_.take_block(ext2fs_group_first_block2(fs_, layout_.group_of(number)));
}

Result<FastFiles::Bytes> FastFiles::make_tree(InodeNumber number, const File& file,
                                              std::vector<Range>& claim) {
  std::vector<FsBlock> nodes = file.nodes;
  const auto take = [&]() -> Result<FsBlock> {
    if (!nodes.empty()) {
      const FsBlock block = nodes.back();
      nodes.pop_back();
      return block;
    }
    return take_near(number);
  };
  const auto put = [&](FsBlock block, std::span<std::byte> bytes) -> Result<void> {
    claim.push_back({block, 1});
    auto* const head = reinterpret_cast<ext3_extent_header*>(bytes.data());
    if (const errcode_t error = ext2fs_extent_block_csum_set(fs_, number, head)) {
      return failed(error, number);
    }
    return volume_.view().write(layout_.bytes_of(block), bytes);
  };
  return file.now.make_tree(layout_.block_bytes(), take, put);
}

void FastFiles::count_blocks(Bytes& inode, const std::vector<Range>& claim) const {
  std::uint64_t count = ExtInode(inode).attributes() != 0 ? 1 : 0;
  for (const Range& each : claim) count += each.count;
  if (!ExtInode(inode).in_large_blocks()) count *= layout_.block_bytes() / 512;
  store_le(inode.data() + InodeAt::kSectors, static_cast<std::uint32_t>(count));
  store_le(inode.data() + InodeAt::kSectorsHigh, static_cast<std::uint16_t>(count >> 32));
}

Result<void> FastFiles::mark_blocks() {
  for (const auto* const all : {&regions_, &released_}) {
    for (const Range& each : *all) {
      const auto done = maps_.set_blocks(each.first, each.count, false);
      if (!done) return done;
    }
  }
  for (const auto& [number, claim] : claims_) {
    for (const Range& each : claim) {
      const auto done = maps_.set_blocks(each.first, each.count, true);
      if (!done) return done;
    }
  }
  return {};
}

Result<FsBlock> FastFiles::first_block(InodeNumber number) {
  const auto found = file(number);
  if (!found) return found.error();
  ExtentMap& now = (*found)->now;
  if (const auto first = now.extents().find(0); first != now.extents().end()) {
    return first->second.physical;
  }
  const auto block = take_near(number);
  if (block) now.add(0, {*block, 1, false});
  return block;
}

Result<void> FastFiles::make_room(InodeNumber directory) {
  const auto block = take_near(directory);
  if (block) return maps_.set_blocks(*block, 1, false);
  return block.error().code == ErrorCode::kNoSpace ? Result<void>{} : block.error();
}

// ---- the end

// What has lost its last name is no more; directories are counted.
Result<void> FastFiles::count_inodes() {
  for (const auto& [number, was] : was_) {
    auto inode = read_inode(number);
    if (!inode) return inode.error();
    auto in_use = maps_.inode(number);
    if (!in_use) return in_use.error();
    const bool gone = *in_use && links(*inode) == 0 && (was.linked || !was.in_use);
    if (gone) {
      if (const Result<void> done = release(number, *inode); !done) return done;
      store_le(inode->data() + InodeAt::kDeleted,
               std::max(1u, load_le<std::uint32_t>(inode->data() + InodeAt::kChanged)));
      if (const Result<void> done = write_inode(number, *inode); !done) return done;
      if (const Result<void> done = maps_.set_inode(number, false); !done) return done;
      *in_use = false;
    }
    const bool directory = *in_use && ExtInode(*inode).is_directory();
    if (directory == was.directory) continue;
    const Result<void> done = maps_.add_directories(number, directory ? 1 : -1);
    if (!done) return done;
  }
  return {};
}

Result<void> FastFiles::finish() {
  while (!files_.empty()) {
    if (const Result<void> done = settle(files_.begin()->first); !done) return done;
  }
  if (const Result<void> done = count_inodes(); !done) return done;
  if (const Result<void> done = mark_blocks(); !done) return done;
  return maps_.store();
}

Result<bool> FastFiles::in_use(InodeNumber number) { return maps_.inode(number); }

}  // namespace mariner::ifsck

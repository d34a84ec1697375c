// In the order of e2fsck's passes: inodes and their blocks, directories, how they hang together,
// links, bitmaps and counts.
#include "ifsck/census.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>
#include <utility>

#include "ifsck/block_map.h"
#include "ifsck/directory_block.h"
#include "ifsck/ext_inode.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;

constexpr std::uint64_t kSectorBytes = 512;
// Of an inode table, or of directories' blocks, asked for at a time.
constexpr std::uint64_t kBytesAtOnce = 4u << 20;
constexpr std::uint32_t kAttributesMagic = 0xEA020000;
// Directories of more subdirectories do not count them (dir_nlink).
constexpr std::uint32_t kLinksMax = 65000;

// What says that structures are other than those that are looked at here.
struct Unknown {
  std::uint32_t bit;
  const char* name;
};
constexpr Unknown kUnknownIncompatible[] = {
    {EXT2_FEATURE_INCOMPAT_COMPRESSION, "compression"},
    {EXT3_FEATURE_INCOMPAT_JOURNAL_DEV, "a device that is a journal"},
    {EXT4_FEATURE_INCOMPAT_MMP, "mmp"},
    {EXT4_FEATURE_INCOMPAT_EA_INODE, "ea_inode"},
};
constexpr Unknown kUnknownReadOnly[] = {
    {EXT4_FEATURE_RO_COMPAT_BIGALLOC, "bigalloc"},
    {EXT4_FEATURE_RO_COMPAT_VERITY, "verity"},
    {EXT4_FEATURE_RO_COMPAT_ORPHAN_PRESENT, "orphan_present"},
};

Result<void> check_features(const ext2_super_block& super) {
  const auto refuse = [](const char* name) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("ext2/3/4: the feature {} is not understood; e2fsck may help", name)};
  };
  for (const Unknown& each : kUnknownIncompatible) {
    if ((super.s_feature_incompat & each.bit) != 0) return refuse(each.name);
  }
  for (const Unknown& each : kUnknownReadOnly) {
    if ((super.s_feature_ro_compat & each.bit) != 0) return refuse(each.name);
  }
  return {};
}

// Its times are not as small as its inodes' numbers, as they are when a clock has no battery.
bool knows_time(const ext2_super_block& super) {
  return super.s_wtime >= super.s_inodes_count && super.s_mkfs_time >= super.s_inodes_count &&
         (super.s_mtime == 0 || super.s_mtime >= super.s_inodes_count);
}

class Taker {
 public:
  Taker(const ExtVolume& volume, const ExtLayout& layout, const Census::Options& options)
      : volume_(volume),
        fs_(volume.fs()),
        super_(*volume.fs()->super),
        layout_(layout),
        options_(options),
        checksums_(ext2fs_has_feature_metadata_csum(volume.fs()->super) != 0),
        orphans_below_(knows_time(*volume.fs()->super) ? layout.inodes() : 0),
        kinds_(layout.inodes() + 1),
        links_(layout.inodes() + 1),
        names_(layout.inodes() + 1),
        used_((layout.blocks() + 63) / 64) {}

  Result<Census> take() {
    if (checksums_ && ext2fs_superblock_csum_verify(fs_, fs_->super) == 0) {
      add({.code = Code::kSuperblockChecksum});
    }
    mark_structures();
    for (GroupNumber group = 0; group < layout_.groups(); ++group) {
      if (const Result<void> done = take_inodes(group); !done) return done.error();
    }
    check_attribute_counts();
    if (const Result<void> done = take_directories(); !done) return done.error();
    check_tree();
    check_links();
    for (GroupNumber group = 0; group < layout_.groups(); ++group) {
      if (const Result<void> done = check_group(group); !done) return done.error();
    }
    check_totals();
    return std::move(census_);
  }

 private:
  struct Directory {
    BlockMap map;
    std::uint64_t size = 0;
    bool inlined = false;
    InodeNumber dotdot = 0;
    InodeNumber parent = 0;  // where its name is
    std::uint32_t names = 0;
  };

  void add(const Finding& finding) {
    ++census_.findings_all;
    if (census_.findings.size() < options_.findings_max) census_.findings.push_back(finding);
  }

  // ---- blocks in use

  [[nodiscard]] bool is_used(FsBlock block) const {
    return (used_[block / 64] >> (block % 64) & 1) != 0;
  }
  // False: it was already.
  bool use(FsBlock block) {
    std::uint64_t& word = used_[block / 64];
    const std::uint64_t bit = std::uint64_t{1} << (block % 64);
    if ((word & bit) != 0) return false;
    word |= bit;
    ++census_.blocks_in_use;
    return true;
  }

  void mark_structures() {
    for (FsBlock block = super_.s_first_data_block; block < layout_.blocks(); ++block) {
      if (layout_.place_of(block).kind != ExtLayout::Kind::kData) (void)use(block);
    }
  }

  void claim(InodeNumber inode, FsBlock block) {
    if (use(block)) return;
    if (layout_.place_of(block).kind == ExtLayout::Kind::kData) {
      return add({.code = Code::kClaimedTwice, .inode = inode, .block = block});
    }
    // What is reserved for group descriptors is a file, too.
    if (inode == EXT2_RESIZE_INO) return;
    add({.code = Code::kClaimsStructure, .inode = inode, .block = block});
  }

  // ---- inodes

  [[nodiscard]] bool is_uninitialized(GroupNumber group, std::uint16_t flag) const {
    return ext2fs_has_group_desc_csum(fs_) != 0 && ext2fs_bg_flags_test(fs_, group, flag) != 0;
  }

  // How many of the group's inodes were ever used.
  [[nodiscard]] std::uint32_t table_end(GroupNumber group) const {
    if (is_uninitialized(group, EXT2_BG_INODE_UNINIT)) return 0;
    if (ext2fs_has_group_desc_csum(fs_) == 0) return layout_.inodes_per_group();
    return layout_.inodes_per_group() -
           std::min(layout_.inodes_per_group(), ext2fs_bg_itable_unused(fs_, group));
  }

  Result<void> take_inodes(GroupNumber group) {
    const std::uint32_t end = table_end(group);
    const auto at_once = static_cast<std::uint32_t>(
        std::max<std::uint64_t>(kBytesAtOnce / layout_.inode_bytes(), 1));
    std::vector<std::byte> bytes;
    for (std::uint32_t from = 0; from < end; from += at_once) {
      const std::uint32_t count = std::min(at_once, end - from);
      const InodeNumber first = group * layout_.inodes_per_group() + from + 1;
      bytes.resize(std::size_t{count} * layout_.inode_bytes());
      const ByteRange range{layout_.inode_place(first).offset, bytes.size()};
      if (const Result<void> read = volume_.view().read(range, bytes); !read) return read;
      for (std::uint32_t i = 0; i < count; ++i) {
        const auto one =
            std::span(bytes).subspan(std::size_t{i} * layout_.inode_bytes(), layout_.inode_bytes());
        if (const Result<void> done = take_inode(first + i, one); !done) return done;
      }
      if (options_.progress) options_.progress(first + count - 1, layout_.inodes());
    }
    return {};
  }

  [[nodiscard]] bool is_reserved(InodeNumber number) const {
    return number < EXT2_FIRST_INODE(fs_->super) && number != EXT2_ROOT_INO;
  }

  Result<void> take_inode(InodeNumber number, std::span<std::byte> bytes) {
    const ExtInode inode(bytes);
    const bool reserved = is_reserved(number);
    // A small time of deletion is the number of the next orphan: it was not taken off their list.
    if (inode.deleted_at() != 0 && inode.deleted_at() < orphans_below_) {
      add({.code = Code::kInodeDeleted, .inode = number, .found = inode.links()});
    }
    if (inode.links() == 0 && !reserved) {
      if (inode.mode() != 0 && inode.deleted_at() == 0) {
        add({.code = Code::kInodeDeleted, .inode = number});
      }
      return {};
    }
    if (checksums_ &&
        std::ranges::any_of(bytes, [](std::byte each) { return each != std::byte{}; }) &&
        ext2fs_inode_csum_verify(fs_, number, reinterpret_cast<ext2_inode_large*>(bytes.data())) ==
            0) {
      add({.code = Code::kInodeChecksum, .inode = number});
    }
    if (reserved && inode.mode() == 0 && number != EXT2_BAD_INO) return {};
    const std::uint16_t extra = inode.extra_bytes();
    const bool extra_is_good =
        extra == 0 || (extra >= 4 && extra % 4 == 0 && extra <= layout_.inode_bytes() - 128);
    if (inode.has_fragment() || !extra_is_good) add({.code = Code::kInodeFields, .inode = number});
    if (inode.links() > 0 && inode.deleted_at() != 0) {
      add({.code = Code::kInodeDeleted, .inode = number, .found = 1});
    }
    if (!reserved || inode.links() > 0) {
      kinds_[number] = inode.type() != 0 ? inode.type() : kStrange;
      links_[number] = inode.links();
    }
    if (!reserved) {
      ++census_.inodes_in_use;
      if (inode.type() == 0) {
        return add({.code = Code::kInodeMode, .inode = number, .found = inode.mode()}),
               Result<void>{};
      }
    }
    return take_blocks(number, inode);
  }

  // The first block of an index says how it is made (struct ext2_dx_root_info).
  Result<void> check_index(InodeNumber number, const ExtInode& inode, const BlockMap& map) {
    const Finding bad{.code = Code::kInodeIndex, .inode = number};
    if (!inode.is_directory() || !ext2fs_has_feature_dir_index(fs_->super) || map.runs.empty() ||
        map.runs.front().logical != 0) {
      add(bad);
      return {};
    }
    auto bytes = read_block(map.runs.front().physical);
    if (!bytes) return bytes.error();
    const auto at = [&](std::size_t i) { return std::to_integer<unsigned>((*bytes)[24 + i]); };
    const unsigned levels_max = ext2fs_has_feature_largedir(fs_->super) ? 3 : 2;
    const bool good = load_le<std::uint32_t>(bytes->data() + 24) == 0 && at(4) <= EXT2_HASH_TEA &&
                      at(5) == 8 && at(6) < levels_max && (at(7) & 1) == 0;
    if (!good) add(bad);
    return {};
  }

  Result<void> take_blocks(InodeNumber number, const ExtInode& inode) {
    BlockMap map;
    if (number == EXT2_BAD_INO || has_block_map(inode.bytes())) {
      auto mapped = map_blocks(volume_, layout_, number, inode.bytes());
      if (!mapped) return mapped.error();
      map = std::move(*mapped);
    }
    for (const BlockMap::Fault& each : map.faults) {
      add({.code = Code::kInodeMap,
           .inode = number,
           .block = each.block,
           .found = static_cast<std::uint64_t>(each.what)});
    }
    for (const BlockMap::Run& run : map.runs) {
      for (std::uint64_t i = 0; i < run.count; ++i) claim(number, run.physical + i);
    }
    for (const BlockMap::Node& node : map.nodes) claim(number, node.block);
    if (inode.has_index()) {
      if (const Result<void> done = check_index(number, inode, map); !done) return done;
    }
    std::uint64_t blocks = map.blocks();
    if (inode.attributes() != 0) {
      if (const Result<void> done = take_attributes(number, inode.attributes()); !done) return done;
      ++blocks;
    }
    if (number == EXT2_BAD_INO) return {};
    const std::uint64_t unit = inode.in_large_blocks() ? layout_.block_bytes() : kSectorBytes;
    const std::uint64_t expected = blocks * layout_.block_bytes() / unit;
    if (map.faults.empty() && inode.blocks() != expected) {
      add({.code = Code::kInodeBlocks,
           .inode = number,
           .expected = expected,
           .found = inode.blocks()});
    }
    check_size(number, inode, map);
    if (inode.is_directory() && !is_reserved(number)) {
      ++census_.directories;
      directories_[number] = {
          .map = std::move(map), .size = inode.size(), .inlined = inode.has_inline_data()};
    }
    return {};
  }

  // What an inode's blocks can hold.
  [[nodiscard]] std::uint64_t size_max(const ExtInode& inode) const {
    const std::uint64_t block = layout_.block_bytes();
    if (inode.has_extents()) return (block << 32) - 1;
    const std::uint64_t numbers = block / 4;
    return (EXT2_NDIR_BLOCKS + numbers + numbers * numbers + numbers * numbers * numbers) * block;
  }

  void check_size(InodeNumber number, const ExtInode& inode, const BlockMap& map) {
    if (inode.type() == EXT2_FT_REG_FILE && inode.size() > size_max(inode)) {
      return add({.code = Code::kInodeSize,
                  .inode = number,
                  .expected = size_max(inode),
                  .found = inode.size()});
    }
    if (inode.has_inline_data() || map.runs.empty()) return;
    std::uint64_t end = 0;  // of what was written
    for (const BlockMap::Run& run : map.runs) {
      if (!run.unwritten) end = std::max(end, run.logical + run.count);
    }
    if (end == 0) return;
    const bool directory = inode.is_directory();
    const std::uint64_t least =
        directory ? end * layout_.block_bytes() : (end - 1) * layout_.block_bytes();
    const bool good = directory ? inode.size() == least : inode.size() >= least;
    if (good || is_reserved(number) || inode.type() == EXT2_FT_SYMLINK) return;
    add({.code = Code::kInodeSize, .inode = number, .expected = least, .found = inode.size()});
  }

  // Inodes may share them.
  Result<void> take_attributes(InodeNumber number, FsBlock block) {
    if (!layout_.may_claim(block)) {
      add({.code = Code::kAttributes, .inode = number, .block = block});
      return {};
    }
    if (const auto known = attributes_.find(block); known != attributes_.end()) {
      ++known->second.inodes;
      return {};
    }
    claim(number, block);
    std::vector<std::byte> bytes(layout_.block_bytes());
    const auto read = volume_.view().read(layout_.bytes_of(block), bytes);
    if (!read) return read;
    const bool good =
        load_le<std::uint32_t>(bytes.data()) == kAttributesMagic &&
        (!checksums_ ||
         ext2fs_ext_attr_block_csum_verify(
             fs_, number, block, reinterpret_cast<ext2_ext_attr_header*>(bytes.data())) != 0);
    if (!good) add({.code = Code::kAttributes, .inode = number, .block = block});
    attributes_[block] = {1, load_le<std::uint32_t>(bytes.data() + 4), good};
    return {};
  }

  void check_attribute_counts() {
    for (const auto& [block, each] : attributes_) {
      if (!each.good || each.inodes == each.said) continue;
      add({.code = Code::kAttributeCount,
           .block = block,
           .expected = each.inodes,
           .found = each.said});
    }
  }

  // ---- directories

  Result<void> take_directories() {
    std::vector<Lbn> wanted;
    auto ahead = directories_.begin();
    for (auto each = directories_.begin(); each != directories_.end(); ++each) {
      if (each == ahead) {
        wanted.clear();
        for (; ahead != directories_.end() && wanted.size() * kBlockBytes < kBytesAtOnce; ++ahead) {
          for (const BlockMap::Run& run : ahead->second.map.runs) want(run, wanted);
        }
        if (const Result<void> fetched = volume_.view().prefetch(wanted); !fetched) return fetched;
      }
      const Result<void> done = each->second.inlined ? take_inlined(each->first, each->second)
                                                     : take_directory(each->first, each->second);
      if (!done) return done;
    }
    return {};
  }

  void want(const BlockMap::Run& run, std::vector<Lbn>& wanted) const {
    const ByteRange bytes{run.physical * layout_.block_bytes(), run.count * layout_.block_bytes()};
    const BlockRange range = bytes.covering_blocks();
    for (Lbn lbn = range.first; lbn < range.end() && wanted.size() * kBlockBytes < kBytesAtOnce;
         lbn = lbn + BlockCount{1}) {
      wanted.push_back(lbn);
    }
  }

  Result<void> take_directory(InodeNumber number, Directory& directory) {
    std::vector<std::byte> bytes(layout_.block_bytes());
    std::uint64_t next = 0;
    for (const BlockMap::Run& run : directory.map.runs) {
      if (run.logical != next) add({.code = Code::kDirectoryHole, .inode = number});
      next = run.logical + run.count;
      for (std::uint64_t i = 0; i < run.count; ++i) {
        const FsBlock block = run.physical + i;
        const auto read = volume_.view().read(layout_.bytes_of(block), bytes);
        if (!read) return read;
        take_directory_block(number, directory, block, run.logical + i, bytes);
      }
    }
    if (next == 0 || directory.map.runs.front().logical != 0) {
      add({.code = Code::kDots, .inode = number});
    }
    return {};
  }

  void take_directory_block(InodeNumber number, Directory& directory, FsBlock block,
                            std::uint64_t logical, std::span<std::byte> bytes) {
    std::uint32_t index = 0;
    bool good = for_each_entry(bytes, [&](const DirectoryEntry& entry) {
      if (logical == 0 && index < 2) {
        take_dot(number, directory, entry, index == 0);
      } else if (entry.inode != 0) {
        take_entry(number, entry.inode, entry.type, entry.name);
      }
      ++index;
    });
    good = good &&
           (!checksums_ || ext2fs_dir_block_csum_verify(
                               fs_, number, reinterpret_cast<ext2_dir_entry*>(bytes.data())) != 0);
    if (!good) add({.code = Code::kDirectoryBlock, .inode = number, .block = block});
    if (logical == 0 && index < 2) add({.code = Code::kDots, .inode = number});
  }

  void take_dot(InodeNumber number, Directory& directory, const DirectoryEntry& entry, bool first) {
    const std::string_view expected = first ? "." : "..";
    if (entry.name != expected || (first && entry.inode != number) || entry.inode == 0 ||
        entry.inode > layout_.inodes()) {
      return add({.code = Code::kDots, .inode = number});
    }
    if (!first) directory.dotdot = entry.inode;
    ++names_[entry.inode];
  }

  void take_entry(InodeNumber number, InodeNumber inode, std::uint8_t type, std::string_view name) {
    if (name.empty() || name.find('/') != std::string_view::npos || name == "." || name == "..") {
      add({.code = Code::kEntryName, .inode = number});
    }
    const bool possible = inode <= layout_.inodes() && !is_reserved(inode);
    if (!possible || kinds_[inode] == 0) {
      return add({.code = Code::kEntryInode, .inode = number, .found = inode});
    }
    ++names_[inode];
    if (ext2fs_has_feature_filetype(fs_->super) && type != kinds_[inode]) {
      add({.code = Code::kEntryType, .inode = number, .expected = kinds_[inode], .found = type});
    }
    if (const auto found = directories_.find(inode); found != directories_.end()) {
      ++found->second.names;
      found->second.parent = number;
    }
  }

  struct Inlined {
    Taker* taker;
    InodeNumber number;
    Directory* directory;
    std::uint32_t index = 0;
  };

  static int tell_inlined(ext2_ino_t /*inode*/, int /*kind*/, ext2_dir_entry* entry, int /*offset*/,
                          int /*bytes*/, char* /*buffer*/, void* to) {
    auto& one = *static_cast<Inlined*>(to);
    const std::string_view name{entry->name,
                                static_cast<std::size_t>(ext2fs_dirent_name_len(entry))};
    const auto type = static_cast<std::uint8_t>(ext2fs_dirent_file_type(entry));
    if (one.index < 2) {
      one.taker->take_dot(one.number, *one.directory,
                          {.inode = entry->inode, .type = type, .name = name}, one.index == 0);
    } else if (entry->inode != 0) {
      one.taker->take_entry(one.number, entry->inode, type, name);
    }
    ++one.index;
    return 0;
  }

  // Entries within the inode itself: libext2fs puts them together.
  Result<void> take_inlined(InodeNumber number, Directory& directory) {
    Inlined one{this, number, &directory};
    const errcode_t error =
        ext2fs_dir_iterate2(fs_, number, DIRENT_FLAG_INCLUDE_EMPTY, nullptr, tell_inlined, &one);
    if (error == EIO) return Error{ErrorCode::kIo, "ext2/3/4: " + ext_error_text(error)};
    if (error != 0) add({.code = Code::kDirectoryBlock, .inode = number});
    if (one.index < 2) add({.code = Code::kDots, .inode = number});
    return {};
  }

  // ---- how they hang together

  void check_tree() {
    const auto root = directories_.find(EXT2_ROOT_INO);
    if (root == directories_.end()) {
      add({.code = Code::kRoot});
    } else {
      if (root->second.names != 0) {
        add({.code = Code::kDirectoryLinked, .inode = EXT2_ROOT_INO, .found = root->second.names});
      }
      root->second.parent = EXT2_ROOT_INO;
      root->second.names = 1;
    }
    std::unordered_map<InodeNumber, bool> reached{{EXT2_ROOT_INO, true}};
    for (const auto& [number, directory] : directories_) {
      if (number != EXT2_ROOT_INO && directory.names > 1) {
        add({.code = Code::kDirectoryLinked, .inode = number, .found = directory.names});
      }
      if (directory.names > 0 && directory.dotdot != 0 && directory.dotdot != directory.parent) {
        add({.code = Code::kParent,
             .inode = number,
             .expected = directory.parent,
             .found = directory.dotdot});
      }
      if (!reach(number, reached)) add({.code = Code::kUnreachable, .inode = number});
    }
  }

  // Up to where it is known.
  bool reach(InodeNumber number, std::unordered_map<InodeNumber, bool>& reached) {
    std::vector<InodeNumber> path;
    bool good = false;
    for (InodeNumber each = number;;) {
      const auto known = reached.find(each);
      if (known != reached.end()) {
        good = known->second;
        break;
      }
      const auto found = directories_.find(each);
      if (found == directories_.end() || found->second.names == 0) {
        path.push_back(each);
        break;
      }
      reached[each] = false;  // a circle leads nowhere
      path.push_back(each);
      each = found->second.parent;
    }
    for (const InodeNumber each : path) reached[each] = good;
    return good;
  }

  void check_links() {
    for (InodeNumber number = 1; number <= layout_.inodes(); ++number) {
      if (kinds_[number] == 0 || is_reserved(number)) continue;
      const bool directory = kinds_[number] == EXT2_FT_DIR;
      if (names_[number] == 0 || (directory && number != EXT2_ROOT_INO && !has_name(number))) {
        // (Who has only "." is as lost.)
        add({.code = Code::kUnattached, .inode = number});
        continue;
      }
      std::uint64_t expected = names_[number];
      const bool uncounted =
          directory && ext2fs_has_feature_dir_nlink(fs_->super) && links_[number] == 1;
      if (uncounted || (directory && expected > kLinksMax)) expected = 1;
      if (links_[number] == expected) continue;
      add({.code = Code::kLinks, .inode = number, .expected = expected, .found = links_[number]});
    }
  }

  [[nodiscard]] bool has_name(InodeNumber number) const {
    const auto found = directories_.find(number);
    return found != directories_.end() && found->second.names > 0;
  }

  // ---- bitmaps and counts

  Result<void> check_group(GroupNumber group) {
    if (ext2fs_has_group_desc_csum(fs_) != 0 && ext2fs_group_desc_csum_verify(fs_, group) == 0) {
      add({.code = Code::kGroupChecksum, .group = group});
    }
    if (const Result<void> done = check_block_bitmap(group); !done) return done;
    return check_inode_bitmap(group);
  }

  Result<std::vector<std::byte>> read_block(FsBlock block) {
    std::vector<std::byte> bytes(layout_.block_bytes());
    const auto read = volume_.view().read(layout_.bytes_of(block), bytes);
    if (!read) return read.error();
    return bytes;
  }

  static bool bit_of(std::span<const std::byte> bytes, std::uint64_t bit) {
    return (std::to_integer<unsigned>(bytes[bit / 8]) >> (bit % 8) & 1) != 0;
  }

  Result<void> check_block_bitmap(GroupNumber group) {
    const FsBlock first = ext2fs_group_first_block2(fs_, group);
    const FsBlock last = ext2fs_group_last_block2(fs_, group);
    std::uint64_t free_blocks = 0;
    const bool uninitialized = is_uninitialized(group, EXT2_BG_BLOCK_UNINIT);
    auto bitmap = read_block(ext2fs_block_bitmap_loc(fs_, group));
    if (!bitmap) return bitmap.error();
    if (!uninitialized && checksums_ &&
        ext2fs_block_bitmap_csum_verify(fs_, group, reinterpret_cast<char*>(bitmap->data()),
                                        static_cast<int>(super_.s_clusters_per_group / 8)) == 0) {
      add({.code = Code::kBlockBitmapChecksum, .group = group});
    }
    for (FsBlock block = first; block <= last; ++block) {
      const bool used = is_used(block);
      free_blocks += used ? 0 : 1;
      // What is not initialized has structures alone.
      const bool marked = uninitialized ? layout_.place_of(block).kind != ExtLayout::Kind::kData
                                        : bit_of(*bitmap, block - first);
      if (used == marked) continue;
      add({.code = Code::kBlockMarked,
           .block = block,
           .group = group,
           .expected = used,
           .found = marked});
    }
    if (!uninitialized) {
      check_padding(group, ext2fs_block_bitmap_loc(fs_, group), *bitmap, last - first + 1,
                    std::uint64_t{layout_.block_bytes()} * 8);
    }
    count_in(group, Code::kFreeBlocks, free_blocks, ext2fs_bg_free_blocks_count(fs_, group));
    free_blocks_ += free_blocks;
    return {};
  }

  void check_padding(GroupNumber group, FsBlock block, std::span<const std::byte> bitmap,
                     std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t bit = from; bit < to; ++bit) {
      if (bit_of(bitmap, bit)) continue;
      return add({.code = Code::kPadding, .block = block, .group = group});
    }
  }

  void count_in(GroupNumber group, Code code, std::uint64_t expected, std::uint64_t found) {
    if (expected != found) {
      add({.code = code, .group = group, .expected = expected, .found = found});
    }
  }

  Result<void> check_inode_bitmap(GroupNumber group) {
    const bool uninitialized = is_uninitialized(group, EXT2_BG_INODE_UNINIT);
    auto bitmap = read_block(ext2fs_inode_bitmap_loc(fs_, group));
    if (!bitmap) return bitmap.error();
    if (!uninitialized && checksums_ &&
        ext2fs_inode_bitmap_csum_verify(fs_, group, reinterpret_cast<char*>(bitmap->data()),
                                        static_cast<int>(layout_.inodes_per_group() / 8)) == 0) {
      add({.code = Code::kInodeBitmapChecksum, .group = group});
    }
    std::uint64_t free_inodes = 0;
    std::uint64_t directories = 0;
    for (std::uint32_t i = 0; i < layout_.inodes_per_group(); ++i) {
      const InodeNumber number = group * layout_.inodes_per_group() + i + 1;
      const bool used = kinds_[number] != 0 || is_reserved(number);
      const bool marked = !uninitialized && bit_of(*bitmap, i);
      free_inodes += used ? 0 : 1;
      directories += kinds_[number] == EXT2_FT_DIR && !is_reserved(number) ? 1 : 0;
      if (used == marked) continue;
      add({.code = Code::kInodeMarked,
           .inode = number,
           .group = group,
           .expected = used,
           .found = marked});
    }
    if (!uninitialized) {
      check_padding(group, ext2fs_inode_bitmap_loc(fs_, group), *bitmap, layout_.inodes_per_group(),
                    std::uint64_t{layout_.block_bytes()} * 8);
    }
    count_in(group, Code::kFreeInodes, free_inodes, ext2fs_bg_free_inodes_count(fs_, group));
    count_in(group, Code::kDirectories, directories, ext2fs_bg_used_dirs_count(fs_, group));
    free_inodes_ += free_inodes;
    return {};
  }

  void check_totals() {
    count_in(Finding::kAll, Code::kFreeBlocks, free_blocks_, ext2fs_free_blocks_count(fs_->super));
    count_in(Finding::kAll, Code::kFreeInodes, free_inodes_, super_.s_free_inodes_count);
  }

  static constexpr std::uint8_t kStrange = 255;  // in use, and of no kind that there is

  struct Attributes {
    std::uint32_t inodes = 0;
    std::uint32_t said = 0;
    bool good = false;
  };

  const ExtVolume& volume_;
  const ext2_filsys fs_;
  const ext2_super_block& super_;
  const ExtLayout& layout_;
  const Census::Options& options_;
  const bool checksums_;
  const std::uint32_t orphans_below_;
  Census census_;
  std::vector<std::uint8_t> kinds_;   // by inode: EXT2_FT_*; 0: not in use
  std::vector<std::uint16_t> links_;  // ... as it says
  std::vector<std::uint32_t> names_;  // ... that were found, "." and ".." included
  std::vector<std::uint64_t> used_;   // a bit for each block
  std::map<InodeNumber, Directory> directories_;
  std::unordered_map<FsBlock, Attributes> attributes_;
  std::uint64_t free_blocks_ = 0;
  std::uint64_t free_inodes_ = 0;
};

}  // namespace

Result<Census> Census::take(const ExtVolume& volume, const ExtLayout& layout,
                            const Options& options) {
  if (const Result<void> known = check_features(*volume.fs()->super); !known) return known.error();
  return Taker(volume, layout, options).take();
}

}  // namespace mariner::ifsck

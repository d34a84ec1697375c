#include "ifsck/directory_reader.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ifsck/directory_block.h"
#include "ifsck/directory_index.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;

// Of a directory's blocks, asked for at a time.
constexpr std::size_t kBlocksAtOnce = 1024;
constexpr std::size_t kNamesAtFirst = 256;  // a power of two

// Names of one block, told from each other by their hashes first. It takes no memory once it has
// had a block.
class NameSet {
 public:
  void clear() {
    ++round_;
    count_ = 0;
  }
  // False: it is there.
  bool insert(std::string_view name) {
    if (2 * count_ >= slots_.size()) grow();
    const std::size_t hash = std::hash<std::string_view>()(name);
    for (std::size_t at = hash;; ++at) {
      Slot& slot = slots_[at & (slots_.size() - 1)];
      if (slot.round != round_) {
        slot = {name, hash, round_};
        ++count_;
        return true;
      }
      if (slot.hash == hash && slot.name == name) return false;
    }
  }

 private:
  struct Slot {
    std::string_view name;
    std::size_t hash = 0;
    std::uint64_t round = 0;  // 0: never
  };
  void grow() {
    const std::vector<Slot> old = std::exchange(
        slots_, std::vector<Slot>(std::max<std::size_t>(2 * slots_.size(), kNamesAtFirst)));
    for (const Slot& each : old) {
      if (each.round != round_) continue;
      std::size_t at = each.hash;
      while (slots_[at & (slots_.size() - 1)].round == round_) ++at;
      slots_[at & (slots_.size() - 1)] = each;
    }
  }

  std::vector<Slot> slots_;  // a power of two of them
  std::size_t count_ = 0;
  std::uint64_t round_ = 1;
};

class Reader {
 public:
  Reader(const ExtContext& context, const DirectoryBlocks& directory, DirectoryVisitor& visitor)
      : context_(context),
        number_(directory.number),
        trusted_(directory.trusted),
        visitor_(visitor) {}

  Result<void> read(const BlockMap& map,
                    const std::function<bool(std::uint64_t, FsBlock)>& wanted) {
    std::vector<Piece> pieces;
    std::uint64_t next = 0;
    for (const BlockMap::Run& run : map.runs) {
      if (run.logical != next) found(Code::kDirectoryHole);
      next = run.logical + run.count;
      for (std::uint64_t i = 0; i < run.count; ++i) {
        if (!wanted(run.logical + i, run.physical + i)) continue;
        pieces.push_back({run.logical + i, run.physical + i});
        if (pieces.size() < kBlocksAtOnce) continue;
        if (const Result<void> done = take(pieces); !done) return done;
        pieces.clear();
      }
    }
    if (next == 0 || map.runs.front().logical != 0) found(Code::kDots);
    return take(pieces);
  }

  // Whether names are where their hashes belong. (Who has a hole has no order to begin with.)
  Result<void> check_index(const BlockMap& map,
                           const std::function<bool(std::uint64_t, FsBlock)>& wanted) {
    std::vector<Piece> all;
    std::uint64_t next = 0;
    bool any = false;
    for (const BlockMap::Run& run : map.runs) {
      if (run.logical != next) return {};
      next = run.logical + run.count;
      for (std::uint64_t i = 0; i < run.count; ++i) {
        all.push_back({run.logical + i, run.physical + i});
        any = any || wanted(run.logical + i, run.physical + i);
      }
    }
    if (!any) return {};
    const auto index = DirectoryIndex::read(context_, map);
    if (!index) return index.error();
    bool good = index->good();
    if (good) {
      const bool whole = std::ranges::any_of(all, [&](const Piece& each) {
        return index->is_node(each.logical) && wanted(each.logical, each.block);
      });
      std::erase_if(all, [&](const Piece& each) {
        return index->is_node(each.logical) || !(whole || wanted(each.logical, each.block));
      });
      const auto done = for_each_block(all, [&](const Piece& piece, std::span<std::byte> bytes) {
        for_each_entry(bytes, [&](const DirectoryEntry& entry) {
          good = good && (entry.inode == 0 || index->may_have(piece.logical, entry.name));
        });
      });
      if (!done) return done;
    }
    if (!good) found(Code::kInodeIndex);
    return {};
  }

  // libext2fs puts them together.
  Result<void> read_inlined() {
    inlined_ = true;
    const errcode_t error = ext2fs_dir_iterate2(context_.fs, number_, DIRENT_FLAG_INCLUDE_EMPTY,
                                                nullptr, tell_inlined, this);
    if (error == EIO) return Error{ErrorCode::kIo, "ext2/3/4: " + ext_error_text(error)};
    if (error != 0) found(Code::kDirectoryBlock);
    if (index_ < 2) found(Code::kDots);
    return {};
  }

 private:
  struct Piece {
    std::uint64_t logical = 0;
    FsBlock block = 0;
  };

  void found(Code code, FsBlock block = 0) {
    visitor_.found({.code = code, .inode = number_, .block = block});
  }

  Result<void> take(const std::vector<Piece>& pieces) {
    return for_each_block(
        pieces, [this](const Piece& each, std::span<std::byte> bytes) { take_block(each, bytes); });
  }

  Result<void> for_each_block(
      std::span<const Piece> pieces,
      const std::function<void(const Piece&, std::span<std::byte>)>& visit) {
    for (; pieces.size() > kBlocksAtOnce; pieces = pieces.subspan(kBlocksAtOnce)) {
      const auto done = for_each_block(pieces.first(kBlocksAtOnce), visit);
      if (!done) return done;
    }
    std::vector<Lbn> blocks;
    for (const Piece& each : pieces) {
      const BlockRange range = context_.layout.bytes_of(each.block).covering_blocks();
      for (Lbn lbn = range.first; lbn < range.end(); lbn = lbn + BlockCount{1}) {
        blocks.push_back(lbn);
      }
    }
    if (const Result<void> done = context_.volume.view().prefetch(blocks); !done) return done;
    std::vector<std::byte> bytes(context_.layout.block_bytes());
    for (const Piece& each : pieces) {
      const auto read = context_.volume.view().read(context_.layout.bytes_of(each.block), bytes);
      if (!read) return read;
      visit(each, bytes);
    }
    return {};
  }

  void take_block(const Piece& piece, std::span<std::byte> bytes) {
    index_ = 0;
    names_.clear();
    bool good = for_each_entry(
        bytes, [&](const DirectoryEntry& entry) { take_entry(piece.logical == 0, entry); });
    good = good && (trusted_ || !context_.checksums || has_right_checksum(bytes));
    if (!good) found(Code::kDirectoryBlock, piece.block);
    if (piece.logical == 0 && index_ < 2) found(Code::kDots);
  }

  // (libext2fs reads the inode's generation for it, and when it has met a damaged inode it may have
  // kept the wrong bytes for this one.)
  bool has_right_checksum(std::span<std::byte> bytes) {
    auto* const entry = reinterpret_cast<ext2_dir_entry*>(bytes.data());
    if (ext2fs_dir_block_csum_verify(context_.fs, number_, entry) != 0) return true;
    (void)ext2fs_flush_icache(context_.fs);
    return ext2fs_dir_block_csum_verify(context_.fs, number_, entry) != 0;
  }

  void take_entry(bool with_dots, const DirectoryEntry& entry) {
    if (with_dots && index_ < 2) {
      take_dot(entry);
    } else if (entry.inode != 0) {
      if (!trusted_) check_name(entry.name);
      visitor_.entry(entry.inode, entry.type, entry.name);
    }
    ++index_;
  }

  void check_name(std::string_view name) {
    const bool has_null = name.find('\0') != std::string_view::npos &&
                          !ext2fs_has_feature_encrypt(context_.fs->super);
    // (Of one block; an entry within an inode is gone when the next one is told.)
    const bool repeated = !inlined_ && !names_.insert(name);
    if (name.empty() || has_null || repeated || name.find('/') != std::string_view::npos ||
        name == "." || name == "..") {
      found(Code::kEntryName);
    }
  }

  void take_dot(const DirectoryEntry& entry) {
    const bool parent = index_ == 1;
    if (entry.name != (parent ? ".." : ".") || (!parent && entry.inode != number_) ||
        entry.inode == 0 || entry.inode > context_.layout.inodes()) {
      return found(Code::kDots);
    }
    if (!inlined_ && !is_right_dot(entry)) found(Code::kDots);
    visitor_.dot(entry.inode, parent);
  }

  // It is of a directory, if it says of what, and a zero is behind its name. (There is always room
  // for one.)
  [[nodiscard]] bool is_right_dot(const DirectoryEntry& entry) const {
    const bool typed = ext2fs_has_feature_filetype(context_.fs->super) != 0;
    return entry.name.data()[entry.name.size()] == '\0' &&
           (!typed || entry.type == EXT2_FT_DIR || entry.type == EXT2_FT_UNKNOWN);
  }

  static int tell_inlined(ext2_ino_t /*inode*/, int /*kind*/, ext2_dir_entry* entry, int /*offset*/,
                          int /*bytes*/, char* /*buffer*/, void* to) {
    static_cast<Reader*>(to)->take_entry(
        true, {.inode = entry->inode,
               .type = static_cast<std::uint8_t>(ext2fs_dirent_file_type(entry)),
               .name = {entry->name, static_cast<std::size_t>(ext2fs_dirent_name_len(entry))}});
    return 0;
  }

  const ExtContext& context_;
  const InodeNumber number_;
  const bool trusted_;
  DirectoryVisitor& visitor_;
  std::uint32_t index_ = 0;  // of the entry in its block
  bool inlined_ = false;
  NameSet names_;  // in this block
};

}  // namespace

Result<void> read_directory(const ExtContext& context, const DirectoryBlocks& directory,
                            const std::function<bool(std::uint64_t, FsBlock)>& wanted,
                            DirectoryVisitor& visitor) {
  Reader reader(context, directory, visitor);
  if (directory.inlined) return reader.read_inlined();
  if (const Result<void> done = reader.read(*directory.map, wanted); !done) return done;
  return directory.indexed && !directory.trusted ? reader.check_index(*directory.map, wanted)
                                                 : Result<void>{};
}

}  // namespace mariner::ifsck

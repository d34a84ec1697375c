#include "ifsck/directory_scan.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "ifsck/directory_block.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;

// Of directories' blocks, asked for at a time.
constexpr std::uint64_t kBytesAtOnce = 4u << 20;
// Directories of more subdirectories do not count them (dir_nlink).
constexpr std::uint32_t kLinksMax = 65000;

class Scan {
 public:
  explicit Scan(CensusFacts& facts) : facts_(facts) {}

  Result<void> run() {
    if (const Result<void> done = take_directories(); !done) return done;
    check_tree();
    check_links();
    return {};
  }

 private:
  Result<void> take_directories() {
    std::vector<Lbn> wanted;
    auto ahead = facts_.directories.begin();
    for (auto each = facts_.directories.begin(); each != facts_.directories.end(); ++each) {
      if (each == ahead) {
        wanted.clear();
        for (; ahead != facts_.directories.end() && wanted.size() * kBlockBytes < kBytesAtOnce;
             ++ahead) {
          for (const BlockMap::Run& run : ahead->second.map.runs) want(run, wanted);
        }
        if (const Result<void> fetched = facts_.volume.view().prefetch(wanted); !fetched)
          return fetched;
      }
      const Result<void> done = each->second.inlined ? take_inlined(each->first, each->second)
                                                     : take_directory(each->first, each->second);
      if (!done) return done;
    }
    return {};
  }

  void want(const BlockMap::Run& run, std::vector<Lbn>& wanted) const {
    const ByteRange bytes{run.physical * facts_.layout.block_bytes(),
                          run.count * facts_.layout.block_bytes()};
    const BlockRange range = bytes.covering_blocks();
    for (Lbn lbn = range.first; lbn < range.end() && wanted.size() * kBlockBytes < kBytesAtOnce;
         lbn = lbn + BlockCount{1}) {
      wanted.push_back(lbn);
    }
  }

  Result<void> take_directory(InodeNumber number, CensusFacts::Directory& directory) {
    std::vector<std::byte> bytes(facts_.layout.block_bytes());
    const std::uint64_t blocks_at_once = kBytesAtOnce / facts_.layout.block_bytes();
    std::uint64_t next = 0;
    for (const BlockMap::Run& run : directory.map.runs) {
      if (run.logical != next) facts_.add({.code = Code::kDirectoryHole, .inode = number});
      next = run.logical + run.count;
      for (std::uint64_t i = 0; i < run.count; ++i) {
        const FsBlock block = run.physical + i;
        // (Most are there already.)
        if (i % blocks_at_once == 0) {
          std::vector<Lbn> wanted;
          want({run.logical + i, block, std::min(run.count - i, blocks_at_once)}, wanted);
          const auto fetched = facts_.volume.view().prefetch(wanted);
          if (!fetched) return fetched;
        }
        const auto read = facts_.volume.view().read(facts_.layout.bytes_of(block), bytes);
        if (!read) return read;
        take_directory_block(number, directory, block, run.logical + i, bytes);
      }
    }
    if (next == 0 || directory.map.runs.front().logical != 0) {
      facts_.add({.code = Code::kDots, .inode = number});
    }
    return {};
  }

  void take_directory_block(InodeNumber number, CensusFacts::Directory& directory, FsBlock block,
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
    good = good && (!facts_.checksums ||
                    ext2fs_dir_block_csum_verify(
                        facts_.fs, number, reinterpret_cast<ext2_dir_entry*>(bytes.data())) != 0);
    if (!good) facts_.add({.code = Code::kDirectoryBlock, .inode = number, .block = block});
    if (logical == 0 && index < 2) facts_.add({.code = Code::kDots, .inode = number});
  }

  void take_dot(InodeNumber number, CensusFacts::Directory& directory, const DirectoryEntry& entry,
                bool first) {
    const std::string_view expected = first ? "." : "..";
    if (entry.name != expected || (first && entry.inode != number) || entry.inode == 0 ||
        entry.inode > facts_.layout.inodes()) {
      return facts_.add({.code = Code::kDots, .inode = number});
    }
    if (!first) directory.dotdot = entry.inode;
    ++facts_.names[entry.inode];
  }

  void take_entry(InodeNumber number, InodeNumber inode, std::uint8_t type, std::string_view name) {
    if (name.empty() || name.find('/') != std::string_view::npos || name == "." || name == "..") {
      facts_.add({.code = Code::kEntryName, .inode = number});
    }
    const bool possible = inode <= facts_.layout.inodes() && !facts_.is_reserved(inode);
    if (!possible || facts_.kinds[inode] == 0) {
      return facts_.add({.code = Code::kEntryInode, .inode = number, .found = inode});
    }
    ++facts_.names[inode];
    if (ext2fs_has_feature_filetype(facts_.fs->super) && type != facts_.kinds[inode]) {
      facts_.add({.code = Code::kEntryType,
                  .inode = number,
                  .expected = facts_.kinds[inode],
                  .found = type});
    }
    if (const auto found = facts_.directories.find(inode); found != facts_.directories.end()) {
      ++found->second.names;
      found->second.parent = number;
    }
  }

  struct Inlined {
    Scan* scan;
    InodeNumber number;
    CensusFacts::Directory* directory;
    std::uint32_t index = 0;
  };

  static int tell_inlined(ext2_ino_t /*inode*/, int /*kind*/, ext2_dir_entry* entry, int /*offset*/,
                          int /*bytes*/, char* /*buffer*/, void* to) {
    auto& one = *static_cast<Inlined*>(to);
    const std::string_view name{entry->name,
                                static_cast<std::size_t>(ext2fs_dirent_name_len(entry))};
    const auto type = static_cast<std::uint8_t>(ext2fs_dirent_file_type(entry));
    if (one.index < 2) {
      one.scan->take_dot(one.number, *one.directory,
                         {.inode = entry->inode, .type = type, .name = name}, one.index == 0);
    } else if (entry->inode != 0) {
      one.scan->take_entry(one.number, entry->inode, type, name);
    }
    ++one.index;
    return 0;
  }

  // Entries within the inode itself: libext2fs puts them together.
  Result<void> take_inlined(InodeNumber number, CensusFacts::Directory& directory) {
    Inlined one{this, number, &directory};
    const errcode_t error = ext2fs_dir_iterate2(facts_.fs, number, DIRENT_FLAG_INCLUDE_EMPTY,
                                                nullptr, tell_inlined, &one);
    if (error == EIO) return Error{ErrorCode::kIo, "ext2/3/4: " + ext_error_text(error)};
    if (error != 0) facts_.add({.code = Code::kDirectoryBlock, .inode = number});
    if (one.index < 2) facts_.add({.code = Code::kDots, .inode = number});
    return {};
  }

  // ---- how they hang together

  void check_tree() {
    const auto root = facts_.directories.find(EXT2_ROOT_INO);
    if (root == facts_.directories.end()) {
      facts_.add({.code = Code::kRoot});
    } else {
      if (root->second.names != 0) {
        facts_.add(
            {.code = Code::kDirectoryLinked, .inode = EXT2_ROOT_INO, .found = root->second.names});
      }
      root->second.parent = EXT2_ROOT_INO;
      root->second.names = 1;
    }
    std::unordered_map<InodeNumber, bool> reached{{EXT2_ROOT_INO, true}};
    for (const auto& [number, directory] : facts_.directories) {
      if (number != EXT2_ROOT_INO && directory.names > 1) {
        facts_.add({.code = Code::kDirectoryLinked, .inode = number, .found = directory.names});
      }
      if (directory.names > 0 && directory.dotdot != 0 && directory.dotdot != directory.parent) {
        facts_.add({.code = Code::kParent,
                    .inode = number,
                    .expected = directory.parent,
                    .found = directory.dotdot});
      }
      if (!reach(number, reached)) facts_.add({.code = Code::kUnreachable, .inode = number});
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
      const auto found = facts_.directories.find(each);
      if (found == facts_.directories.end() || found->second.names == 0) {
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
    for (InodeNumber number = 1; number <= facts_.layout.inodes(); ++number) {
      if (facts_.kinds[number] == 0 || facts_.is_reserved(number)) continue;
      const bool directory = facts_.kinds[number] == EXT2_FT_DIR;
      if (facts_.names[number] == 0 ||
          (directory && number != EXT2_ROOT_INO && !has_name(number))) {
        // (Who has only "." is as lost.)
        facts_.add({.code = Code::kUnattached, .inode = number});
        continue;
      }
      std::uint64_t expected = facts_.names[number];
      const bool uncounted =
          directory && ext2fs_has_feature_dir_nlink(facts_.fs->super) && facts_.links[number] == 1;
      if (uncounted || (directory && expected > kLinksMax)) expected = 1;
      if (facts_.links[number] == expected) continue;
      facts_.add({.code = Code::kLinks,
                  .inode = number,
                  .expected = expected,
                  .found = facts_.links[number]});
    }
  }

  [[nodiscard]] bool has_name(InodeNumber number) const {
    const auto found = facts_.directories.find(number);
    return found != facts_.directories.end() && found->second.names > 0;
  }

  CensusFacts& facts_;
};

}  // namespace

Result<void> scan_directories(CensusFacts& facts) { return Scan(facts).run(); }

}  // namespace mariner::ifsck

#include "ifsck/directory_scan.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "ifsck/directory_reader.h"

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
      const Result<void> done = take_directory(each->first, each->second);
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

  // What one directory's entries say, as they are read.
  class Taking final : public DirectoryVisitor {
   public:
    Taking(CensusFacts& facts, InodeNumber number, CensusFacts::Directory& directory)
        : facts_(facts), number_(number), directory_(directory) {}

    void found(const Finding& finding) override { facts_.add(finding); }
    void dot(InodeNumber inode, bool parent) override {
      if (parent) directory_.dotdot = inode;
      ++facts_.names[inode];
    }
    void entry(InodeNumber inode, std::uint8_t type, std::string_view /*name*/) override {
      const bool possible = inode <= facts_.layout.inodes() && !facts_.is_reserved(inode);
      if (!possible || facts_.kinds[inode] == 0) {
        return facts_.add({.code = Code::kEntryInode, .inode = number_, .found = inode});
      }
      ++facts_.names[inode];
      if (ext2fs_has_feature_filetype(facts_.fs->super) && type != facts_.kinds[inode]) {
        facts_.add({.code = Code::kEntryType,
                    .inode = number_,
                    .expected = facts_.kinds[inode],
                    .found = type});
      }
      if (const auto found = facts_.directories.find(inode); found != facts_.directories.end()) {
        ++found->second.names;
        found->second.parent = number_;
      }
    }

   private:
    CensusFacts& facts_;
    const InodeNumber number_;
    CensusFacts::Directory& directory_;
  };

  Result<void> take_directory(InodeNumber number, CensusFacts::Directory& directory) {
    Taking taking(facts_, number, directory);
    return read_directory(
        facts_,
        {.number = number,
         .map = &directory.map,
         .inlined = directory.inlined,
         .indexed = directory.indexed},
        [](std::uint64_t, FsBlock) { return true; }, taking);
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

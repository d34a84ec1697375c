#include "ifsck/name_ledger.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ifsck/directory_reader.h"
#include "ifsck/ext_inode.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;

// Directories of more subdirectories do not count them (dir_nlink).
constexpr std::int64_t kLinksMax = 65000;

class Ledger {
 public:
  Ledger(const MomentChange& change, RecheckMemory& memory,
         const std::function<void(const Finding&)>& found)
      : change_(change), memory_(memory), found_(found) {}

  Result<void> run() {
    if (const Result<void> done = read_directories(); !done) return done;
    if (const Result<void> done = prefetch_named(); !done) return done;
    for (const Entry& each : entries_) {
      if (const Result<void> done = judge(each); !done) return done;
    }
    for (const auto& [number, inode] : change_.inodes) names_[number];
    for (auto& [number, names] : names_) {
      if (const Result<void> done = judge(number, names); !done) return done;
    }
    for (const auto& [number, parent] : parents_) {
      const auto reached = reach(number);
      if (!reached) return reached.error();
      if (!*reached) found_({.code = Code::kUnreachable, .inode = number});
    }
    return {};
  }

 private:
  // Of an inode: in the blocks that changed. `real` ones are those without "." and "..".
  struct Names {
    std::int64_t then = 0;
    std::int64_t now = 0;
    std::int64_t real_then = 0;
    std::int64_t real_now = 0;
    InodeNumber parent_then = 0;  // where the last real one was
    InodeNumber parent = 0;       // ... and is
  };
  struct Entry {
    InodeNumber directory = 0;
    InodeNumber inode = 0;
    std::uint8_t type = 0;
  };
  // An inode, as far as names go.
  struct Known {
    std::uint8_t kind = 0;
    std::int64_t links = 0;
  };

  [[nodiscard]] bool is_possible(InodeNumber number) const {
    return number <= change_.now.layout.inodes() && !change_.now.is_reserved(number);
  }

  // ---- entries

  Result<void> read_directories() {
    std::unordered_set<InodeNumber> also_changed;
    if (!memory_.empty()) {
      for (const auto& [number, inode] : change_.inodes) {
        if (!memory_.inodes().contains(number)) also_changed.insert(number);
      }
    }
    // (By number: of several names of a directory, the last one counts.)
    std::vector<std::pair<InodeNumber, const DirectoryChange*>> all;
    std::vector<InodeNumber> unread;
    for (const auto& [number, inode] : change_.inodes) {
      if (!inode->then.directory && !inode->now.directory) continue;
      all.emplace_back(number, memory_.find_directory(change_, number, also_changed));
      if (all.back().second == nullptr) unread.push_back(number);
    }
    if (const auto done = DirectoryChange::prefetch(change_, unread); !done) return done;
    for (const auto& [number, known] : all) {
      if (known != nullptr) {
        for (const Finding& each : known->findings) found_(each);
        take(number, *known);
        continue;
      }
      auto read = DirectoryChange::find(change_, number, change_.inodes.at(number), found_);
      if (!read) return read.error();
      take(number, *read);
      memory_.keep_directory(number, std::move(*read));
    }
    return {};
  }

  // Of a directory, in blocks that changed. A name that was there and is, of an inode that is what
  // it was, need not be looked at.
  void take(InodeNumber number, const DirectoryChange& directory) {
    for (const auto& [inode, parent] : directory.dots_then) {
      ++names_[inode].then;
      if (parent) dotdot_then_[number] = inode;
    }
    for (const auto& [inode, parent] : directory.dots_now) {
      ++names_[inode].now;
      if (parent) dotdot_now_[number] = inode;
    }
    for (const auto& [inode, type] : directory.then) {
      Names& names = names_[inode];
      ++names.then;
      ++names.real_then;
      names.parent_then = number;
    }
    for (const auto& [inode, type] : directory.now) entries_.push_back({number, inode, type});
  }

  static DirectoryBlocks blocks_of(InodeNumber number, const CheckedInode& inode) {
    return {
        .number = number, .map = &inode.map, .inlined = inode.inlined, .indexed = inode.indexed};
  }

  // Where what is wrong with it is not asked for.
  static DirectoryBlocks trusted(DirectoryBlocks blocks) {
    blocks.trusted = true;
    return blocks;
  }

  Result<void> prefetch_named() {
    std::vector<Lbn> blocks;
    const auto want = [&](InodeNumber number) {
      if (number == 0 || !is_possible(number) || change_.inodes.contains(number)) return;
      const BlockRange range = change_.now.layout.inode_place(number).covering_blocks();
      blocks.push_back(range.first);
    };
    for (const Entry& each : entries_) want(each.inode);
    for (const auto& [number, names] : names_) want(number);
    return change_.now.volume.view().prefetch(blocks);
  }

  Result<Known> known(InodeNumber number, bool now) {
    const auto changed = change_.inodes.find(number);
    if (changed != change_.inodes.end()) {
      const CheckedInode& inode = now ? changed->second->now : changed->second->then;
      return Known{inode.kind, inode.links};
    }
    const auto bytes = read_inode(change_.now, number);
    if (!bytes) return bytes.error();
    if (bytes->empty()) return Known{};
    const ExtInode inode(*bytes);
    if (inode.links() == 0) return Known{};
    return Known{inode.type() != 0 ? inode.type() : CheckedInode::kStrange, inode.links()};
  }

  Result<void> judge(const Entry& entry) {
    Known named;
    if (is_possible(entry.inode)) {
      const auto found = known(entry.inode, true);
      if (!found) return found.error();
      named = *found;
    }
    if (named.kind == 0) {
      found_({.code = Code::kEntryInode, .inode = entry.directory, .found = entry.inode});
      return {};
    }
    Names& names = names_[entry.inode];
    ++names.now;
    ++names.real_now;
    names.parent = entry.directory;
    if (ext2fs_has_feature_filetype(change_.now.fs->super) && entry.type != named.kind) {
      found_({.code = Code::kEntryType,
              .inode = entry.directory,
              .expected = named.kind,
              .found = entry.type});
    }
    return {};
  }

  // ---- names

  Result<void> judge(InodeNumber number, const Names& names) {
    if (!is_possible(number)) return {};
    const auto then = known(number, false);
    if (!then) return then.error();
    const auto now = known(number, true);
    if (!now) return now.error();
    const bool root = number == EXT2_ROOT_INO;
    const bool was_directory = then->kind == EXT2_FT_DIR;
    const bool is_directory = now->kind == EXT2_FT_DIR;
    if (root && !is_directory) found_({.code = Code::kRoot});
    // In blocks that did not change. Of a directory that does not count its subdirectories only one
    // name is known of.
    const std::int64_t kept_real = (was_directory ? (root ? 0 : 1) : then->links) - names.real_then;
    const bool uncounted = was_directory && then->links == 1;
    const std::int64_t kept = uncounted ? kept_real : then->links - names.then;
    if (now->kind == 0) {
      if (kept_real > 0) {
        found_({.code = Code::kEntryInode,
                .expected = static_cast<std::uint64_t>(kept_real),
                .found = number});
      }
      return {};
    }
    if (then->kind != 0 && then->kind != now->kind && kept_real > 0 &&
        ext2fs_has_feature_filetype(change_.now.fs->super)) {
      found_({.code = Code::kEntryType, .expected = now->kind, .found = then->kind});
    }
    const std::int64_t real = kept_real + names.real_now;
    if (is_directory) {
      if (const auto done = judge_directory(number, names, was_directory, kept_real, real); !done)
        return done;
    }
    const std::int64_t all = kept + names.now;
    if (all == 0 || (is_directory && !root && real == 0)) {
      found_({.code = Code::kUnattached, .inode = number});
      return {};
    }
    std::int64_t expected = all;
    const bool nlink = ext2fs_has_feature_dir_nlink(change_.now.fs->super) != 0;
    if ((is_directory && nlink && now->links == 1) || (is_directory && all > kLinksMax)) {
      expected = 1;
    }
    if (now->links == expected) return {};
    found_({.code = Code::kLinks,
            .inode = number,
            .expected = static_cast<std::uint64_t>(expected),
            .found = static_cast<std::uint64_t>(now->links)});
    return {};
  }

  // ---- directories and their parents

  // Those whose name and ".." are where they were are as right as before.
  Result<void> judge_directory(InodeNumber number, const Names& names, bool was_directory,
                               std::int64_t kept_real, std::int64_t real) {
    if (was_directory && is_where_it_was(number, names)) return {};
    if (number == EXT2_ROOT_INO) {
      if (real != 0) {
        found_({.code = Code::kDirectoryLinked,
                .inode = number,
                .found = static_cast<std::uint64_t>(real)});
      }
      parents_[number] = EXT2_ROOT_INO;
    } else {
      if (real > 1) {
        found_({.code = Code::kDirectoryLinked,
                .inode = number,
                .found = static_cast<std::uint64_t>(real)});
      }
      parents_[number] = names.real_now > 0 ? names.parent : 0;
    }
    const auto said = dotdot(number);
    if (!said) return said.error();
    if (number != EXT2_ROOT_INO && names.real_now == 0 && kept_real > 0) {
      if (!was_directory) {
        // Named somewhere, where nothing has changed.
        reached_[number] = true;
        parents_.erase(number);
        return {};
      }
      const auto before = dotdot_then_.find(number);
      parents_[number] = before != dotdot_then_.end() ? before->second : *said;
    }
    const InodeNumber parent = parents_[number];
    if (parent != 0 && *said != 0 && *said != parent) {
      found_({.code = Code::kParent, .inode = number, .expected = parent, .found = *said});
    }
    return {};
  }

  [[nodiscard]] bool is_where_it_was(InodeNumber number, const Names& names) const {
    if (names.real_then > 1 || names.real_now != names.real_then ||
        names.parent != names.parent_then) {
      return false;
    }
    const auto then = dotdot_then_.find(number);
    const auto now = dotdot_now_.find(number);
    if (then == dotdot_then_.end() || now == dotdot_now_.end()) {
      return then == dotdot_then_.end() && now == dotdot_now_.end();
    }
    return then->second == now->second;
  }

  // What ".." of a directory says now; 0: nothing that can be.
  Result<InodeNumber> dotdot(InodeNumber number) {
    if (const auto found = dotdot_now_.find(number); found != dotdot_now_.end()) {
      return found->second;
    }
    class Quiet final : public DirectoryVisitor {
     public:
      void found(const Finding& /*finding*/) override {}
      void dot(InodeNumber inode, bool parent) override {
        if (parent) dotdot = inode;
      }
      void entry(InodeNumber /*inode*/, std::uint8_t /*type*/, std::string_view /*name*/) override {
      }
      InodeNumber dotdot = 0;
    };
    const auto changed = change_.inodes.find(number);
    CheckedInode read;
    if (changed == change_.inodes.end()) {
      auto bytes = read_inode(change_.now, number);
      if (!bytes) return bytes.error();
      if (!bytes->empty()) {
        auto checked = check_inode(change_.now, number, *bytes, true);
        if (!checked) return checked.error();
        read = std::move(*checked);
      }
    }
    const CheckedInode& inode = changed == change_.inodes.end() ? read : changed->second->now;
    Quiet visitor;
    if (inode.directory) {
      const auto done = read_directory(
          change_.now, trusted(blocks_of(number, inode)),
          [](std::uint64_t logical, FsBlock) { return logical == 0; }, visitor);
      if (!done) return done.error();
    }
    return dotdot_now_[number] = visitor.dotdot;
  }

  // From a directory up to the root. Who has not changed, nor its name, is where its ".." says.
  Result<bool> reach(InodeNumber number) {
    std::vector<InodeNumber> path;
    bool good = false;
    for (InodeNumber each = number;;) {
      if (each == EXT2_ROOT_INO) {
        good = true;
        break;
      }
      if (const auto before = reached_.find(each); before != reached_.end()) {
        good = before->second;
        break;
      }
      reached_[each] = false;  // a circle leads nowhere
      path.push_back(each);
      const auto inode = known(each, true);
      if (!inode) return inode.error();
      if (inode->kind != EXT2_FT_DIR) break;
      const auto placed = parents_.find(each);
      if (placed != parents_.end()) {
        each = placed->second;
      } else {
        const auto said = dotdot(each);
        if (!said) return said.error();
        each = *said;
      }
      if (each == 0) break;
    }
    for (const InodeNumber each : path) reached_[each] = good;
    return good;
  }

  const MomentChange& change_;
  RecheckMemory& memory_;
  const std::function<void(const Finding&)>& found_;
  std::map<InodeNumber, Names> names_;
  std::vector<Entry> entries_;
  std::unordered_map<InodeNumber, InodeNumber> dotdot_then_;  // of directories that changed
  std::unordered_map<InodeNumber, InodeNumber> dotdot_now_;
  std::map<InodeNumber, InodeNumber> parents_;  // by name; 0: it has none
  std::unordered_map<InodeNumber, bool> reached_;
};

}  // namespace

Result<void> check_names(const MomentChange& change, RecheckMemory& memory,
                         const std::function<void(const Finding&)>& found) {
  return Ledger(change, memory, found).run();
}

}  // namespace mariner::ifsck

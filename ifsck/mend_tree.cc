#include "ifsck/mend_tree.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

#include "ifsck/directory_entries.h"
#include "ifsck/directory_maker.h"
#include "ifsck/ext_inode.h"
#include "ifsck/map_writer.h"
#include "ifsck/mend_inode.h"
#include "proto/bytes.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;
using Done = Repair::Done;

constexpr std::string_view kLost = "lost+found";
constexpr int kNamesTried = 16;

class TreeMender {
 public:
  explicit TreeMender(MendWork& work) : work_(work), context_(work.context()) {}

  Result<void> run() {
    bool unattached = false;
    for (const Finding& each : work_.findings()) {
      switch (each.code) {
        case Code::kDirectoryLinked: linked_[each.inode] = each; break;
        case Code::kParent: parents_.push_back(each); break;
        case Code::kUnreachable: unreachable_.push_back(each); break;
        case Code::kUnattached: unattached = true; break;
        case Code::kLinks: links_.push_back(each); break;
        default: break;
      }
    }
    using Step = Result<void> (TreeMender::*)();
    for (const Step step :
         {&TreeMender::unlink, &TreeMender::set_parents, &TreeMender::attach_all}) {
      if (const Result<void> done = (this->*step)(); !done) return done;
    }
    if (!unattached && linked_.empty() && parents_.empty()) {
      if (const Result<void> done = cut_circles(); !done) return done;
    }
    return set_links();
  }

 private:
  // ---- directories with several names

  Result<void> unlink() {
    if (linked_.empty()) return {};
    struct Kept {
      InodeNumber dotdot = 0;
      std::vector<InodeNumber> in;  // where its names are, in order
    };
    std::map<InodeNumber, Kept> kept;
    for (const auto& [number, finding] : linked_) {
      const auto parent = dotdot(number);
      if (!parent) return parent.error();
      kept[number].dotdot = *parent;
    }
    const auto all = work_.directories();
    if (!all) return all.error();
    for (const InodeNumber each : *all) {
      const auto done = change_entries(work_, each, [&](const PlacedEntry& entry) {
        const auto found = entry.dot == 0 ? kept.find(entry.inode) : kept.end();
        if (found != kept.end()) found->second.in.push_back(each);
        return std::optional<Named>{};
      });
      if (!done) return done.error();
    }
    std::set<InodeNumber> where;
    for (auto& [number, one] : kept) {
      where.insert(one.in.begin(), one.in.end());
      if (number == EXT2_ROOT_INO) {
        one.in.clear();
        continue;
      }
      const bool fits = std::ranges::find(one.in, one.dotdot) != one.in.end();
      if (!one.in.empty()) one.in = {fits ? one.dotdot : one.in.front()};
    }
    for (const InodeNumber each : where) {
      const auto done =
          change_entries(work_, each, [&](const PlacedEntry& entry) -> std::optional<Named> {
            const auto found = entry.dot == 0 ? kept.find(entry.inode) : kept.end();
            if (found == kept.end()) return std::nullopt;
            std::vector<InodeNumber>& in = found->second.in;
            if (!in.empty() && in.front() == each) {
              in.clear();  // (One of several in the same one stays.)
              return std::nullopt;
            }
            return Named{};
          });
      if (!done) return done.error();
    }
    for (const auto& [number, finding] : linked_) work_.done(finding, Done::kNameRemoved);
    return {};
  }

  // What its ".." says; 0: nothing.
  Result<InodeNumber> dotdot(InodeNumber number) {
    InodeNumber said = 0;
    const auto done = change_entries(work_, number, [&](const PlacedEntry& entry) {
      if (entry.dot == 2) said = entry.inode;
      return std::optional<Named>{};
    });
    if (!done) return done.error();
    return said;
  }

  Result<void> set_parents() {
    for (const Finding& each : parents_) {
      if (linked_.contains(each.inode)) continue;
      const auto done = set_parent(work_, each.inode, static_cast<InodeNumber>(each.expected));
      if (!done) return done.error();
      if (*done) work_.done(each, Done::kParentSet);
    }
    return {};
  }

  // ---- circles

  // Of each, the directory with the smallest number loses its name; it is lost then.
  Result<void> cut_circles() {
    std::map<InodeNumber, InodeNumber> walked;  // and by whom
    for (const Finding& each : unreachable_) {
      InodeNumber at = each.inode;
      while (at != 0 && at != EXT2_ROOT_INO && walked.emplace(at, each.inode).second) {
        const auto up = dotdot(at);
        if (!up) return up.error();
        at = *up;
      }
      if (at == 0 || at == EXT2_ROOT_INO || walked[at] != each.inode) continue;
      InodeNumber least = at;
      InodeNumber in = at;
      for (InodeNumber next = at;;) {
        const auto up = dotdot(next);
        if (!up) return up.error();
        if (next <= least) {
          least = next;
          in = *up;
        }
        next = *up;
        if (next == at) break;
      }
      const auto done =
          change_entries(work_, in, [&](const PlacedEntry& entry) -> std::optional<Named> {
            if (entry.dot != 0 || entry.inode != least) return std::nullopt;
            return Named{};
          });
      if (!done) return done.error();
      if (*done) work_.done(each, Done::kNameRemoved);
    }
    return {};
  }

  // ---- who has no name

  Result<void> attach_all() {
    for (const Finding& each : work_.findings()) {
      if (each.code != Code::kUnattached || each.inode == EXT2_ROOT_INO) continue;
      const auto empty = is_empty(each.inode);
      if (!empty) return empty.error();
      if (*empty) {
        if (const Result<void> done = work_.release(each.inode); !done) return done;
        work_.done(each, Done::kReleased);
        continue;
      }
      const auto attached = attach(each.inode);
      if (!attached) return attached.error();
      if (*attached) work_.done(each, Done::kAttached);
    }
    return {};
  }

  // A file without contents, or a directory without entries.
  Result<bool> is_empty(InodeNumber number) {
    const auto bytes = work_.inode(number);
    if (!bytes) return bytes.error();
    if (bytes->empty()) return false;
    const ExtInode inode(*bytes);
    if (inode.attributes() != 0) return false;
    if (inode.type() == EXT2_FT_REG_FILE) return inode.size() == 0 && inode.blocks() == 0;
    if (inode.type() != EXT2_FT_DIR || number == lost_) return false;
    bool names = false;
    const auto done = change_entries(work_, number, [&](const PlacedEntry& entry) {
      names = names || entry.dot == 0;
      return std::optional<Named>{};
    });
    if (!done) return done.error();
    return !names;
  }

  Result<bool> attach(InodeNumber number) {
    const auto lost = lost_and_found();
    if (!lost) return lost.error();
    if (*lost == 0 || *lost == number) return false;
    const auto kind = work_.kind_of(number);
    if (!kind) return kind.error();
    if (*kind == 0) return false;
    std::string name = "#" + std::to_string(number);
    for (int tries = 0;; ++tries, name += "_") {
      if (tries == kNamesTried) return false;
      const auto taken = find(*lost, name);
      if (!taken) return taken.error();
      if (*taken == 0) break;
      if (*taken == number) return false;
    }
    const auto added = add_name(work_, *lost, name, {number, *kind});
    if (!added || !*added) return added;
    if (*kind == EXT2_FT_DIR) {
      const auto set = set_parent(work_, number, *lost);
      if (!set) return set.error();
    }
    return true;
  }

  // 0: there is no such name.
  Result<InodeNumber> find(InodeNumber directory, std::string_view name) {
    InodeNumber number = 0;
    const auto done = change_entries(work_, directory, [&](const PlacedEntry& entry) {
      if (entry.name == name) number = entry.inode;
      return std::optional<Named>{};
    });
    if (!done) return done.error();
    return number;
  }

  // 0: there is none, and none to be made.
  Result<InodeNumber> lost_and_found() {
    if (lost_ != 0) return lost_;
    const auto found = find(EXT2_ROOT_INO, kLost);
    if (!found) return found.error();
    if (*found != 0) {
      const auto checked = work_.checked(*found);
      if (!checked) return checked.error();
      if (checked->directory && !checked->inlined) return lost_ = *found;
    }
    const auto number = work_.allocate_inode();
    if (!number) return number.error();
    if (!*number) return InodeNumber{0};
    const auto made = make_lost(**number, *found != 0);
    if (!made) return made.error();
    if (*made) lost_ = **number;
    return lost_;
  }

  Result<bool> make_lost(InodeNumber number, bool taken) {
    const auto block = work_.allocate(FsBlock{1} << 32);
    if (!block) return block.error();
    if (!*block) return false;
    std::vector<std::byte> inode(work_.layout().inode_bytes());
    store_le<std::uint16_t>(inode.data() + InodeAt::kMode, LINUX_S_IFDIR | 0700);
    store_le<std::uint16_t>(inode.data() + InodeAt::kLinks, 2);
    if (ext2fs_has_feature_extents(context_.fs->super)) {
      store_le<std::uint32_t>(inode.data() + InodeAt::kFlags, EXT4_EXTENTS_FL);
    }
    for (const std::size_t at : {8, 12, 16}) store_le(inode.data() + at, work_.now());
    if (inode.size() >= 160) store_le(inode.data() + InodeAt::kExtra, InodeAt::kExtraUsual);
    const BlockMap::Run run{0, **block, 1, false};
    if (const auto put = write_map(work_, number, inode, std::span(&run, 1), {}); !put) {
      return put.error();
    }
    std::vector<std::byte> bytes = make_first_block(work_, number, EXT2_ROOT_INO);
    // The inode first: a checksum has its generation.
    if (const auto put = work_.put_inode(number, inode); !put) return put.error();
    if (const auto put = put_directory_block(work_, number, **block, bytes); !put) {
      return put.error();
    }
    if (const auto put = settle_inode(work_, number, inode); !put) return put.error();
    // Whatever has the name keeps it.
    const std::string name = std::string(kLost) + (taken ? "#" : "");
    return add_name(work_, EXT2_ROOT_INO, name, {number, EXT2_FT_DIR});
  }

  // ---- links

  Result<void> set_links() {
    for (const Finding& each : links_) {
      auto bytes = work_.inode(each.inode);
      if (!bytes) return bytes.error();
      if (bytes->empty() || ExtInode(*bytes).links() == 0) continue;
      store_le(bytes->data() + InodeAt::kLinks, static_cast<std::uint16_t>(each.expected));
      if (const auto put = work_.put_inode(each.inode, *bytes); !put) return put;
      work_.done(each, Done::kFieldSet);
    }
    return {};
  }

  MendWork& work_;
  const ExtContext& context_;
  std::map<InodeNumber, Finding> linked_;
  std::vector<Finding> parents_;
  std::vector<Finding> unreachable_;
  std::vector<Finding> links_;
  InodeNumber lost_ = 0;
};

}  // namespace

Result<void> mend_tree(MendWork& work) { return TreeMender(work).run(); }

}  // namespace mariner::ifsck

// The history of a file system found by looking at every moment of it, one by one: slowly, and in
// no way that could be wrong. What is found otherwise must be the same.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ifsck/block_map.h"
#include "ifsck/directory_block.h"
#include "ifsck/ext_inode.h"
#include "ifsck/moment.h"
#include "uvfs/incarnation.h"
#include "uvfs/inode_record.h"
#include "uvfs/object_state.h"
#include "uvfs/stretch.h"

namespace mariner::uvfs {

class EveryMoment {
 public:
  // What a path named at a moment.
  struct Seen {
    ifsck::InodeNumber inode = 0;
    ObjectState object;
    std::size_t contents = 0;  // a hash of them, and of attributes
    [[nodiscard]] bool is_same_object(const Seen& other) const {
      return inode == other.inode && object.generation == other.object.generation &&
             (object.mode & LINUX_S_IFMT) == (other.object.mode & LINUX_S_IFMT);
    }
    [[nodiscard]] bool looks_like(const Seen& other) const {
      return object.looks_like(other.object) && contents == other.contents;
    }
  };
  using Tree = std::map<std::string, Seen>;

  EveryMoment(ifsck::Past& past, const Stretch& stretch)
      : past_(past), stretch_(stretch), last_(past, stretch.last, none_) {
    EXPECT_TRUE(last_.open().has_value());
    for (SequenceNumber at = stretch.first; at <= stretch.last; at = at.next()) look(at);
  }

  // As text, a line for each version.
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> all;
    for (const auto& [path, lives] : lives_) {
      for (const Life& life : lives) {
        for (std::size_t i = 0; i < life.versions.size(); ++i) {
          const SequenceNumber end =
              i + 1 < life.versions.size() ? life.versions[i + 1].first : life.end;
          all.push_back(
              line(path, life.inode, life.versions[i].first, end, life.versions[i].second, i == 0));
        }
      }
    }
    return all;
  }
  static std::vector<std::string> lines(const std::vector<PathHistory>& histories) {
    std::vector<std::string> all;
    for (const PathHistory& history : histories) {
      for (const Incarnation& one : history.incarnations) {
        for (std::size_t i = 0; i < one.versions.size(); ++i) {
          const FileVersion& version = one.versions[i];
          all.push_back(
              line(history.path, one.inode, version.from.at, version.end, version.object, i == 0));
        }
        EXPECT_EQ(one.from.at, one.versions.front().from.at);
        EXPECT_EQ(one.end.at, one.versions.back().end);
      }
    }
    return all;
  }

  static std::string line(const std::string& path, std::uint64_t inode, SequenceNumber from,
                          SequenceNumber end, const ObjectState& object, bool first) {
    return path + (first ? " begins" : "") + " inode " + std::to_string(inode) + " [" +
           std::to_string(from.value) + ", " +
           (end == kEndless ? "now" : std::to_string(end.value)) + ") mode " +
           std::to_string(object.mode) + " size " + std::to_string(object.size) + " at " +
           std::to_string(object.modified.seconds);
  }

  [[nodiscard]] Tree tree(SequenceNumber at) {
    ifsck::Overlay none;
    ifsck::View view(past_, at, none);
    Tree tree;
    visit(view, EXT2_ROOT_INO, "/", {}, tree);
    return tree;
  }

 private:
  struct Life {
    std::uint64_t inode = 0;
    SequenceNumber end = kEndless;
    Seen last;
    std::vector<std::pair<SequenceNumber, ObjectState>> versions;
  };

  void look(SequenceNumber at) {
    const Tree now = tree(at);
    for (auto& [path, lives] : lives_) {
      Life& life = lives.back();
      if (life.end != kEndless) continue;
      const auto found = now.find(path);
      if (found == now.end() || !found->second.is_same_object(life.last)) life.end = at;
    }
    for (const auto& [path, seen] : now) {
      auto& lives = lives_[path];
      if (lives.empty() || lives.back().end != kEndless) lives.push_back({.inode = seen.inode});
      Life& life = lives.back();
      if (life.versions.empty() || !life.last.looks_like(seen)) {
        life.versions.emplace_back(at, seen.object);
      }
      life.last = seen;
    }
  }

  std::vector<std::byte> inode(ifsck::View& view, ifsck::InodeNumber number) {
    std::vector<std::byte> bytes(layout().inode_bytes());
    EXPECT_TRUE(view.read(layout().inode_place(number), bytes).has_value());
    return bytes;
  }

  void visit(ifsck::View& view, ifsck::InodeNumber number, const std::string& path,
             std::set<ifsck::InodeNumber> above, Tree& tree) {
    if (number == 0 || number > layout().inodes() || !above.insert(number).second) return;
    const auto bytes = inode(view, number);
    Seen seen{.inode = number, .object = state_of(bytes)};
    if (!seen.object.exists) return;
    const auto map =
        ifsck::has_block_map(bytes)
            ? ifsck::map_blocks(view, last_.context().volume, layout(), number, bytes).value()
            : ifsck::BlockMap{};
    const auto add = [&](std::string_view more) {
      seen.contents = seen.contents * 1'000'003 + std::hash<std::string_view>()(more);
    };
    for (const ExtendedAttribute& each : attributes_of_inode(bytes)) {
      if (each.name == "system.data") continue;
      add(each.name);
      add({reinterpret_cast<const char*>(each.value.data()), each.value.size()});
    }
    if (!ifsck::ExtInode(bytes).is_directory()) {
      add_contents(view, bytes, map, add);
      tree.emplace(path, seen);
      return;
    }
    std::map<std::string, ifsck::InodeNumber> names;
    const auto take = [&](std::span<const std::byte> block) {
      (void)ifsck::for_each_entry(block, [&](const ifsck::DirectoryEntry& each) {
        const std::string name(each.name);
        if (each.inode != 0 && !name.empty() && name != "." && name != "..") {
          names.emplace(name, each.inode);
        }
      });
    };
    for (const ifsck::BlockMap::Run& run : map.runs) {
      for (std::uint64_t i = 0; i < run.count && !run.unwritten; ++i) {
        if ((run.logical + i + 1) * layout().block_bytes() > ifsck::ExtInode(bytes).size()) break;
        std::vector<std::byte> block(layout().block_bytes());
        EXPECT_TRUE(view.read(layout().bytes_of(run.physical + i), block).has_value());
        take(block);
      }
    }
    if (ifsck::ExtInode(bytes).has_inline_data()) {
      for (const auto entries : inline_entries(bytes)) take(entries);
    }
    for (const auto& [name, inode] : names) add(name + "=" + std::to_string(inode));
    tree.emplace(path, seen);
    for (const auto& [name, child] : names) {
      visit(view, child, (path == "/" ? "" : path) + "/" + name, above, tree);
    }
  }

  template <typename Add>
  void add_contents(ifsck::View& view, std::span<const std::byte> bytes, const ifsck::BlockMap& map,
                    Add add) {
    if (has_inline_contents(bytes)) {
      const auto contents = inline_contents(bytes);
      return add({reinterpret_cast<const char*>(contents.data()), contents.size()});
    }
    const std::uint64_t size = ifsck::ExtInode(bytes).size();
    const std::uint64_t each = layout().block_bytes();
    std::vector<std::byte> block(each);
    for (const ifsck::BlockMap::Run& run : map.runs) {
      for (std::uint64_t i = 0; i < run.count && !run.unwritten; ++i) {
        const std::uint64_t offset = (run.logical + i) * each;
        if (offset >= size) break;
        EXPECT_TRUE(view.read(layout().bytes_of(run.physical + i), block).has_value());
        const auto part = std::span(block).first(std::min(each, size - offset));
        // (Zeros are as good as nothing.)
        if (std::ranges::all_of(part, [](std::byte one) { return one == std::byte{}; })) continue;
        add(std::to_string(offset));
        add({reinterpret_cast<const char*>(part.data()), part.size()});
      }
    }
  }

  [[nodiscard]] const ifsck::ExtLayout& layout() const { return last_.context().layout; }

  ifsck::Past& past_;
  const Stretch stretch_;
  ifsck::Overlay none_;
  ifsck::Moment last_;
  std::map<std::string, std::vector<Life>> lives_;
};

}  // namespace mariner::uvfs

// The history of any file system found by opening every moment of it, one by one, and reading all
// that is there: slowly, and in no way that could be wrong. What is found otherwise must be the
// same. (every_moment.h does so for ext2, ext3 and ext4 without what a moment is opened with.)
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/uvfs/every_moment.h"
#include "uvfs/files_moment.h"
#include "uvfs/open_history.h"
#include "uvfs/stretch.h"

namespace mariner::uvfs {

class EveryFile {
 public:
  // What a path named at a moment.
  struct Seen {
    ObjectNumber number = 0;
    ObjectState object;
    std::size_t contents = 0;  // a hash of them, and of attributes
    [[nodiscard]] bool is_same_object(const Seen& other) const {
      return number == other.number && object.generation == other.object.generation &&
             (object.mode & S_IFMT) == (other.object.mode & S_IFMT);
    }
    [[nodiscard]] bool looks_like(const Seen& other) const {
      return object.looks_like(other.object) && contents == other.contents;
    }
  };
  using Tree = std::map<std::string, Seen>;

  EveryFile(ifsck::Past& past, const Stretch& stretch) : past_(past) {
    for (SequenceNumber at = stretch.first; at <= stretch.last; at = at.next()) look(at);
  }

  // As EveryMoment::lines() of what was found otherwise.
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> all;
    for (const auto& [path, lives] : lives_) {
      for (const Life& life : lives) {
        for (std::size_t i = 0; i < life.versions.size(); ++i) {
          const SequenceNumber end =
              i + 1 < life.versions.size() ? life.versions[i + 1].first : life.end;
          all.push_back(EveryMoment::line(path, life.number, life.versions[i].first, end,
                                          life.versions[i].second, i == 0));
        }
      }
    }
    std::ranges::sort(all);
    return all;
  }
  // Of one path, at the last moment.
  [[nodiscard]] static Tree tree(ifsck::Past& past, SequenceNumber at) {
    Tree tree;
    const auto moment = open_moment(past, at);
    if (moment) visit(**moment, (*moment)->root(), "/", {}, tree);
    return tree;
  }

 private:
  struct Life {
    ObjectNumber number = 0;
    SequenceNumber end = kEndless;
    Seen last;
    std::vector<std::pair<SequenceNumber, ObjectState>> versions;
  };

  void look(SequenceNumber at) {
    const Tree now = tree(past_, at);
    for (auto& [path, lives] : lives_) {
      Life& life = lives.back();
      if (life.end != kEndless) continue;
      const auto found = now.find(path);
      if (found == now.end() || !found->second.is_same_object(life.last)) life.end = at;
    }
    for (const auto& [path, seen] : now) {
      auto& lives = lives_[path];
      if (lives.empty() || lives.back().end != kEndless) lives.push_back({.number = seen.number});
      Life& life = lives.back();
      if (life.versions.empty() || !life.last.looks_like(seen)) {
        life.versions.emplace_back(at, seen.object);
      }
      life.last = seen;
    }
  }

  static void visit(FilesMoment& moment, ObjectNumber number, const std::string& path,
                    std::set<ObjectNumber> above, Tree& tree) {
    if (!above.insert(number).second) return;
    const auto state = moment.state(number);
    if (!state) {
      EXPECT_EQ(state.error().code, ErrorCode::kNotFound) << state.error().message;
      return;
    }
    Seen seen{.number = number, .object = *state};
    const auto add = [&](std::string_view more) {
      seen.contents = seen.contents * 1'000'003 + std::hash<std::string_view>()(more);
    };
    for (const auto& each : moment.attributes(number).value().all) {
      add(each.name);
      add({reinterpret_cast<const char*>(each.value.data()), each.value.size()});
    }
    if (S_ISDIR(state->mode)) {
      const auto names = moment.names(number).value();
      for (const auto& each : *names) add(each.name + "=" + std::to_string(each.number));
      tree.emplace(path, seen);
      for (const auto& each : *names) {
        visit(moment, each.number, (path == "/" ? "" : path) + "/" + each.name, above, tree);
      }
      return;
    }
    if (auto contents = moment.contents(number)) {
      // (Damage may say anything of its size.)
      constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 30;
      const auto read =
          contents->size() > kBytesMax ? Result<void>{} : add_contents(*contents, add);
      if (!read) add("damaged");
    }
    tree.emplace(path, seen);
  }

  // Zeros are as good as nothing.
  template <typename Add>
  static Result<void> add_contents(FileContents& contents, Add add) {
    constexpr std::size_t kEach = 512;
    return contents.for_each_piece([&](std::uint64_t at, std::span<const std::byte> bytes) {
      while (!bytes.empty()) {
        const auto part = bytes.first(std::min<std::size_t>(bytes.size(), kEach - at % kEach));
        if (std::ranges::any_of(part, [](std::byte one) { return one != std::byte{}; })) {
          add(std::to_string(at));
          add({reinterpret_cast<const char*>(part.data()), part.size()});
        }
        at += part.size();
        bytes = bytes.subspan(part.size());
      }
      return Result<void>{};
    });
  }

  ifsck::Past& past_;
  std::map<std::string, std::vector<Life>> lives_;
};

// What is in one and not in the other, the first lines of it.
inline std::string first_difference(const std::vector<std::string>& ours,
                                    const std::vector<std::string>& wanted) {
  constexpr std::size_t kShown = 12;
  std::string text;
  const auto add = [&](char sign, const std::vector<std::string>& from,
                       const std::vector<std::string>& without) {
    const std::multiset<std::string> known(without.begin(), without.end());
    std::size_t shown = 0;
    for (const std::string& each : from) {
      if (!known.contains(each) && ++shown <= kShown) text += std::string(1, sign) + each + "\n";
    }
  };
  add('+', ours, wanted);
  add('-', wanted, ours);
  return text;
}

}  // namespace mariner::uvfs

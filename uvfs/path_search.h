// Which objects a path named over a stretch, and what versions they had: found from the history of
// the directories on the way.
//
// Paths are absolute, "/a/b"; symbolic links are not followed. What an incarnation's inode is named
// by elsewhere does not matter: hard links are separate names. One thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proto/error.h"
#include "uvfs/files_history.h"
#include "uvfs/incarnation.h"
#include "uvfs/object_number.h"

namespace mariner::uvfs {

// While one and the same object had a path.
struct Presence {
  ObjectNumber inode = 0;
  Instant from;
  Instant end;  // kEndless: not yet
  friend bool operator==(const Presence&, const Presence&) = default;
};

class PathSearch {
 public:
  static constexpr std::size_t kObjectsMax = 2'000'000;  // paths that are looked at at a time
  static constexpr std::size_t kDepthMax = 2048;

  // `history` outlives it.
  explicit PathSearch(FilesHistory& history, const VersionRule& rule = {})
      : history_(history), rule_(rule) {}

  // The components of a path. kInvalidArgument: it is none, or goes up (".").
  [[nodiscard]] static Result<std::vector<std::string>> components_of(std::string_view path);

  // Empty: nobody ever had it. Errors: of the past; kInvalidArgument: of components_of(); kLimit.
  [[nodiscard]] Result<std::vector<Presence>> presences_of(std::string_view path);
  [[nodiscard]] Result<PathHistory> find(std::string_view path);
  // The names that ever were in a directory at that path, ascending.
  [[nodiscard]] Result<std::vector<std::string>> names_in(std::string_view path);
  // All that ever was below a directory, and itself: by path. What the directory had as long as it
  // had that path itself.
  [[nodiscard]] Result<std::vector<PathHistory>> find_below(std::string_view path);

 private:
  // What the presences of a directory had by a name.
  void add_children(const std::vector<Presence>& parents, std::string_view name,
                    std::vector<Presence>& to) const;
  static void add_spans(const Presence& parent, std::span<const NameHistory::Span> spans,
                        std::vector<Presence>& to);
  // With this presence the inode became another object.
  [[nodiscard]] bool is_another(const Presence& one) const;
  // Without the gaps of a directory that was being written: its entries may be in none of its
  // blocks for a moment, or in one that is not its yet. Who is renamed has another time of change
  // then.
  [[nodiscard]] std::vector<Presence> joined(std::vector<Presence> some) const;
  [[nodiscard]] bool is_gap(const Presence& before, const Presence& next) const;
  // In pieces in which there is such an object, and it is one: loaded inodes.
  [[nodiscard]] std::vector<Presence> existing(std::vector<Presence> some) const;
  [[nodiscard]] Result<void> load(const std::vector<Presence>& some);
  [[nodiscard]] PathHistory history_of(std::string path, const std::vector<Presence>& some) const;

  FilesHistory& history_;
  VersionRule rule_;
};

}  // namespace mariner::uvfs

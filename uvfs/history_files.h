// The past of a volume as one tree of files, read-only: what a mount shows.
//
//   @TIME/...          the file system at a moment: any time that is understood; "@#4711" the
//   write;
//                      if there is none that is understood, one file with all of the volume
//   latest             a symbolic link to the newest moment, as a "@#..."
//   marks/NAME         ... to a mark's
//   versions/PATH/     for each version of what had the path one entry, by its time (UTC), beside
//                      the names that ever were below it
//   deleted/PATH/      what is not there any more, as it was last; and directories that are
//   snapshots/@GMT-*/  some moments, and those of marks, for who lists them (snapshot_times.h)
//
// What a "@" directory has never changes; its own time of change is that of the moment. Everything
// has a number that stays the same while this lives, and is never that of something else; with it,
// all can be found again (for file handles).
//
// One thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ifsck/past.h"
#include "proto/error.h"
#include "uvfs/files_moment.h"
#include "uvfs/lazy_mender.h"
#include "uvfs/object_attributes.h"
#include "uvfs/object_state.h"
#include "uvfs/offered_snapshots.h"
#include "uvfs/open_history.h"
#include "uvfs/path_search.h"
#include "uvfs/sequential_file.h"
#include "uvfs/stretch.h"

namespace mariner::uvfs {

class HistoryFiles {
 public:
  using FileId = std::uint64_t;
  static constexpr FileId kRoot = 1;
  // Of a name in a list whose object has no number that can be shown (damage, mostly); of nothing.
  static constexpr FileId kNobody = 0xffffffff;

  static constexpr std::size_t kTreesMax = 256;  // moments whose directories are kept
  // ... fewer, if they (what their journals have left) hold more than this, all together: 256 MiB.
  static constexpr std::size_t kReplayedBlocksMax = 64 * 1024;
  static constexpr std::size_t kObjectsMax = 200'000;  // whose histories are kept
  // How old what versions/ and deleted/ show may be, when the volume is written to: so long, or ten
  // times what it takes to look again.
  static constexpr std::chrono::seconds kRefresh{2};
  static constexpr std::size_t kPathsMax = 1'000'000;     // of versions/ and deleted/
  static constexpr std::size_t kMomentsMax = 10'000'000;  // that anything was found at
  static constexpr std::size_t kOpenFilesMax = 16;        // that are kept for who reads on
  static constexpr std::size_t kParentsMax = 1'000'000;   // directories whose own ones are known
  static constexpr std::size_t kListedMomentsMax = 1000;

  // What it takes from the outside.
  struct Source {
    ifsck::Past* past = nullptr;  // outlives it
    // The moment that a text means. kInvalidArgument, kOutsideWindow.
    std::function<Result<SequenceNumber>(std::string_view)> moment_of;
    std::function<Result<std::vector<Mark>>()> marks;
    // A moment is going to be looked at (KeptPast::share); none: nobody wants to know.
    std::function<void(SequenceNumber)> opens{};
  };

  struct Attributes {
    FileId id = 0;
    ObjectState object;    // of what is no file of the volume's: as if it were root's
    bool lasting = false;  // it will never be otherwise
  };
  struct Entry {
    std::string name;
    FileId id = 0;
    std::uint32_t kind = 0;  // S_IF*; 0: not known
  };

  explicit HistoryFiles(Source source);

  // kNotFound: no such name, or an id that was never given. Others: of the past; kLimit.
  [[nodiscard]] Result<Attributes> find(FileId directory, std::string_view name);
  [[nodiscard]] Result<Attributes> attributes(FileId id);
  // The directory that one was found in, first. kNotFound: it was not, or is forgotten by now.
  [[nodiscard]] Result<Attributes> parent(FileId directory);
  // Without "." and "..". kInvalidArgument: it is no directory.
  [[nodiscard]] Result<std::vector<Entry>> list(FileId directory);
  [[nodiscard]] Result<std::string> link_target(FileId id);
  // Fills `to` from `offset` on; says how much there was.
  [[nodiscard]] Result<std::size_t> read(FileId id, std::uint64_t offset, std::span<std::byte> to);
  [[nodiscard]] Result<ObjectAttributes> extended_attributes(FileId id);
  // It is in a "@" directory, or one: it will never be otherwise.
  [[nodiscard]] static bool is_of_a_moment(FileId id);

 private:
  // What is no object of the file system's.
  struct Place {
    enum class Kind : std::uint8_t {
      kNone,
      kRoot,
      kLatest,
      kMarks,
      kMark,
      kVersions,
      kDeleted,
      kSnapshots
    };
    Kind kind{};
    std::string path;  // of a mark: its name
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  struct Object {
    SequenceNumber at;
    ObjectNumber number = 0;
  };
  struct OpenFile {
    FileId id = 0;
    SequentialFile file;
  };
  [[nodiscard]] Result<OpenFile*> open_file(FileId id);

  [[nodiscard]] Result<FileId> id_of(const Place& place);
  [[nodiscard]] Result<FileId> id_of(const Object& object);
  [[nodiscard]] Result<Place> place_of(FileId id) const;
  [[nodiscard]] std::optional<Object> object_of(FileId id) const;

  [[nodiscard]] Result<FilesMoment*> tree(SequenceNumber at);
  [[nodiscard]] Result<FilesHistory*> history();
  [[nodiscard]] Result<VersionTime> newest_time();

  [[nodiscard]] Result<Attributes> attributes_of(const Object& object);
  [[nodiscard]] Result<Attributes> attributes_of(const Place& place);
  [[nodiscard]] Result<Attributes> find_anywhere(FileId directory, std::string_view name);
  [[nodiscard]] Result<Attributes> find_below(const Place& place, std::string_view name);
  [[nodiscard]] Result<Attributes> find_moment(SequenceNumber at);
  [[nodiscard]] Result<Attributes> find_snapshot(std::string_view name);
  [[nodiscard]] Result<Attributes> find_version(const std::string& path, std::string_view name);
  [[nodiscard]] Result<Attributes> find_deleted(const std::string& path);
  [[nodiscard]] Result<std::vector<Entry>> list_object(const Object& object);
  [[nodiscard]] Result<std::vector<Entry>> list_root();
  [[nodiscard]] Result<std::vector<Entry>> list_marks();
  [[nodiscard]] Result<std::vector<Entry>> list_snapshots();
  [[nodiscard]] Result<std::vector<Entry>> list_versions(const std::string& path);
  [[nodiscard]] Result<std::vector<Entry>> list_deleted(const std::string& path);
  // What is shown of a path in deleted/; nothing: it is there, and no directory.
  [[nodiscard]] Result<std::optional<Entry>> deleted_entry(const std::string& path);

  Source source_;
  LazyMender mender_;
  std::vector<Place> places_;
  std::map<Place, FileId> place_ids_;
  std::vector<SequenceNumber> moments_;
  std::map<SequenceNumber, std::uint32_t> moment_ids_;
  std::unordered_map<FileId, FileId> parents_;
  std::map<SequenceNumber, FileId> listed_moments_;  // their root directories
  // The last one that was asked for is in front.
  std::list<std::pair<SequenceNumber, std::unique_ptr<FilesMoment>>> trees_;
  OpenHistory history_;
  std::chrono::steady_clock::time_point history_due_;  // to be opened again, if there is more
  std::list<OpenFile> open_files_;                     // the last one that was read is in front
};

// "2026-11-20T14:32:05.123456789Z".
[[nodiscard]] std::string version_name(VersionTime time);

}  // namespace mariner::uvfs

#include "uvfs/history_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>

#include "uvfs/file_contents.h"
#include "uvfs/raw_moment.h"
#include "uvfs/safe_name.h"

namespace mariner::uvfs {
namespace {

constexpr std::uint64_t kSecond_ns = 1'000'000'000;
// The upper part of an object's id: 1 + the number of its moment. Below is the object's, of which
// there is one at a moment with the number that is shown.
constexpr unsigned kMomentShift = 40;
constexpr ObjectNumber kNumberMax = (ObjectNumber{1} << kMomentShift) - 1;
static_assert(HistoryFiles::kMomentsMax < (std::uint64_t{1} << (64 - kMomentShift)) - 1);
static_assert(HistoryFiles::kPathsMax < kNumberMax);
static_assert(HistoryFiles::kPathsMax < HistoryFiles::kNobody - HistoryFiles::kRoot);

Error too_many(std::size_t most, std::string_view what) {
  return {ErrorCode::kLimit,
          fmt::format("more than {} {} were looked at: mount it again", most, what)};
}

Error not_found(std::string what) { return {ErrorCode::kNotFound, std::move(what)}; }

std::string child(const std::string& path, std::string_view name) {
  return (path == "/" ? "/" : path + "/") + std::string(name);
}

}  // namespace

HistoryFiles::HistoryFiles(Source source) : source_(std::move(source)), mender_(*source_.past) {}

std::string version_name(VersionTime time) {
  const auto seconds = static_cast<std::time_t>(time.ns / kSecond_ns);
  std::tm fields{};
  gmtime_r(&seconds, &fields);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", fields.tm_year + 1900,
                     fields.tm_mon + 1, fields.tm_mday, fields.tm_hour, fields.tm_min,
                     fields.tm_sec, time.ns % kSecond_ns);
}

// ---- numbers

Result<HistoryFiles::FileId> HistoryFiles::id_of(const Place& place) {
  if (place.kind == Place::Kind::kRoot) return kRoot;
  if (const auto known = place_ids_.find(place); known != place_ids_.end()) return known->second;
  if (places_.size() >= kPathsMax) return too_many(kPathsMax, "paths of versions/ and deleted/");
  places_.push_back(place);
  return place_ids_[place] = kRoot + places_.size();
}

Result<HistoryFiles::FileId> HistoryFiles::id_of(const Object& object) {
  auto known = moment_ids_.find(object.at);
  if (known == moment_ids_.end()) {
    if (moments_.size() >= kMomentsMax) return too_many(kMomentsMax, "moments");
    known = moment_ids_.emplace(object.at, static_cast<std::uint32_t>(moments_.size())).first;
    moments_.push_back(object.at);
  }
  const ObjectNumber number = shown_number(object.number);
  if (number > kNumberMax) {
    return Error{ErrorCode::kLimit,
                 fmt::format("object {} has a larger number than a mount can show, of {} at most: "
                             "uvfs cat and uvfs restore read it",
                             number, kNumberMax)};
  }
  return (std::uint64_t{known->second} + 1) << kMomentShift | number;
}

Result<HistoryFiles::Place> HistoryFiles::place_of(FileId id) const {
  if (id == kRoot) return Place{Place::Kind::kRoot, {}};
  if (id > kRoot && id - kRoot <= places_.size()) return places_[id - kRoot - 1];
  return not_found(fmt::format("nothing has the number {}", id));
}

std::optional<HistoryFiles::Object> HistoryFiles::object_of(FileId id) const {
  const std::uint64_t moment = id >> kMomentShift;
  if (moment == 0 || moment > moments_.size()) return {};
  return Object{moments_[moment - 1], id & kNumberMax};
}

bool HistoryFiles::is_of_a_moment(FileId id) { return id >> kMomentShift != 0; }

// ---- what is kept

Result<FilesMoment*> HistoryFiles::tree(SequenceNumber at) {
  const auto known =
      std::ranges::find_if(trees_, [at](const auto& each) { return each.first == at; });
  if (known != trees_.end()) {
    trees_.splice(trees_.begin(), trees_, known);
    return trees_.front().second.get();
  }
  // (With it comes how large the volume is by now, and the file system of that moment.)
  if (const auto reach = source_.past->reach(); !reach) return reach.error();
  if (source_.opens) source_.opens(at);
  auto opened = open_moment(*source_.past, at, &mender_);
  if (!opened) {
    if (!is_about_contents(opened.error())) return opened.error();
    opened = RawMoment::open(*source_.past, at);
    if (!opened) return opened.error();
  }
  trees_.emplace_front(at, std::move(*opened));
  std::size_t replayed = 0;
  for (const auto& [moment, each] : trees_) replayed += each->blocks_held();
  while (trees_.size() > 1 && (trees_.size() > kTreesMax || replayed > kReplayedBlocksMax)) {
    open_files_.clear();  // they may be of it
    replayed -= trees_.back().second->blocks_held();
    trees_.pop_back();
  }
  return trees_.front().second.get();
}

// Of all that there is now.
Result<FilesHistory*> HistoryFiles::history() {
  const auto reach = source_.past->reach();
  if (!reach) return reach.error();
  const auto now = std::chrono::steady_clock::now();
  if (history_.files == nullptr || history_.files->objects() > kObjectsMax ||
      (history_.files->stretch().last != reach->newest && now >= history_due_)) {
    auto opened = open_history(*source_.past, {reach->oldest, reach->newest});
    if (!opened) return opened.error();
    history_.files.reset();  // (reads from the other)
    history_ = std::move(*opened);
    const auto done = std::chrono::steady_clock::now();
    history_due_ = done + std::max<std::chrono::nanoseconds>(kRefresh, 10 * (done - now));
  }
  return history_.files.get();
}

Result<VersionTime> HistoryFiles::newest_time() {
  const auto reach = source_.past->reach();
  if (!reach) return reach.error();
  return source_.past->time_of(reach->newest);
}

// ---- attributes

Result<HistoryFiles::Attributes> HistoryFiles::attributes(FileId id) {
  if (const auto object = object_of(id)) return attributes_of(*object);
  const auto place = place_of(id);
  return place ? attributes_of(*place) : place.error();
}

Result<HistoryFiles::Attributes> HistoryFiles::attributes_of(const Object& object) {
  const auto of = tree(object.at);
  if (!of) return of.error();
  const auto found = (*of)->state(object.number);
  if (!found) return found.error();
  const auto id = id_of(object);
  if (!id) return id.error();
  Attributes all{.id = *id, .object = *found, .lasting = true};
  if (object.number == (*of)->root()) {
    const auto time = source_.past->time_of(object.at);
    if (!time) return time.error();
    all.object.modified = to_file_time(*time);
  }
  return all;
}

Result<HistoryFiles::Attributes> HistoryFiles::attributes_of(const Place& place) {
  const auto id = id_of(place);
  if (!id) return id.error();
  const auto time = newest_time();
  if (!time) return time.error();
  const bool link = place.kind == Place::Kind::kLatest || place.kind == Place::Kind::kMark;
  Attributes all{.id = *id, .object = {.exists = true, .links = link ? 1u : 2u}};
  all.object.mode = link ? S_IFLNK | 0777 : S_IFDIR | 0555;
  all.object.modified = all.object.changed = to_file_time(*time);
  if (link) {
    const auto target = link_target(*id);
    if (!target) return target.error();
    all.object.size = target->size();
  }
  return all;
}

// ---- names

Result<HistoryFiles::Attributes> HistoryFiles::find(FileId directory, std::string_view name) {
  auto found = find_anywhere(directory, name);
  if (!found || !S_ISDIR(found->object.mode)) return found;
  if (parents_.size() >= kParentsMax) parents_.clear();
  parents_.try_emplace(found->id, directory);
  // (Who has a handle of what is in it finds its name, and so the way, by this.)
  if (const auto object = object_of(found->id); object && directory == kRoot) {
    if (listed_moments_.size() >= kListedMomentsMax) listed_moments_.clear();
    listed_moments_.try_emplace(object->at, found->id);
  }
  return found;
}

Result<HistoryFiles::Attributes> HistoryFiles::parent(FileId directory) {
  if (directory == kRoot) return attributes(kRoot);
  const auto known = parents_.find(directory);
  if (known != parents_.end()) return attributes(known->second);
  return not_found(fmt::format("what directory {} is in", directory));
}

Result<HistoryFiles::Attributes> HistoryFiles::find_anywhere(FileId directory,
                                                             std::string_view name) {
  if (const auto object = object_of(directory)) {
    const auto of = tree(object->at);
    if (!of) return of.error();
    const auto number = (*of)->find(object->number, name);
    if (!number) return number.error();
    if (*number == 0) return not_found(std::string(name));
    return attributes_of(Object{object->at, *number});
  }
  const auto place = place_of(directory);
  return place ? find_below(*place, name) : place.error();
}

Result<HistoryFiles::Attributes> HistoryFiles::find_below(const Place& place,
                                                          std::string_view name) {
  switch (place.kind) {
    case Place::Kind::kRoot:
      if (name == "latest") return attributes_of(Place{Place::Kind::kLatest, {}});
      if (name == "marks") return attributes_of(Place{Place::Kind::kMarks, {}});
      if (name == "versions") return attributes_of(Place{Place::Kind::kVersions, "/"});
      if (name == "deleted") return attributes_of(Place{Place::Kind::kDeleted, "/"});
      if (name == "snapshots") return attributes_of(Place{Place::Kind::kSnapshots, {}});
      if (name.starts_with('@')) {
        const auto at = source_.moment_of(name.substr(1));
        return at ? find_moment(*at) : at.error();
      }
      break;
    case Place::Kind::kMarks: {
      const auto marks = source_.marks();
      if (!marks) return marks.error();
      if (std::ranges::find(*marks, name, &Mark::name) == marks->end()) break;
      return attributes_of(Place{Place::Kind::kMark, std::string(name)});
    }
    case Place::Kind::kVersions: {
      const auto files = history();
      if (!files) return files.error();
      const std::string path = child(place.path, name);
      const auto presences = PathSearch(**files).presences_of(path);
      if (presences && !presences->empty()) {
        return attributes_of(Place{Place::Kind::kVersions, path});
      }
      return find_version(place.path, name);
    }
    case Place::Kind::kDeleted: return find_deleted(child(place.path, name));
    case Place::Kind::kSnapshots: return find_snapshot(name);
    default: break;
  }
  return not_found(std::string(name));
}

Result<HistoryFiles::Attributes> HistoryFiles::find_moment(SequenceNumber at) {
  const auto of = tree(at);
  if (!of) return of.error();
  return attributes_of(Object{at, (*of)->root()});
}

Result<HistoryFiles::Attributes> HistoryFiles::find_snapshot(std::string_view name) {
  const auto marks = source_.marks();
  if (!marks) return marks.error();
  const auto at = snapshot_moment(*source_.past, *marks, name);
  return at ? find_moment(*at) : at.error();
}

Result<HistoryFiles::Attributes> HistoryFiles::find_version(const std::string& path,
                                                            std::string_view name) {
  const auto entries = list_versions(path);
  if (!entries) return entries.error();
  const auto found = std::ranges::find(*entries, name, &Entry::name);
  return found == entries->end() ? not_found(std::string(name)) : attributes(found->id);
}

Result<HistoryFiles::Attributes> HistoryFiles::find_deleted(const std::string& path) {
  const auto found = deleted_entry(path);
  if (!found) return found.error();
  return *found ? attributes((*found)->id) : not_found(path);
}

Result<std::vector<HistoryFiles::Entry>> HistoryFiles::list(FileId directory) {
  if (const auto object = object_of(directory)) return list_object(*object);
  const auto place = place_of(directory);
  if (!place) return place.error();
  switch (place->kind) {
    case Place::Kind::kRoot: return list_root();
    case Place::Kind::kMarks: return list_marks();
    case Place::Kind::kVersions: return list_versions(place->path);
    case Place::Kind::kDeleted: return list_deleted(place->path);
    case Place::Kind::kSnapshots: return list_snapshots();
    default:
      return Error{ErrorCode::kInvalidArgument, fmt::format("{} is no directory", directory)};
  }
}

Result<std::vector<HistoryFiles::Entry>> HistoryFiles::list_object(const Object& object) {
  const auto of = tree(object.at);
  if (!of) return of.error();
  const auto names = (*of)->names(object.number);
  if (!names) return names.error();
  std::vector<Entry> all;
  all.reserve((*names)->size());
  for (const FilesMoment::Name& each : **names) {
    // (A kernel would take the whole directory for broken.)
    if (!is_safe_name(each.name)) continue;
    const bool shown = shown_number(each.number) <= kNumberMax;
    const auto id = shown ? id_of(Object{object.at, each.number}) : kNobody;
    if (!id) return id.error();
    all.push_back({each.name, *id, each.kind});
  }
  return all;
}

Result<std::vector<HistoryFiles::Entry>> HistoryFiles::list_root() {
  std::vector<Entry> all;
  for (const auto& [at, id] : listed_moments_) {
    all.push_back({fmt::format("@#{}", at.value), id, S_IFDIR});
  }
  const std::pair<const char*, Place> some[] = {{"deleted", {Place::Kind::kDeleted, "/"}},
                                                {"latest", {Place::Kind::kLatest, {}}},
                                                {"marks", {Place::Kind::kMarks, {}}},
                                                {"snapshots", {Place::Kind::kSnapshots, {}}},
                                                {"versions", {Place::Kind::kVersions, "/"}}};
  for (const auto& [name, one] : some) {
    const auto id = id_of(one);
    if (!id) return id.error();
    const bool link = one.kind == Place::Kind::kLatest;
    all.push_back({name, *id, static_cast<std::uint32_t>(link ? S_IFLNK : S_IFDIR)});
  }
  return all;
}

Result<std::vector<HistoryFiles::Entry>> HistoryFiles::list_marks() {
  const auto marks = source_.marks();
  if (!marks) return marks.error();
  std::vector<Entry> all;
  for (const Mark& each : *marks) {
    const auto id = id_of(Place{Place::Kind::kMark, each.name});
    if (!id) return id.error();
    all.push_back({each.name, *id, S_IFLNK});
  }
  return all;
}

Result<std::vector<HistoryFiles::Entry>> HistoryFiles::list_snapshots() {
  const auto marks = source_.marks();
  if (!marks) return marks.error();
  const auto moments = offered_snapshots(*source_.past, *marks);
  if (!moments) return moments.error();
  std::vector<Entry> all;
  ObjectNumber root = 0;
  for (const auto& [name, at] : *moments) {
    // There may have been no file system yet. From the first on nothing is looked at: the others
    // are like it.
    if (all.empty()) {
      const auto of = tree(at);
      if (!of) return of.error();
      if ((*of)->is_raw()) continue;
      root = (*of)->root();
    }
    const auto id = id_of(Object{at, root});
    if (!id) return id.error();
    all.push_back({name, *id, S_IFDIR});
  }
  return all;
}

Result<std::vector<HistoryFiles::Entry>> HistoryFiles::list_versions(const std::string& path) {
  const auto files = history();
  if (!files) return files.error();
  PathSearch search(**files);
  const auto names = search.names_in(path);
  if (!names) return names.error();
  std::vector<Entry> all;
  for (const std::string& each : *names) {
    if (!is_safe_name(each)) continue;
    const auto id = id_of(Place{Place::Kind::kVersions, child(path, each)});
    if (!id) return id.error();
    all.push_back({each, *id, S_IFDIR});
  }
  const auto history = search.find(path);
  if (!history) return history.error();
  for (const Incarnation& one : history->incarnations) {
    for (const FileVersion& version : one.versions) {
      if (S_ISDIR(version.object.mode)) continue;
      const auto id = id_of(Object{version.from.at, one.inode});
      if (!id) return id.error();
      all.push_back(
          {version_name(version.from.time), *id, version.object.mode & std::uint32_t{S_IFMT}});
    }
  }
  return all;
}

Result<std::vector<HistoryFiles::Entry>> HistoryFiles::list_deleted(const std::string& path) {
  const auto files = history();
  if (!files) return files.error();
  const auto names = PathSearch(**files).names_in(path);
  if (!names) return names.error();
  std::vector<Entry> all;
  for (const std::string& each : *names) {
    if (!is_safe_name(each)) continue;
    auto entry = deleted_entry(child(path, each));
    if (!entry) return entry.error();
    if (*entry) all.push_back({each, (*entry)->id, (*entry)->kind});
  }
  return all;
}

Result<std::optional<HistoryFiles::Entry>> HistoryFiles::deleted_entry(const std::string& path) {
  const auto files = history();
  if (!files) return files.error();
  const auto presences = PathSearch(**files).presences_of(path);
  if (!presences) return presences.error();
  if (presences->empty()) return std::optional<Entry>();
  const Presence& last = presences->back();
  if (last.end.at != kEndless) {
    const Object object{SequenceNumber{last.end.at.value - 1}, last.inode};
    const ObjectState state = (*files)->find(last.inode)->states.empty()
                                  ? ObjectState{}
                                  : (*files)->state(last.inode, object.at);
    const auto id = id_of(object);
    if (!id) return id.error();
    return std::optional(Entry{path, *id, state.mode & std::uint32_t{S_IFMT}});
  }
  if (!S_ISDIR((*files)->state(last.inode, (*files)->stretch().last).mode)) {
    return std::optional<Entry>();
  }
  const auto id = id_of(Place{Place::Kind::kDeleted, path});
  if (!id) return id.error();
  return std::optional(Entry{path, *id, S_IFDIR});
}

// ---- contents

Result<std::string> HistoryFiles::link_target(FileId id) {
  if (const auto object = object_of(id)) {
    const auto of = tree(object->at);
    if (!of) return of.error();
    auto contents = (*of)->contents(object->number);
    return contents ? contents->link_target() : contents.error();
  }
  const auto place = place_of(id);
  if (!place) return place.error();
  if (place->kind == Place::Kind::kLatest) {
    const auto reach = source_.past->reach();
    if (!reach) return reach.error();
    return fmt::format("@#{}", reach->newest.value);
  }
  if (place->kind == Place::Kind::kMark) {
    const auto marks = source_.marks();
    if (!marks) return marks.error();
    const auto found = std::ranges::find(*marks, place->path, &Mark::name);
    if (found == marks->end()) return not_found(place->path);
    return fmt::format("../@#{}", found->at.value);
  }
  return Error{ErrorCode::kInvalidArgument, fmt::format("{} is no symbolic link", id)};
}

Result<HistoryFiles::OpenFile*> HistoryFiles::open_file(FileId id) {
  const auto known = std::ranges::find(open_files_, id, &OpenFile::id);
  if (known != open_files_.end()) {
    open_files_.splice(open_files_.begin(), open_files_, known);
    return &open_files_.front();
  }
  const auto object = object_of(id);
  if (!object) return Error{ErrorCode::kInvalidArgument, fmt::format("{} is no file", id)};
  const auto of = tree(object->at);
  if (!of) return of.error();
  auto contents = (*of)->contents(object->number);
  if (!contents) return contents.error();
  open_files_.push_front({id, SequentialFile(std::move(*contents))});
  if (open_files_.size() > kOpenFilesMax) open_files_.pop_back();
  return &open_files_.front();
}

Result<std::size_t> HistoryFiles::read(FileId id, std::uint64_t offset, std::span<std::byte> to) {
  const auto file = open_file(id);
  return file ? (*file)->file.read(offset, to) : file.error();
}

Result<ObjectAttributes> HistoryFiles::extended_attributes(FileId id) {
  const auto object = object_of(id);
  if (!object) return ObjectAttributes{};
  const auto of = tree(object->at);
  if (!of) return of.error();
  return (*of)->attributes(object->number);
}

}  // namespace mariner::uvfs

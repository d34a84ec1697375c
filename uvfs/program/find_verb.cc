// uvfs find VOLUME[:PATH].
#include <ext2fs/ext2_fs.h>
#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "ifsck/program/fsck_report.h"
#include "server/client/table.h"
#include "uvfs/program/object_text.h"
#include "uvfs/program/verbs.h"

namespace mariner::uvfs {
namespace {

bool has_kind(std::uint16_t mode, const std::string& type) {
  return type.empty() || (type == "f" && LINUX_S_ISREG(mode)) ||
         (type == "d" && LINUX_S_ISDIR(mode)) || (type == "l" && LINUX_S_ISLNK(mode));
}

bool is_wanted(const PathHistory& path, const Words& words) {
  const Incarnation& last = path.incarnations.back();
  if (words.deleted && last.end.at == kEndless) return false;
  if (!has_kind(last.versions.back().object.mode, words.type)) return false;
  const std::string name = path.path.substr(path.path.rfind('/') + 1);
  return words.name.empty() || fnmatch(words.name.c_str(), name.c_str(), 0) == 0;
}

// The last moment at which it was there: of those that were asked for.
SequenceNumber last_moment(const Incarnation& last, const Stretch& stretch) {
  return last.end.at == kEndless ? stretch.last : SequenceNumber{last.end.at.value - 1};
}

void put(const client::Context& context, const PathHistory& path, const ObjectName& name,
         api::FoundFile& to) {
  const Incarnation& last = path.incarnations.back();
  put_name(name.full_path(), *to.mutable_path());
  *to.mutable_object() = to_message(context, last.versions.back().object, last.inode);
  const Instant& from = path.incarnations.front().from;
  *to.mutable_from() = ifsck::to_message(context, from.at, from.time);
  if (last.end.at != kEndless) {
    *to.mutable_deleted() = ifsck::to_message(context, last.end.at, last.end.time);
  }
}

client::Table table_of(const Words& words) {
  if (words.deleted) {
    return client::Table({"DELETED", "KIND", ">SIZE", "LAST THERE: FOR CAT AND RESTORE"});
  }
  return client::Table({"FROM", "UNTIL", "KIND", ">SIZE", "PATH"});
}

void add_row(const client::Context& context, const PathHistory& path, const api::FoundFile& found,
             client::Table& table) {
  const Incarnation& first = path.incarnations.front();
  const Incarnation& last = path.incarnations.back();
  const ObjectState& object = last.versions.back().object;
  const std::string until = last.end.at == kEndless ? "-" : context.short_time(last.end.time.ns);
  const std::string kind(kind_name(object.mode));
  if (!found.argument().empty()) {
    table.add({until, kind, size_text(object), found.argument()});
  } else {
    table.add({first.from_before ? "earlier" : context.short_time(first.from.time.ns), until, kind,
               size_text(object), found.path().text()});
  }
}

}  // namespace

Answer find(client::Context& context, const Words& words) {
  auto name = parse_object_name(context, words.object,
                                {.image = !words.source.image.empty(), .path_less = true});
  if (!name) return name.error();
  FileSource::Times times{.since = words.since, .until = words.until};
  if (name->time) {
    if (!times.until.empty()) {
      return Error{ErrorCode::kInvalidArgument, "a moment is named twice: --until is enough"};
    }
    times.until = *name->time;
  }
  auto source = FileSource::open(context, words.source, *name);
  if (!source) return source.error();
  const auto wanted = source->stretch(times);
  if (!wanted) return wanted.error();
  auto history = open_history(*source->moments.past, *wanted);
  if (!history) return history.error();
  const Stretch stretch = history->files->stretch();
  const auto below = PathSearch(*history->files).find_below(name->path);
  if (!below) return below.error();
  if (below->empty()) return never_there(*name);
  const auto since = source->moment(context, stretch.first);
  const auto until = source->moment(context, stretch.last);
  if (!since) return since.error();
  if (!until) return until.error();
  api::FoundFiles files;
  files.set_volume(source->name);
  *files.mutable_since() = *since;
  *files.mutable_until() = *until;
  client::Table table = table_of(words);
  for (const PathHistory& path : *below) {
    if (!is_wanted(path, words)) continue;
    ObjectName object = *name;
    object.path = path.path;
    const SequenceNumber last = last_moment(path.incarnations.back(), stretch);
    api::FoundFile& found = *files.add_files();
    const bool shown = words.deleted || context.flags.json;
    put(context, path, object, found);
    if (shown) found.set_argument(object.at(last));
    if (!context.flags.json) add_row(context, path, found, table);
  }
  if (context.print_json(files)) return client::ExitCode::kDone;
  if (!table.empty()) context.console.print(table.text(context.console));
  context.console.note(fmt::format("{} between #{} and #{}\n", files.files_size(),
                                   stretch.first.value, stretch.last.value));
  return client::ExitCode::kDone;
}

}  // namespace mariner::uvfs

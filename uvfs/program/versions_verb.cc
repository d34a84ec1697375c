// uvfs versions VOLUME:PATH, and incarnations VOLUME:PATH.
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "ifsck/program/fsck_report.h"
#include "proto/sequence_text.h"
#include "server/client/table.h"
#include "uvfs/program/object_text.h"
#include "uvfs/program/verbs.h"

namespace mariner::uvfs {
namespace {

struct Asked {
  ObjectName name;
  FileSource source;
  Stretch stretch;
  OpenHistory history;
  std::vector<PathHistory> paths;  // with incarnations
};

Result<Asked> ask(client::Context& context, const Words& words) {
  auto name = parse_object_name(context, words.object, {.image = !words.source.image.empty()});
  if (!name) return name.error();
  FileSource::Times times{.since = words.since, .until = words.until};
  if (name->time) {
    if (!times.until.empty()) {
      return Error{ErrorCode::kInvalidArgument,
                   "a moment is named twice: --until is enough; versions are those of a stretch"};
    }
    times.until = *name->time;
  }
  auto source = FileSource::open(context, words.source, *name);
  if (!source) return source.error();
  const auto stretch = source->stretch(times);
  if (!stretch) return stretch.error();
  auto history = open_history(*source->moments.past, *stretch);
  if (!history) return history.error();
  PathSearch search(*history->files, {.every_write = words.every_write});
  std::vector<PathHistory> paths;
  if (words.below) {
    auto found = search.find_below(name->path);
    if (!found) return found.error();
    paths = std::move(*found);
  } else {
    auto found = search.find(name->path);
    if (!found) return found.error();
    if (!found->incarnations.empty()) paths.push_back(std::move(*found));
  }
  if (paths.empty()) return never_there(*name);
  // (A file system may have begun within the time that was asked for.)
  const Stretch known = history->files->stretch();
  return Asked{.name = std::move(*name),
               .source = std::move(*source),
               .stretch = known,
               .history = std::move(*history),
               .paths = std::move(paths)};
}

api::Moment moment(const client::Context& context, const Instant& instant) {
  return ifsck::to_message(context, instant.at, instant.time);
}

// Of a version's end only the number is known here.
Result<api::FileHistory> to_message(const client::Context& context, const Asked& asked,
                                    bool versions) {
  api::FileHistory to;
  to.set_volume(asked.source.name);
  auto since = asked.source.moment(context, asked.stretch.first);
  auto until = asked.source.moment(context, asked.stretch.last);
  if (!since) return since.error();
  if (!until) return until.error();
  *to.mutable_since() = std::move(*since);
  *to.mutable_until() = std::move(*until);
  for (const PathHistory& path : asked.paths) {
    api::FilePath& one = *to.add_paths();
    put_name(asked.name.full_path(path.path), *one.mutable_path());
    ObjectName name = asked.name;
    name.path = path.path;
    for (const Incarnation& each : path.incarnations) {
      api::FileIncarnation& life = *one.add_incarnations();
      set_number(each.inode, life);
      *life.mutable_from() = moment(context, each.from);
      life.set_from_before(each.from_before);
      if (each.end.at != kEndless) *life.mutable_end() = moment(context, each.end);
      life.set_versions_all(each.versions.size());
      if (!versions) continue;
      for (std::size_t i = 0; i < each.versions.size(); ++i) {
        const FileVersion& version = each.versions[i];
        api::FileVersion& told = *life.add_versions();
        *told.mutable_from() = moment(context, version.from);
        const bool last = i + 1 == each.versions.size();
        if (!last) *told.mutable_end() = moment(context, each.versions[i + 1].from);
        if (last && life.has_end()) *told.mutable_end() = life.end();
        *told.mutable_object() = uvfs::to_message(context, version.object, each.inode);
        told.set_argument(name.at(version.from.at));
      }
    }
  }
  return to;
}

std::string when(const client::Context& context, const Instant& instant, bool from_before) {
  return from_before ? "earlier" : context.short_time(instant.time.ns);
}

void print_versions(const client::Context& context, const Asked& asked, bool paths) {
  std::vector<std::string> headings{"FROM",  ">AT",    ">INODE", "MODE",
                                    ">USER", ">GROUP", ">SIZE",  "MODIFIED"};
  if (paths) headings.emplace_back("PATH");
  client::Table table(headings);
  const auto add = [&](std::vector<std::string> cells, const std::string& path) {
    if (paths) cells.push_back(path);
    table.add(std::move(cells));
  };
  for (const PathHistory& path : asked.paths) {
    for (const Incarnation& each : path.incarnations) {
      for (const FileVersion& version : each.versions) {
        const ObjectState& object = version.object;
        add({when(context, version.from, each.from_before && version.from.at == each.from.at),
             sequence_text(version.from.at), std::to_string(shown_number(each.inode)),
             mode_text(object.mode), std::to_string(object.user), std::to_string(object.group),
             size_text(object), time_text(context, object.modified)},
            asked.name.full_path(path.path));
      }
      if (each.end.at == kEndless) continue;
      add({when(context, each.end, false), sequence_text(each.end.at),
           std::to_string(shown_number(each.inode)), "gone", "", "", "", ""},
          asked.name.full_path(path.path));
    }
  }
  context.console.print(table.text(context.console));
}

void print_incarnations(const client::Context& context, const Asked& asked) {
  client::Table table({"FROM", ">AT", "UNTIL", ">AT", ">INODE", "KIND", ">VERSIONS"});
  for (const PathHistory& path : asked.paths) {
    for (const Incarnation& each : path.incarnations) {
      const bool there = each.end.at == kEndless;
      table.add({when(context, each.from, each.from_before), sequence_text(each.from.at),
                 there ? "-" : when(context, each.end, false),
                 there ? "" : sequence_text(each.end.at), std::to_string(shown_number(each.inode)),
                 std::string(kind_name(each.versions.back().object.mode)),
                 std::to_string(each.versions.size())});
    }
  }
  context.console.print(table.text(context.console));
}

Answer answer(client::Context& context, const Words& words, bool versions) {
  const auto asked = ask(context, words);
  if (!asked) return asked.error();
  if (context.flags.json) {
    const auto message = to_message(context, *asked, versions);
    if (!message) return message.error();
    context.print_json(*message);
  } else if (versions) {
    print_versions(context, *asked, words.below);
  } else {
    print_incarnations(context, *asked);
  }
  return client::ExitCode::kDone;
}

}  // namespace

Answer list_versions(client::Context& context, const Words& words) {
  return answer(context, words, true);
}

Answer list_incarnations(client::Context& context, const Words& words) {
  return answer(context, words, false);
}

}  // namespace mariner::uvfs

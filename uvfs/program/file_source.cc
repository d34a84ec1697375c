#include "uvfs/program/file_source.h"

#include <ext2fs/ext2_fs.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "ifsck/program/fsck_report.h"
#include "uvfs/parts/disk_parts.h"

namespace mariner::uvfs {
namespace {

std::string advice(const ObjectName& name) {
  const std::string folder =
      name.full_path(name.path.substr(0, std::max<std::size_t>(1, name.path.rfind('/'))));
  return fmt::format("uvfs find --deleted {}{}{} lists what was deleted there",
                     shell_word(name.volume.empty() ? ":" : name.volume),
                     name.volume.empty() ? "" : ":", shell_word(folder));
}

Error no_such_part(const DiskParts& parts, const ObjectName& name) {
  std::string all;
  for (const DiskPart& each : parts.parts) {
    all += fmt::format(
        "{}/{} ({})", all.empty() ? "" : ", ", each.name,
        each.contents == PartContents::kNothing ? each.type : contents_name(each.contents));
  }
  for (const DiskParts::LeftOut& each : parts.left_out) {
    all += fmt::format("{}not {}: {}", all.empty() ? "" : "; ", each.name, each.why);
  }
  for (const std::string& each : parts.notes) all += "; " + each;
  return {ErrorCode::kInvalidArgument,
          fmt::format("{} is no part of {}, which has parts ({}): expected a path in one of them, "
                      "as in {}/etc/passwd; there are {}",
                      name.path, name.volume.empty() ? "the image" : name.volume,
                      table_name(parts.table),
                      parts.parts.empty() ? "/p1" : "/" + parts.parts.front().name,
                      all.empty() ? "none" : all)};
}

// "... /lib is a symbolic link": if that is why.
Result<std::string> link_on_the_way(OpenHistory& history, const ObjectName& name,
                                    SequenceNumber at) {
  for (auto end = name.path.find('/', 1); end != std::string::npos;
       end = name.path.find('/', end + 1)) {
    const std::string path = name.path.substr(0, end);
    const auto presences = PathSearch(*history.files).presences_of(path);
    if (!presences) return presences.error();
    for (const Presence& each : *presences) {
      if (each.from.at > at || each.end.at <= at) continue;
      if (!LINUX_S_ISLNK(history.files->state(each.inode, at).mode)) continue;
      auto contents = history.contents(each.inode, at);
      const auto target = contents ? contents->link_target() : contents.error();
      return fmt::format("; {} is a symbolic link to {}, which is not followed", path,
                         target ? *target : "nowhere");
    }
  }
  return std::string();
}

}  // namespace

Result<FileSource> FileSource::open(const client::Context& context, const SourceWords& words,
                                    ObjectName& object) {
  ifsck::NamedMoment named{.target = object.volume,
                           .image = words.image,
                           .trace = words.trace,
                           .at = {},
                           .moves_on = words.moves_on,
                           .begins_there = words.begins_there};
  if (object.time) {
    if (object.volume.empty()) {
      named.at = *object.time;
    } else {
      named.target += "@" + *object.time;
    }
  }
  auto moments = ifsck::MomentSource::open(context, named);
  if (!moments) return moments.error();
  auto parted = std::make_unique<PartedPast>(std::move(moments->past));
  FileSource source{.moments = std::move(*moments), .parted = parted.get(), .name = {}};
  source.moments.past = std::move(parted);
  source.name = source.moments.name;
  if (!words.sandbox) return source;
  if (const auto given_up = context.give_up(*words.sandbox); !given_up) return given_up.error();
  if (const auto chosen = source.choose_part(object); !chosen) return chosen.error();
  return source;
}

Result<void> FileSource::choose_part(ObjectName& object) {
  const auto parts = read_parts(parted->volume(), moments.at);
  if (!parts) return parts.error();
  if (parts->table == DiskParts::Table::kNone) return {};
  const auto end = std::min(object.path.find('/', 1), object.path.size());
  const DiskPart* const part = parts->find(object.path.substr(1, end - 1));
  if (part == nullptr) return no_such_part(*parts, object);
  if (const auto chosen = parted->choose(part->extents); !chosen) return chosen;
  object.part = "/" + part->name;
  object.path = end == object.path.size() ? "/" : object.path.substr(end);
  return {};
}

Result<Stretch> FileSource::stretch(const Times& times) {
  const auto reach = moments.past->reach();
  if (!reach) return reach.error();
  Stretch stretch{reach->oldest, reach->newest};
  for (const auto& [time, moment] :
       {std::pair{&times.since, &stretch.first}, {&times.until, &stretch.last}}) {
    if (time->empty()) continue;
    const auto found = moments.moment_of(*time);
    if (!found) return found.error();
    *moment = *found;
  }
  if (stretch.first <= stretch.last) return stretch;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("from #{} to #{} is no stretch of time: it ends before it begins",
                           stretch.first.value, stretch.last.value)};
}

Result<api::Moment> FileSource::moment(const client::Context& context, SequenceNumber at) const {
  const auto time = moments.past->time_of(at);
  if (!time) return time.error();
  return ifsck::to_message(context, at, *time);
}

Result<FoundObject> find_object(OpenHistory& history, const ObjectName& name, SequenceNumber at) {
  const auto presences = PathSearch(*history.files).presences_of(name.path);
  if (!presences) return presences.error();
  for (const Presence& each : *presences) {
    if (each.from.at <= at && at < each.end.at) {
      return FoundObject{each.inode, history.files->state(each.inode, at)};
    }
  }
  const auto link = link_on_the_way(history, name, at);
  if (!link) return link.error();
  return Error{ErrorCode::kNotFound, fmt::format("{} was not there at #{}{}; {}", name.full_path(),
                                                 at.value, *link, advice(name))};
}

Error never_there(const ObjectName& name) {
  return {ErrorCode::kNotFound,
          fmt::format("{} never was there in that time; {}", name.full_path(), advice(name))};
}

}  // namespace mariner::uvfs

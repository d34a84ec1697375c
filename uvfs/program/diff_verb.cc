// uvfs diff VOLUME:PATH@T1 @T2.
#include <ext2fs/ext2_fs.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "uvfs/object_attributes.h"
#include "uvfs/program/line_diff.h"
#include "uvfs/program/object_text.h"
#include "uvfs/program/verbs.h"

namespace mariner::uvfs {
namespace {

// One side of a comparison.
struct Side {
  ObjectName name;
  SequenceNumber at;
  api::Moment moment;
};

struct Asked {
  FileSource source;
  Side one;
  Side two;
  OpenHistory history;
};

std::string label(const client::Context& context, const Side& side) {
  return fmt::format("{}  {}", side.name.at(side.at), context.local_time(side.moment.time_ns()));
}

Result<Asked> ask(client::Context& context, const Words& words) {
  const ObjectNameRule rule{.image = !words.source.image.empty()};
  auto one = parse_object_name(context, words.object, rule);
  if (!one) return one.error();
  // "@T2" alone is of the same path.
  const bool same = words.other.starts_with('@');
  auto two = parse_object_name(
      context,
      (same ? (one->volume.empty() ? "" : one->volume + ":") + one->path : "") + words.other, rule);
  if (!two) return two.error();
  if (one->volume != two->volume) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} and {} are two volumes: expected two moments of one", one->volume,
                             two->volume)};
  }
  auto source = FileSource::open(context, words.source, *one);
  if (!source) return source.error();
  if (const auto within = two->enter(one->part); !within) return within.error();
  const SequenceNumber first = source->moments.at;
  const auto second = source->moments.moment_of(two->time.value_or("now"));
  if (!second) return second.error();
  auto first_moment = source->moment(context, first);
  auto second_moment = source->moment(context, *second);
  if (!first_moment) return first_moment.error();
  if (!second_moment) return second_moment.error();
  auto history =
      open_history(*source->moments.past, {std::min(first, *second), std::max(first, *second)});
  if (!history) return history.error();
  return Asked{.source = std::move(*source),
               .one = {std::move(*one), first, std::move(*first_moment)},
               .two = {std::move(*two), *second, std::move(*second_moment)},
               .history = std::move(*history)};
}

// Nothing: it is too large.
Result<std::optional<std::string>> text_of(FileContents& contents) {
  if (contents.size() > kDiffBytesMax) return std::optional<std::string>();
  std::string text(contents.size(), '\0');
  const auto read = contents.read(0, std::as_writable_bytes(std::span(text)));
  if (!read) return read.error();
  return std::optional(std::move(text));
}

// ---- files

Result<void> compare_files(const client::Context& context, FileContents& one, FileContents& two,
                           const Asked& asked, api::FileDiff& to) {
  const auto same = have_same_bytes(one, two);
  if (!same) return same.error();
  to.set_differ(!*same);
  if (*same) return {};
  const auto before = text_of(one);
  if (!before) return before.error();
  const auto after = text_of(two);
  if (!after) return after.error();
  to.set_too_large(!*before || !*after);
  if (to.too_large()) return {};
  to.set_binary((*before)->find('\0') != std::string::npos ||
                (*after)->find('\0') != std::string::npos);
  if (to.binary()) return {};
  const auto lines = [](const std::string& text) { return std::ranges::count(text, '\n'); };
  to.set_too_large(lines(**before) + lines(**after) > static_cast<std::ptrdiff_t>(kDiffLinesMax));
  if (to.too_large()) return {};
  to.set_unified(
      unified_diff({**before, **after}, {label(context, asked.one), label(context, asked.two)}));
  return {};
}

// A terminal gets nothing that steers it; a pipe gets a patch.
void print_unified(const client::Console& console, const std::string& text) {
  if (!console.out_is_terminal) return console.print(text);
  for (std::string_view line : lines_of(text)) {
    if (line.ends_with('\n')) line.remove_suffix(1);
    const std::string shown = client::printable(line);
    console.print((line.starts_with('-')   ? console.red(shown)
                   : line.starts_with('+') ? console.green(shown)
                                           : shown) +
                  "\n");
  }
}

// ---- directories

// What a path was at both ends of the stretch; null: it was not there.
struct Ends {
  const Incarnation* before = nullptr;
  const Incarnation* after = nullptr;
};

Ends ends_of(const PathHistory& path) {
  Ends ends;
  if (path.incarnations.front().from_before) ends.before = &path.incarnations.front();
  if (path.incarnations.back().end.at == kEndless) ends.after = &path.incarnations.back();
  return ends;
}

bool same_kind(const ObjectState& one, const ObjectState& other) {
  return (one.mode & LINUX_S_IFMT) == (other.mode & LINUX_S_IFMT);
}

class Directories {
 public:
  explicit Directories(Asked& asked) : asked_(asked) {}

  // Whether anything about a path is not as it was, of both being there and of one kind.
  Result<bool> modified(const Ends& ends) {
    const ObjectState& before = ends.before->versions.front().object;
    const ObjectState& after = ends.after->versions.back().object;
    if (ends.before == ends.after && ends.before->versions.size() == 1) return false;
    if (before.mode != after.mode || before.user != after.user || before.group != after.group ||
        before.flags != after.flags || before.device != after.device) {
      return true;
    }
    // (What is in a directory is a matter of paths of their own.)
    if (LINUX_S_ISDIR(before.mode)) return false;
    if (before.size != after.size || before.modified != after.modified) return true;
    const SequenceNumber first = asked_.history.files->stretch().first;
    const SequenceNumber last = asked_.history.files->stretch().last;
    if (LINUX_S_ISREG(before.mode) || LINUX_S_ISLNK(before.mode)) {
      auto one = asked_.history.contents(ends.before->inode, first);
      auto two = asked_.history.contents(ends.after->inode, last);
      for (const auto* const each : {&one, &two}) {
        if (!*each && !is_of_one_object(each->error())) return each->error();
      }
      if (!one || !two) return true;  // damaged, or encrypted: what cannot be told is said
      const auto same = have_same_bytes(*one, *two);
      if (!same) return same.error();
      if (!*same) return true;
    }
    const auto one = asked_.history.files->attributes(ends.before->inode, first);
    if (!one) return one.error();
    const auto two = asked_.history.files->attributes(ends.after->inode, last);
    if (!two) return two.error();
    return *one != *two;
  }

 private:
  Asked& asked_;
};

void put(const client::Context& context, const Incarnation& of, const ObjectState& object,
         api::FileObject& to) {
  to = to_message(context, object, of.inode);
}

Result<void> compare_directories(client::Context& context, Asked& asked, api::FileDiff& to) {
  const auto below =
      PathSearch(*asked.history.files, {.every_write = true}).find_below(asked.one.name.path);
  if (!below) return below.error();
  const bool backwards = asked.two.at < asked.one.at;
  Directories directories(asked);
  for (const PathHistory& path : *below) {
    Ends ends = ends_of(path);
    std::string what;
    if (ends.before == nullptr && ends.after == nullptr) continue;
    if (ends.before == nullptr || ends.after == nullptr) {
      what = (ends.before == nullptr) != backwards ? "added" : "removed";
    } else if (!same_kind(ends.before->versions.front().object,
                          ends.after->versions.back().object)) {
      what = "type";
    } else {
      const auto modified = directories.modified(ends);
      if (!modified) return modified.error();
      if (!*modified) continue;
      what = "modified";
    }
    api::FileChange& change = *to.add_changes();
    put_name(asked.one.name.full_path(path.path), *change.mutable_path());
    change.set_change(what);
    auto* const earlier = backwards ? change.mutable_after() : change.mutable_before();
    auto* const later = backwards ? change.mutable_before() : change.mutable_after();
    if (ends.before != nullptr) {
      put(context, *ends.before, ends.before->versions.front().object, *earlier);
    }
    if (ends.after != nullptr) {
      put(context, *ends.after, ends.after->versions.back().object, *later);
    }
    if (ends.before == nullptr) backwards ? change.clear_after() : change.clear_before();
    if (ends.after == nullptr) backwards ? change.clear_before() : change.clear_after();
  }
  to.set_differ(to.changes_size() > 0);
  return {};
}

std::string change_text(const client::Console& console, const std::string& change) {
  if (change == "added") return console.green("A");
  if (change == "removed") return console.red("D");
  return console.yellow(change == "type" ? "T" : "M");
}

void print_difference(const client::Context& context, const Asked& asked,
                      const api::FileDiff& diff) {
  const client::Console& console = context.console;
  for (const api::FileChange& each : diff.changes()) {
    console.print(fmt::format("{} {}\n", change_text(console, each.change()),
                              client::printable(each.path().text())));
  }
  if (!diff.unified().empty()) return print_unified(console, diff.unified());
  if (diff.binary() || diff.too_large()) {
    console.print(fmt::format("{} {} and {} differ{}\n", diff.binary() ? "Binary files" : "Files",
                              asked.one.name.at(asked.one.at), asked.two.name.at(asked.two.at),
                              diff.binary() ? "" : " (they are too large to be shown)"));
  }
}

}  // namespace

Answer compare(client::Context& context, const Words& words) {
  auto asked = ask(context, words);
  if (!asked) return asked.error();
  const auto one = find_object(asked->history, asked->one.name, asked->one.at);
  if (!one) return one.error();
  const auto two = find_object(asked->history, asked->two.name, asked->two.at);
  if (!two) return two.error();
  api::FileDiff diff;
  diff.set_volume(asked->source.name);
  put_name(asked->one.name.full_path(), *diff.mutable_path());
  *diff.mutable_from() = asked->one.moment;
  *diff.mutable_to() = asked->two.moment;
  Result<void> done;
  if (LINUX_S_ISREG(one->object.mode) && LINUX_S_ISREG(two->object.mode)) {
    auto before = asked->history.contents(one->inode, asked->one.at);
    if (!before) return before.error();
    auto after = asked->history.contents(two->inode, asked->two.at);
    if (!after) return after.error();
    done = compare_files(context, *before, *after, *asked, diff);
  } else if (asked->one.name.path == asked->two.name.path) {
    done = compare_directories(context, *asked, diff);
  } else {
    return Error{ErrorCode::kInvalidArgument,
                 "two files can be compared, or one path at two moments"};
  }
  if (!done) return done.error();
  if (!context.print_json(diff)) print_difference(context, *asked, diff);
  return client::ExitCode::kDone;
}

}  // namespace mariner::uvfs

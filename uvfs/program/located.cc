#include "uvfs/program/located.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <ostream>
#include <span>
#include <string_view>
#include <utility>

#include "server/client/console.h"
#include "uvfs/lazy_mender.h"

namespace mariner::uvfs {
namespace {

// Mending may help.
bool is_damage(ErrorCode code) {
  return code == ErrorCode::kCorrupt || code == ErrorCode::kNotFound;
}

}  // namespace

Result<Located> Located::open(const client::Context& context, const Words& words) {
  auto name = parse_object_name(context, words.object, {.image = !words.source.image.empty()});
  if (!name) return name.error();
  SourceWords from = words.source;
  from.begins_there = true;
  auto source = FileSource::open(context, from, *name);
  if (!source) return source.error();
  const SequenceNumber at = source->moments.at;
  auto moment = source->moment(context, at);
  if (!moment) return moment.error();
  auto history = open_history(*source->moments.past, {at, at});
  if (!history) return history.error();
  Located located{.name = std::move(*name),
                  .source = std::move(*source),
                  .mended = nullptr,
                  .history = std::move(*history),
                  .at = at,
                  .moment = std::move(*moment),
                  .found = {}};
  auto found = find_object(located.history, located.name, at);
  if (!found && found.error().code == ErrorCode::kNotFound) {
    const auto readable = located.way_can_be_read();
    if (!readable) return readable.error();
    if (!*readable) {
      const auto mended = located.mend();
      if (!mended) return mended.error();
      if (*mended) found = find_object(located.history, located.name, at);
    }
  }
  if (!found) return found.error();
  located.found = *found;
  return located;
}

// Nothing on it is damaged: the name is not there, rather than hidden.
Result<bool> Located::way_can_be_read() const {
  FilesHistory& files = *history.files;
  ObjectNumber number = files.root();
  std::string_view left = name.path;
  for (;;) {
    if (const auto loaded = files.load(std::span(&number, 1)); !loaded) return loaded.error();
    if (files.find(number) == nullptr || !files.state(number, at).exists) return false;
    const NameHistory* const names = files.names(number);
    left.remove_prefix(std::min(left.find_first_not_of('/'), left.size()));
    if (names == nullptr || left.empty()) return true;
    if (names->is_damaged()) return false;
    const std::string_view step = left.substr(0, left.find('/'));
    left.remove_prefix(step.size());
    number = names->find(step, at);
    if (number == 0) return true;
  }
}

Result<bool> Located::mend() {
  if (std::exchange(tried_to_mend, true)) return false;
  auto mending = std::make_unique<Mended>(*source.moments.past);
  LazyMender mender(*source.moments.past);
  const auto done = mender.mend(at, mending->overlay);
  if (!done) return done.error();
  if (!*done) return false;
  auto opened = open_history(mending->past, {at, at});
  if (!opened) return opened.error();
  history = std::move(*opened);
  mended = std::move(mending);
  return true;
}

Result<FileTree> Located::tree(bool one_level) {
  const FileTree::Options options{.root = found.inode, .at = at, .one_level = one_level};
  auto tree = FileTree::read(*history.files, options);
  if (!tree || !tree->damaged) return tree;
  const auto mended_now = mend();
  if (!mended_now) return mended_now.error();
  return *mended_now ? FileTree::read(*history.files, options) : std::move(tree);
}

Result<FileContents> Located::contents(ObjectNumber number) {
  auto contents = history.contents(number, at);
  if (contents ? contents->is_whole() : !is_damage(contents.error().code)) return contents;
  const auto mended_now = mend();
  if (!mended_now) return mended_now.error();
  return *mended_now ? history.contents(number, at) : std::move(contents);
}

void Located::tell_if_mended(const client::Context& context) const {
  if (mended == nullptr) return;
  context.console.err << fmt::format(
      "{} was damaged at #{}, as by a power cut: it was mended for this reading (ifsck --level 2 "
      "says what that is)\n",
      client::printable(source.name), at.value);
}

}  // namespace mariner::uvfs

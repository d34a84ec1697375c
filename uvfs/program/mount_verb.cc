// uvfs mount VOLUME FOLDER.
#include <fmt/format.h>
#include <sys/resource.h>

#include <filesystem>
#include <optional>
#include <ostream>
#include <utility>

#include "uvfs/kept_past.h"
#include "uvfs/mount/fuse_server.h"
#include "uvfs/program/background.h"
#include "uvfs/program/moment_name.h"
#include "uvfs/program/verbs.h"
#include "uvfs/raw_moment.h"

namespace mariner::uvfs {
namespace {

constexpr int kNice = 10;

Result<std::vector<Mark>> marks_of(const client::Context& context, const std::string& volume) {
  std::vector<Mark> all;
  if (volume.empty()) return all;  // an image has none
  api::MarkRequest request;
  request.set_volume(volume);
  const auto marks = context.client().mark_list(request);
  if (!marks) return marks.error();
  for (const api::Mark& each : marks->marks()) {
    all.push_back({each.name(), SequenceNumber{each.at().sequence()}});
  }
  return all;
}

}  // namespace

Answer mount(client::Context& context, const Words& words) {
  // (Of an image the folder is the only word.)
  const bool image = !words.source.image.empty();
  const std::string folder = image && words.folder.empty() ? words.object : words.folder;
  if (folder.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "expected VOLUME and FOLDER, or --image FILE and FOLDER"};
  }
  // (VOLUME:/p2, or :/p2 of an image: one of its parts.)
  auto object = parse_object_name(context, words.folder.empty() ? "" : words.object,
                                  {.image = image, .path_less = true});
  if (!object) return object.error();
  // (In the background this is in another folder.)
  context.flags.socket = std::filesystem::absolute(context.flags.socket).string();
  SourceWords from = words.source;
  from.moves_on = true;
  from.sandbox.reset();  // when there is a mount
  auto source = FileSource::open(context, from, *object);
  if (!source) return source.error();
  const std::string volume = object->volume;
  KeptPast kept(*source->moments.past);
  HistoryFiles files(
      {.past = &kept,
       .moment_of = [&](std::string_view text) { return source->moments.moment_of(as_time(text)); },
       .marks = [&] { return marks_of(context, volume); },
       .opens = [&](SequenceNumber at) { kept.share(at); }});
  const std::filesystem::path where = std::filesystem::absolute(folder);
  std::optional<Background> background;
  if (!words.foreground) {
    auto begun = Background::begin();
    if (!begun) return begun.error();
    background = std::move(*begun);
  }
  auto server = FuseServer::mount(files, {.folder = where.string(),
                                          .name = "mariner:" + source->name,
                                          .allow_other = words.allow_other});
  if (!server) return server.error();
  // (Who writes goes first, where the daemon is on this host, too.)
  (void)setpriority(PRIO_PROCESS, 0, kNice);
  if (const auto given_up = context.give_up({}); !given_up) return given_up.error();
  if (const auto chosen = source->choose_part(*object); !chosen) return chosen.error();
  if (object->path != "/") {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} cannot be mounted by itself: expected VOLUME, or VOLUME:/PART",
                             object->full_path())};
  }
  // (What there is is said here, not by whoever reads.)
  const auto reach = kept.reach();
  if (!reach) return reach.error();
  const auto understood = open_moment(kept, reach->newest);
  if (!understood && !is_about_contents(understood.error())) return understood.error();
  if (understood) {
    context.console.note(fmt::format(
        "The past of {0} is in {1}: {1}/@TIME, {1}/versions, {1}/deleted; umount {1} ends it\n",
        client::printable(source->name), client::printable(folder)));
  } else {
    context.console.err << fmt::format(
        "The past of {0} is in {1} as {1}/@TIME/{2}, without files: {3}\n",
        client::printable(source->name), client::printable(folder), RawMoment::kName,
        client::printable(understood.error().message));
  }
  context.console.out.flush();
  if (background) {
    if (const auto ready = background->ready(); !ready) return ready.error();
  }
  if (const auto ended = (*server)->run(); !ended) return ended.error();
  return client::ExitCode::kDone;
}

}  // namespace mariner::uvfs

// uvfs restore VOLUME:PATH@TIME --to HOSTPATH.
#include <ext2fs/ext2_fs.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <ostream>

#include "server/client/quantity.h"
#include "server/client/table.h"
#include "uvfs/program/file_tree.h"
#include "uvfs/program/host_tree.h"
#include "uvfs/program/located.h"
#include "uvfs/program/object_text.h"
#include "uvfs/program/verbs.h"

namespace mariner::uvfs {
namespace {

using Clock = std::chrono::steady_clock;

// How far it is, on a terminal's last line.
class Line {
 public:
  explicit Line(const client::Context& context)
      : err_(context.console.err),
        shown_(context.console.out_is_terminal && !context.console.quiet && !context.flags.json) {}
  ~Line() {
    if (drawn_) err_ << "\r\x1b[K" << std::flush;
  }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  void show(std::size_t done, std::size_t all, std::uint64_t bytes) {
    const auto now = Clock::now();
    if (!shown_ || now < next_) return;
    next_ = now + std::chrono::milliseconds(200);
    drawn_ = true;
    err_ << fmt::format("\r\x1b[K{} of {} files, {}", done, all, format_size(bytes)) << std::flush;
  }

 private:
  std::ostream& err_;
  const bool shown_;
  bool drawn_ = false;
  Clock::time_point next_ = Clock::now() + std::chrono::milliseconds(500);
};

// What there would be.
HostTree::Done planned(const FileTree& tree) {
  HostTree::Done done;
  done.notes = tree.skipped;
  for (const FileTree::Entry& each : tree.entries) {
    const std::uint16_t mode = each.object.mode;
    std::uint64_t& number = LINUX_S_ISREG(mode)   ? done.files
                            : LINUX_S_ISDIR(mode) ? done.directories
                            : LINUX_S_ISLNK(mode) ? done.links
                                                  : done.others;
    ++number;
    if (LINUX_S_ISREG(mode)) done.bytes += each.object.size;
  }
  return done;
}

api::FileRestore to_message(const Located& located, const HostTree::Done& done,
                            const Words& words) {
  api::FileRestore to;
  to.set_volume(located.source.name);
  put_name(located.name.full_path(), *to.mutable_path());
  *to.mutable_at() = located.moment;
  to.set_to(words.to);
  to.set_dry_run(words.dry_run);
  to.set_files(done.files);
  to.set_directories(done.directories);
  to.set_links(done.links);
  to.set_others(done.others);
  to.set_bytes(done.bytes);
  for (const std::string& each : done.notes) to.add_notes(each);
  to.set_mended(located.mended != nullptr);
  return to;
}

std::string host_path(const HostPlace& place, const FileTree& tree, std::size_t entry) {
  const std::string path = tree.path_of(entry);
  return path.empty() ? place.path() : place.path() + "/" + path;
}

Answer plan(client::Context& context, const Located& located, const FileTree& tree,
            const HostPlace& place, const Words& words) {
  api::FileRestore message = to_message(located, planned(tree), words);
  client::Table table({"MODE", ">USER", ">GROUP", ">SIZE", "WOULD BE"});
  for (std::size_t i = 0; i < tree.entries.size(); ++i) {
    const FileTree::Entry& each = tree.entries[i];
    const std::string path = host_path(place, tree, i);
    api::FileEntry& entry = *message.add_entries();
    put_name(path, *entry.mutable_name());
    *entry.mutable_object() = uvfs::to_message(context, each.object, each.inode);
    table.add({mode_text(each.object.mode), std::to_string(each.object.user),
               std::to_string(each.object.group), size_text(each.object), path});
  }
  if (context.print_json(message)) return client::ExitCode::kDone;
  context.console.print(table.text(context.console));
  context.console.note("Dry run: nothing was changed.\n");
  return client::ExitCode::kDone;
}

void tell(const client::Context& context, const Located& located, const HostTree::Done& done,
          const Words& words) {
  context.console.note(
      fmt::format("{}  {}\n{}: {} files, {} directories, {} links, {} others; {} written\n",
                  client::printable(located.name.at(located.at)), context.moment(located.moment),
                  client::printable(words.to), done.files, done.directories, done.links,
                  done.others, format_size(done.bytes)));
  located.tell_if_mended(context);
  for (const std::string& each : done.notes) {
    context.console.err << client::printable(each) << "\n";
  }
}

}  // namespace

Answer restore(client::Context& context, const Words& words) {
  // What is in the way is said before anything is read.
  auto place = HostPlace::open(words.to, words.force);
  if (!place) return place.error();
  Words from = words;
  from.source.sandbox = {.files = client::SandboxRules::Files::kMade, .folder = place->folder()};
  auto located = Located::open(context, from);
  if (!located) return located.error();
  const auto tree = located->tree(false);
  if (!tree) return tree.error();
  const bool directory = LINUX_S_ISDIR(tree->entries.front().object.mode);
  if (const auto good = place->check(directory); !good) return good.error();
  if (words.dry_run) return plan(context, *located, *tree, *place, words);
  Result<HostTree::Done> done = [&] {
    Line line(context);
    HostTree host(located->history, *tree, *place,
                  {.at = located->at,
                   .contents = [&](ObjectNumber number) { return located->contents(number); },
                   .privileged = geteuid() == 0,
                   .progress =
                       [&](std::size_t entries, std::uint64_t bytes) {
                         line.show(entries, tree->entries.size(), bytes);
                       }});
    return host.write();
  }();
  if (!done) return done.error();
  if (const auto taken = place->take_place(); !taken) return taken.error();
  if (!context.print_json(to_message(*located, *done, words))) {
    tell(context, *located, *done, words);
  }
  return done->failed || tree->damaged ? client::ExitCode::kFailed : client::ExitCode::kDone;
}

}  // namespace mariner::uvfs

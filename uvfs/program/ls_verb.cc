// uvfs ls VOLUME:PATH[@TIME].
#include <ext2fs/ext2_fs.h>
#include <fmt/format.h>

#include <ostream>

#include "server/client/table.h"
#include "uvfs/program/file_tree.h"
#include "uvfs/program/located.h"
#include "uvfs/program/object_text.h"
#include "uvfs/program/verbs.h"

namespace mariner::uvfs {
namespace {

// Empty: it is none, or damaged.
std::string target_of(Located& located, const FileTree::Entry& entry) {
  if (!LINUX_S_ISLNK(entry.object.mode)) return {};
  auto contents = located.contents(entry.inode);
  const auto target = contents ? contents->link_target() : contents.error();
  return target ? *target : std::string();
}

}  // namespace

Answer list(client::Context& context, const Words& words) {
  auto located = Located::open(context, words);
  if (!located) return located.error();
  auto tree = located->tree(true);
  if (!tree) return tree.error();
  // A file lists itself.
  const bool directory = LINUX_S_ISDIR(located->found.object.mode);
  if (!directory) tree->entries[0].name = located->name.full_path();
  api::FileList list;
  list.set_volume(located->source.name);
  put_name(located->name.full_path(), *list.mutable_path());
  *list.mutable_at() = located->moment;
  client::Table table({"MODE", ">LINKS", ">USER", ">GROUP", ">SIZE", "MODIFIED", "NAME"});
  for (std::size_t i = directory ? 1 : 0; i < tree->entries.size(); ++i) {
    const FileTree::Entry& each = tree->entries[i];
    const std::string target = target_of(*located, each);
    api::FileEntry& entry = *list.add_entries();
    put_name(each.name, *entry.mutable_name());
    *entry.mutable_object() = to_message(context, each.object, each.inode);
    if (!target.empty()) put_name(target, *entry.mutable_object()->mutable_target());
    const ObjectState& object = each.object;
    table.add({mode_text(object.mode), std::to_string(object.links), std::to_string(object.user),
               std::to_string(object.group), size_text(object), time_text(context, object.modified),
               each.name + (target.empty() ? "" : " -> " + target)});
  }
  for (const std::string& each : tree->skipped) list.add_skipped(each);
  list.set_mended(located->mended != nullptr);
  const auto code = tree->damaged ? client::ExitCode::kFailed : client::ExitCode::kDone;
  if (context.print_json(list)) return code;
  context.console.note(
      fmt::format("{}  {}\n", located->source.name, context.moment(located->moment)));
  if (!table.empty()) context.console.print(table.text(context.console));
  located->tell_if_mended(context);
  for (const std::string& each : tree->skipped) {
    context.console.err << client::printable(each) << "\n";
  }
  return code;
}

}  // namespace mariner::uvfs

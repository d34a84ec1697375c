// mariner group create | list | show | add | remove | delete
#include <fmt/format.h>

#include <vector>

#include "server/client/table.h"
#include "server/client/verbs.h"

namespace mariner::client {
namespace {

struct MembersOptions {
  std::string name;
  std::vector<std::string> volumes;
};

struct MemberOptions {
  std::string name;
  std::string volume;
};

api::GroupRequest request_of(const Context& context, const std::string& name) {
  api::GroupRequest request;
  request.set_name(name);
  request.set_dry_run(context.flags.dry_run);
  return request;
}

std::string members_text(const api::Group& group) {
  std::string text;
  for (const auto& member : group.members()) text += (text.empty() ? "" : ", ") + member.volume();
  return text;
}

// What `group` is now, or would be.
Result<ExitCode> tell(const Context& context, const Result<api::Group>& group) {
  if (!group) return group.error();
  if (context.print_json(*group)) return ExitCode::kDone;
  context.console.note(fmt::format("{} {}: {}\n", printable(group->name()),
                                   context.flags.dry_run ? "would have" : "has",
                                   printable(members_text(*group))));
  context.console.note(
      fmt::format("Its moments begin at {}\n", context.local_time(group->oldest_ns())));
  context.note_dry_run();
  return ExitCode::kDone;
}

Result<ExitCode> create(Context& context, const MembersOptions& options) {
  api::GroupRequest request = request_of(context, options.name);
  request.mutable_volumes()->Assign(options.volumes.begin(), options.volumes.end());
  return tell(context, context.client().group_create(request));
}

Result<ExitCode> add(Context& context, const MembersOptions& options) {
  api::GroupRequest request = request_of(context, options.name);
  request.mutable_volumes()->Assign(options.volumes.begin(), options.volumes.end());
  return tell(context, context.client().group_add(request));
}

Result<ExitCode> remove(Context& context, const MemberOptions& options) {
  api::GroupRequest request = request_of(context, options.name);
  request.add_volumes(options.volume);
  return tell(context, context.client().group_remove(request));
}

Result<ExitCode> list_groups(Context& context, const NoOptions&) {
  const auto groups = context.client().group_list();
  if (!groups) return groups.error();
  if (context.print_json(*groups)) return ExitCode::kDone;
  Table table({"GROUP", "VOLUMES", "OLDEST", ">MARKS", ">VIEWS"});
  for (const auto& group : groups->groups()) {
    table.add({group.name(), members_text(group), context.local_time(group.oldest_ns()),
               std::to_string(group.marks()), std::to_string(group.views())});
  }
  context.console.print(table.empty() ? "There are no groups.\n" : table.text(context.console));
  return ExitCode::kDone;
}

Result<ExitCode> show_group(Context& context, const std::string& name) {
  const auto group = context.client().group_show(request_of(context, name));
  if (!group) return group.error();
  if (context.print_json(*group)) return ExitCode::kDone;
  Facts facts;
  facts.add("group", group->name());
  facts.add("created", context.local_time(group->created_ns()));
  facts.add("oldest", context.local_time(group->oldest_ns()));
  facts.add("marks", std::to_string(group->marks()));
  facts.add("views", std::to_string(group->views()));
  if (group->rolling_back()) facts.add("rollback", "under way");
  context.console.print(facts.text(context.console));
  Table table({"VOLUME", "JOINED", "OLDEST"});
  for (const auto& member : group->members()) {
    table.add({member.volume(), context.local_time(member.joined_ns()),
               member.has_oldest() ? context.local_time(member.oldest().time_ns()) : "gone"});
  }
  context.console.print("\n" + table.text(context.console));
  return ExitCode::kDone;
}

Result<ExitCode> erase(Context& context, const std::string& name) {
  auto client = context.client();
  api::GroupRequest request = request_of(context, name);
  const auto group = client.group_show(request);
  if (!group) return group.error();
  if (!context.flags.json) {
    context.console.note(
        fmt::format("This deletes the group {} with its {} marks. Its volumes "
                    "stay, with their history: {}\n",
                    printable(name), group->marks(), printable(members_text(*group))));
  }
  if (!context.flags.dry_run && !context.confirmed(name)) return ExitCode::kNotConfirmed;
  const auto deleted = client.group_delete(request);
  if (!deleted) return deleted.error();
  if (context.print_json(*deleted)) return ExitCode::kDone;
  context.console.note(fmt::format("{} {}\n", printable(name),
                                   context.flags.dry_run ? "would be deleted" : "deleted"));
  context.note_dry_run();
  return ExitCode::kDone;
}

void add_members_options(CLI::App& verb, MembersOptions& options, const char* type) {
  verb.add_option("GROUP", options.name, "The group")->required()->type_name(type);
  verb.add_option("VOLUME", options.volumes, "Its volumes")->required()->type_name("VOLUME");
}

void add_name(CLI::App& verb, std::string& name) {
  verb.add_option("GROUP", name, "The group")->required()->type_name("GROUP");
}

}  // namespace

void add_group_verbs(CLI::App& app, Context& context) {
  auto& noun = *app.add_subcommand("group", "Volumes that share one time line");
  noun.require_subcommand(1);
  add_verb<MembersOptions>(
      noun, context, "create", "Make a group of volumes; its moments begin now",
      [](CLI::App& verb, MembersOptions& options) { add_members_options(verb, options, "NAME"); },
      create);
  add_verb<NoOptions>(noun, context, "list", "List the groups", no_options, list_groups);
  add_verb<std::string>(noun, context, "show", "Show a group", add_name, show_group);
  add_verb<MembersOptions>(
      noun, context, "add", "Let volumes join a group; its moments begin anew, now",
      [](CLI::App& verb, MembersOptions& options) { add_members_options(verb, options, "GROUP"); },
      add);
  add_verb<MemberOptions>(
      noun, context, "remove", "Take a volume out of a group; the volume stays",
      [](CLI::App& verb, MemberOptions& options) {
        verb.add_option("GROUP", options.name, "The group")->required()->type_name("GROUP");
        verb.add_option("VOLUME", options.volume, "The volume")->required()->type_name("MEMBER");
      },
      remove);
  add_verb<std::string>(noun, context, "delete", "Delete a group with its marks, and no volume",
                        add_name, erase);
}

}  // namespace mariner::client

// mariner mark add | list | remove
#include <fmt/format.h>

#include "server/client/group_moments.h"
#include "server/client/quantity.h"
#include "server/client/table.h"
#include "server/client/verbs.h"

namespace mariner::client {
namespace {

struct AddOptions {
  std::string target;
  std::string name;
  std::string lock;
};

struct RemoveOptions {
  std::string volume;
  std::string name;
};

Result<ExitCode> add(Context& context, const AddOptions& options) {
  const auto target = context.target(options.target);
  if (!target) return target.error();
  api::MarkRequest request;
  request.set_volume(target->object);
  request.set_name(options.name);
  *request.mutable_at() = target->at;
  request.set_dry_run(context.flags.dry_run);
  if (!options.lock.empty()) {
    const auto lock = parse_duration(options.lock);
    if (!lock) return lock.error();
    if (*lock < std::chrono::seconds(1))
      return Error{ErrorCode::kInvalidArgument, "--lock: expected a second or more"};
    request.set_lock_s(
        static_cast<std::uint64_t>(std::chrono::floor<std::chrono::seconds>(*lock).count()));
  }
  if (const auto group = group_of(request.volume()))
    return add_group_mark(context, *group, request);
  const auto mark = context.client().mark_add(request);
  if (!mark) return mark.error();
  if (context.print_json(*mark)) return ExitCode::kDone;
  context.console.note(fmt::format(
      "{} of {} {} {}\n", printable(mark->name()), printable(mark->volume()),
      context.flags.dry_run ? "would mark" : "marks", printable(context.moment(mark->at()))));
  if (mark->locked_until_ns() != 0) {
    context.console.note(
        fmt::format("Locked until {}\n", context.local_time(mark->locked_until_ns())));
  }
  context.note_dry_run();
  return ExitCode::kDone;
}

Result<ExitCode> list_marks(Context& context, const std::string& volume) {
  if (const auto group = group_of(volume)) return list_group_marks(context, *group);
  api::MarkRequest request;
  request.set_volume(volume);
  const auto marks = context.client().mark_list(request);
  if (!marks) return marks.error();
  if (context.print_json(*marks)) return ExitCode::kDone;
  Table table({"MARK", ">SEQUENCE", "LOCAL TIME", "UTC", "LOCKED UNTIL", "SET BY"});
  for (const auto& mark : marks->marks()) {
    table.add({mark.name(), std::to_string(mark.at().sequence()),
               context.local_time(mark.at().time_ns()), context.utc_time(mark.at().time_ns()),
               context.short_time(mark.locked_until_ns()),
               mark.automatic() ? "a rollback" : "an administrator"});
  }
  context.console.print(table.empty() ? "There are no marks.\n" : table.text(context.console));
  return ExitCode::kDone;
}

Result<ExitCode> remove(Context& context, const RemoveOptions& options) {
  if (const auto group = group_of(options.volume))
    return remove_group_mark(context, *group, options.name);
  auto client = context.client();
  api::MarkRequest request;
  request.set_volume(options.volume);
  request.set_name(options.name);
  const auto marks = client.mark_list(request);
  if (!marks) return marks.error();
  for (const auto& mark : marks->marks()) {
    if (mark.name() != options.name || mark.locked_until_ns() <= context.now().ns) continue;
    if (!context.flags.json) {
      context.console.note(fmt::format(
          "{} is locked until {}. Without it, the history before the window may go: {} would "
          "no longer be reachable.\n",
          printable(mark.name()), context.local_time(mark.locked_until_ns()),
          printable(context.moment(mark.at()))));
    }
    if (!context.flags.dry_run && !context.confirmed(options.volume))
      return ExitCode::kNotConfirmed;
  }
  request.set_dry_run(context.flags.dry_run);
  const auto mark = client.mark_remove(request);
  if (!mark) return mark.error();
  if (context.print_json(*mark)) return ExitCode::kDone;
  context.console.note(fmt::format("{} of {} {}; it marked {}\n", printable(mark->name()),
                                   printable(mark->volume()),
                                   context.flags.dry_run ? "would be removed" : "removed",
                                   printable(context.moment(mark->at()))));
  context.note_dry_run();
  return ExitCode::kDone;
}

}  // namespace

void add_mark_verbs(CLI::App& app, Context& context) {
  auto& noun = *app.add_subcommand("mark", "Name moments, and keep them");
  noun.require_subcommand(1);
  add_verb<AddOptions>(
      noun, context, "add", "Name a moment of a volume, or of a group of volumes",
      [](CLI::App& verb, AddOptions& options) {
        verb.add_option("OBJECT[@TIME]", options.target,
                        "The volume, or group:GROUP, and the moment (default: now)")
            ->required()
            ->type_name("OBJECT@TIME");
        verb.add_option("NAME", options.name, "The mark's name")->required()->type_name("NAME");
        verb.add_option("--lock", options.lock, "Keep the moment so long, also past the window")
            ->type_name("DURATION");
      },
      add);
  add_verb<std::string>(
      noun, context, "list", "List the marks of a volume, or of a group",
      [](CLI::App& verb, std::string& volume) {
        verb.add_option("OBJECT", volume, "The volume, or group:GROUP")
            ->required()
            ->type_name("OBJECT");
      },
      list_marks);
  add_verb<RemoveOptions>(
      noun, context, "remove", "Remove a mark; the moment itself stays while the window holds it",
      [](CLI::App& verb, RemoveOptions& options) {
        verb.add_option("OBJECT", options.volume, "The volume, or group:GROUP")
            ->required()
            ->type_name("OBJECT");
        verb.add_option("MARK", options.name, "The mark")->required()->type_name("MARK");
      },
      remove);
}

}  // namespace mariner::client

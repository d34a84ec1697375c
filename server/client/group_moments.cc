#include "server/client/group_moments.h"

#include <fmt/format.h>

#include "server/client/quantity.h"
#include "server/client/restoring_text.h"
#include "server/client/session_text.h"
#include "server/client/table.h"

namespace mariner::client {
namespace {

constexpr std::string_view kPrefix = "group:";

// "2026-11-20T14:32:05.123456789+01:00  (2026-11-20T13:32:05.123456789Z)".
std::string time_of(const Context& context, const api::Moment& moment) {
  return fmt::format("{}  ({})", context.local_time(moment.time_ns()),
                     context.utc_time(moment.time_ns()));
}

// The volumes, each with where it is at the moment.
std::string parts_text(const api::GroupMark& mark) {
  std::string text;
  for (const auto& part : mark.parts()) {
    text += fmt::format("{}{} #{}", text.empty() ? "" : ", ", part.volume(), part.at().sequence());
  }
  return text;
}

void describe(const Context& context, const api::GroupRollbackAnswer& plan, bool undo) {
  const auto& console = context.console;
  console.note(
      fmt::format("{} the group {}, all at one point, to {}\n",
                  undo ? "This undoes the last rollback of, and returns," : "This rolls back",
                  console.bold(printable(plan.group())), time_of(context, plan.target())));
  for (const auto& member : plan.members()) {
    console.note(fmt::format("{} to {}: {}, {} writes after that moment\n",
                             printable(member.volume()), printable(context.moment(member.target())),
                             format_size(member.changed_bytes()), member.undone_writes()));
    for (const auto& session : member.sessions()) console.note(session_line(session));
  }
  console.note("Nothing is lost, rollback undo returns to what is now\n");
}

}  // namespace

std::optional<std::string> group_of(const std::string& object) {
  if (!object.starts_with(kPrefix)) return std::nullopt;
  return object.substr(kPrefix.size());
}

Result<ExitCode> add_group_mark(Context& context, const std::string& group,
                                const api::MarkRequest& request) {
  api::GroupMarkRequest asked;
  asked.set_group(group);
  asked.set_name(request.name());
  asked.set_lock_s(request.lock_s());
  *asked.mutable_at() = request.at();
  asked.set_dry_run(request.dry_run());
  const auto mark = context.client().group_mark_add(asked);
  if (!mark) return mark.error();
  if (context.print_json(*mark)) return ExitCode::kDone;
  context.console.note(fmt::format("{} of the group {} {} {}: {}\n", printable(mark->name()),
                                   printable(mark->group()),
                                   context.flags.dry_run ? "would mark" : "marks",
                                   time_of(context, mark->at()), printable(parts_text(*mark))));
  if (mark->locked_until_ns() != 0) {
    context.console.note(
        fmt::format("Locked until {}\n", context.local_time(mark->locked_until_ns())));
  }
  context.note_dry_run();
  return ExitCode::kDone;
}

Result<ExitCode> list_group_marks(Context& context, const std::string& group) {
  api::GroupMarkRequest request;
  request.set_group(group);
  const auto marks = context.client().group_mark_list(request);
  if (!marks) return marks.error();
  if (context.print_json(*marks)) return ExitCode::kDone;
  Table table({"MARK", "LOCAL TIME", "UTC", "LOCKED UNTIL", "SET BY", "VOLUMES"});
  for (const auto& mark : marks->marks()) {
    table.add({mark.name(), context.local_time(mark.at().time_ns()),
               context.utc_time(mark.at().time_ns()), context.short_time(mark.locked_until_ns()),
               mark.automatic() ? "a rollback" : "an administrator", parts_text(mark)});
  }
  context.console.print(table.empty() ? "There are no marks.\n" : table.text(context.console));
  return ExitCode::kDone;
}

Result<ExitCode> remove_group_mark(Context& context, const std::string& group,
                                   const std::string& name) {
  auto client = context.client();
  api::GroupMarkRequest request;
  request.set_group(group);
  request.set_name(name);
  const auto marks = client.group_mark_list(request);
  if (!marks) return marks.error();
  for (const auto& mark : marks->marks()) {
    if (mark.name() != name || mark.locked_until_ns() <= context.now().ns) continue;
    if (!context.flags.json) {
      context.console.note(fmt::format(
          "{} is locked until {}. Without it, the history before the window may go, of all volumes "
          "of the group.\n",
          printable(mark.name()), context.local_time(mark.locked_until_ns())));
    }
    if (!context.flags.dry_run && !context.confirmed(group)) return ExitCode::kNotConfirmed;
  }
  request.set_dry_run(context.flags.dry_run);
  const auto mark = client.group_mark_remove(request);
  if (!mark) return mark.error();
  if (context.print_json(*mark)) return ExitCode::kDone;
  context.console.note(fmt::format(
      "{} of the group {} {}; it marked {}\n", printable(mark->name()), printable(mark->group()),
      context.flags.dry_run ? "would be removed" : "removed", time_of(context, mark->at())));
  context.note_dry_run();
  return ExitCode::kDone;
}

Result<ExitCode> expose_group(Context& context, const std::string& group,
                              const api::ExposeRequest& request) {
  api::GroupExposeRequest asked;
  asked.set_group(group);
  *asked.mutable_at() = request.at();
  asked.set_writable(request.writable());
  asked.set_ttl_s(request.ttl_s());
  asked.set_name(request.name());
  asked.set_overlay_bytes_max(request.overlay_bytes_max());
  asked.set_keep(request.keep());
  asked.set_dry_run(request.dry_run());
  const auto view = context.client().group_expose(asked);
  if (!view) return view.error();
  if (context.print_json(*view)) return ExitCode::kDone;
  const auto& console = context.console;
  Facts facts;
  facts.add("view",
            fmt::format("{}, {}{}", view->name(), request.writable() ? "writable" : "read-only",
                        request.dry_run() ? " (not exposed: a dry run)" : ""));
  facts.add("group", view->group());
  facts.add("moment", time_of(context, view->at()));
  for (const auto& part : view->views()) {
    facts.add(part.volume(), fmt::format("{}{}", context.moment(part.at()),
                                         part.iqn().empty() ? "" : ", target " + part.iqn()));
  }
  const std::uint64_t expires_ns = view->views().empty() ? 0 : view->views(0).expires_ns();
  facts.add("expires", expires_ns == 0 ? "never" : context.local_time(expires_ns));
  if (request.keep()) facts.add("kept", "also when the log is full");
  console.print(facts.text(console));
  if (!request.dry_run()) {
    console.note(fmt::format(
        "\nEach volume's view is a target of its own, as the volume is. mariner view unexpose {} "
        "ends all of them.\nmariner-view(1) says what a host must know before it uses them.\n",
        printable(view->name())));
  }
  context.note_dry_run();
  return ExitCode::kDone;
}

// What is carried out is the plan that was shown: its time, of which all volumes know by then.
Result<ExitCode> roll_back_group(Context& context, const std::string& group,
                                 const api::RollbackRequest& request) {
  context.force_helps = !request.force();
  auto client = context.client();
  api::GroupRollbackRequest asked;
  asked.set_group(group);
  asked.set_undo(request.undo());
  if (request.has_at()) *asked.mutable_at() = request.at();
  asked.set_force(request.force());
  asked.set_dry_run(true);
  const auto plan = client.group_rollback(asked);
  if (!plan) return plan.error();
  if (context.flags.dry_run && context.print_json(*plan)) return ExitCode::kDone;
  if (!context.flags.json) describe(context, *plan, request.undo());
  if (context.flags.dry_run) {
    context.note_dry_run();
    return ExitCode::kDone;
  }
  if (!context.confirmed(group)) return ExitCode::kNotConfirmed;
  asked.set_dry_run(false);
  if (!request.undo()) asked.mutable_at()->set_time_ns(plan->target().time_ns());
  const auto done = client.group_rollback(asked);
  if (!done) return done.error();
  if (context.print_json(*done)) return ExitCode::kDone;
  context.console.note(fmt::format("The group {} is as of {}\n", printable(done->group()),
                                   time_of(context, done->target())));
  if (!done->before_mark().empty()) {
    context.console.note(fmt::format(
        "The moment before is marked {}; mariner rollback undo group:{} returns to it\n",
        printable(done->before_mark()), printable(done->group())));
  }
  return ExitCode::kDone;
}

Result<ExitCode> show_group_restoring(Context& context, const std::string& group) {
  api::GroupRequest request;
  request.set_name(group);
  const auto shown = context.client().group_show(request);
  if (!shown) return shown.error();
  if (context.print_json(*shown)) return ExitCode::kDone;
  if (shown->rolling_back()) {
    context.console.print(fmt::format(
        "group:{}: a rollback is under way; hosts wait until all volumes have it on record\n",
        printable(group)));
  }
  for (const auto& member : shown->members()) {
    context.console.print(fmt::format("{}: {}\n", printable(member.volume()),
                                      member.has_restore()
                                          ? restoring_text(member.restore())
                                          : std::string("no rollback is being restored")));
  }
  return ExitCode::kDone;
}

}  // namespace mariner::client

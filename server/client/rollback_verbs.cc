// mariner rollback VOLUME@TIME | rollback undo VOLUME | rollback status VOLUME
#include <fmt/format.h>

#include <optional>

#include "server/client/consistent.h"
#include "server/client/group_moments.h"
#include "server/client/quantity.h"
#include "server/client/restoring_text.h"
#include "server/client/session_text.h"
#include "server/client/verbs.h"

namespace mariner::client {
namespace {

struct RollbackOptions {
  std::string target;
  bool force = false;
  bool consistent = false;
};

void describe(const Context& context, const api::RollbackAnswer& plan, bool undo) {
  const auto& console = context.console;
  console.note(fmt::format(
      "{} {} to {}\n", undo ? "This undoes the last rollback and returns" : "This rolls back",
      console.bold(printable(plan.volume())), printable(context.moment(plan.target()))));
  console.note(fmt::format("Newest now: {}; nothing is lost, rollback undo returns to it\n",
                           printable(context.moment(plan.before()))));
  console.note(fmt::format("Changes:    {} of the volume, {} writes after that moment\n",
                           format_size(plan.changed_bytes()), plan.undone_writes()));
  for (const auto& session : plan.sessions()) console.note(session_line(session));
}

Result<ExitCode> carry_out(Context& context, AdminClient& client, api::RollbackRequest& request) {
  request.set_dry_run(false);
  const auto done = client.rollback(request);
  if (!done) return done.error();
  if (context.print_json(*done)) return ExitCode::kDone;
  context.console.note(fmt::format("{} is as of {}\n", printable(done->volume()),
                                   printable(context.moment(done->target()))));
  if (!done->before_mark().empty()) {
    context.console.note(
        fmt::format("The moment before is marked {}; mariner rollback undo {} returns to it\n",
                    printable(done->before_mark()), printable(done->volume())));
  }
  return ExitCode::kDone;
}

// The plan is shown before it is carried out; what is carried out is the plan: its sequence number
// and not a time that might by now mean something else. A script is shown no plan: there is none.
Result<ExitCode> run(Context& context, api::RollbackRequest request, bool consistent) {
  if (const auto group = group_of(request.volume())) {
    if (consistent)
      return Error{ErrorCode::kInvalidArgument, "--consistent is for a rollback of one volume"};
    return roll_back_group(context, *group, request);
  }
  context.force_helps = !request.force();
  auto client = context.client();
  const bool is_shown = context.flags.dry_run || !context.flags.json || !context.flags.yes;
  if (!is_shown && !consistent) return carry_out(context, client, request);
  request.set_dry_run(true);
  auto plan = client.rollback(request);
  if (!plan) return plan.error();
  std::optional<ConsistentMoment> mended;
  if (consistent) {
    auto found = ConsistentMoment::find(
        context, {.volume = request.volume(), .sequence = plan->target().sequence()});
    if (!found) return found.error();
    mended.emplace(*std::move(found));
    plan->set_repaired_blocks(mended->blocks());
  }
  if (context.flags.dry_run && context.print_json(*plan)) return ExitCode::kDone;
  if (!context.flags.json) describe(context, *plan, request.undo());
  if (mended && !context.flags.json)
    context.console.note(fmt::format("Repaired:   {}\n", mended->text()));
  if (context.flags.dry_run) {
    context.note_dry_run();
    return ExitCode::kDone;
  }
  if (!context.confirmed(request.volume())) return ExitCode::kNotConfirmed;
  if (!request.undo()) request.mutable_at()->set_sequence(plan->target().sequence());
  if (mended) {
    const auto id = mended->hand_over(client);
    if (!id) return id.error();
    request.set_repairs(*id);
  }
  return carry_out(context, client, request);
}

Result<ExitCode> rollback(Context& context, const RollbackOptions& options) {
  if (options.target.empty())
    return Error{ErrorCode::kInvalidArgument, "expected VOLUME@TIME, or undo VOLUME"};
  const auto target = context.target(options.target);
  if (!target) return target.error();
  if (!target->has_time) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("expected VOLUME@TIME, as in {}@-10m", target->object)};
  }
  api::RollbackRequest request;
  request.set_volume(target->object);
  *request.mutable_at() = target->at;
  request.set_force(options.force);
  return run(context, request, options.consistent);
}

Result<ExitCode> undo(Context& context, const RollbackOptions& options) {
  api::RollbackRequest request;
  request.set_volume(options.target);
  request.set_undo(true);
  request.set_force(options.force);
  return run(context, request, false);
}

// How far the image is with what the last rollback changed.
Result<ExitCode> show_rollback(Context& context, const std::string& name) {
  if (const auto group = group_of(name)) return show_group_restoring(context, *group);
  api::VolumeRequest request;
  request.set_name(name);
  const auto volume = context.client().volume_show(request);
  if (!volume) return volume.error();
  if (context.print_json(volume->restore())) return ExitCode::kDone;
  if (!volume->has_restore()) {
    context.console.print(fmt::format("{}: no rollback is being restored\n", printable(name)));
    return ExitCode::kDone;
  }
  context.console.print(
      fmt::format("{}: {}\n", printable(name), restoring_text(volume->restore())));
  return ExitCode::kDone;
}

void add_force(CLI::App& verb, bool& force) {
  verb.add_flag("--force", force,
                "Also while initiators have the LUN open; they see new data at once");
}

}  // namespace

void add_rollback_verbs(CLI::App& app, Context& context) {
  auto options = std::make_shared<RollbackOptions>();
  auto& noun = *app.add_subcommand("rollback", "Return a volume, or all of a group, to a moment");
  noun.add_option("OBJECT@TIME", options->target, "The volume, or group:GROUP, and the moment")
      ->type_name("OBJECT@TIME");
  add_force(noun, options->force);
  noun.add_flag("--consistent", options->consistent,
                "Mend the file system of that moment, before any host sees it");
  auto undone = std::make_shared<RollbackOptions>();
  auto* verb = noun.add_subcommand("undo", "Return to the moment before the last rollback");
  verb->add_option("OBJECT", undone->target, "The volume, or group:GROUP")
      ->required()
      ->type_name("OBJECT");
  add_force(*verb, undone->force);
  auto asked = std::make_shared<std::string>();
  auto* shown = noun.add_subcommand("status", "How far the image is with what a rollback changed");
  shown->add_option("OBJECT", *asked, "The volume, or group:GROUP")
      ->required()
      ->type_name("OBJECT");
  noun.callback([&context, verb, shown, options, undone, asked] {
    context.action = [&context, verb, shown, options, undone, asked]() -> Result<ExitCode> {
      if (shown->parsed()) return show_rollback(context, *asked);
      if (verb->parsed() && options->consistent) {
        return Error{ErrorCode::kInvalidArgument,
                     "--consistent is for a rollback to a moment; undo returns to what was before"};
      }
      return verb->parsed() ? undo(context, *undone) : rollback(context, *options);
    };
  });
}

}  // namespace mariner::client

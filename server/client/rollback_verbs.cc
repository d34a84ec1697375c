// mariner rollback VOLUME@TIME | rollback undo VOLUME
#include <fmt/format.h>

#include "server/client/quantity.h"
#include "server/client/session_text.h"
#include "server/client/verbs.h"

namespace mariner::client {
namespace {

struct RollbackOptions {
  std::string target;
  bool force = false;
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

// The plan is shown before it is carried out; what is carried out is the plan: its sequence number
// and not a time that might by now mean something else.
Result<ExitCode> run(Context& context, api::RollbackRequest request) {
  context.force_helps = !request.force();
  auto client = context.client();
  request.set_dry_run(true);
  const auto plan = client.rollback(request);
  if (!plan) return plan.error();
  if (context.flags.dry_run && context.print_json(*plan)) return ExitCode::kDone;
  if (!context.flags.json) describe(context, *plan, request.undo());
  if (context.flags.dry_run) {
    context.note_dry_run();
    return ExitCode::kDone;
  }
  if (!context.confirmed(request.volume())) return ExitCode::kNotConfirmed;
  request.set_dry_run(false);
  if (!request.undo()) request.mutable_at()->set_sequence(plan->target().sequence());
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
  return run(context, request);
}

Result<ExitCode> undo(Context& context, const RollbackOptions& options) {
  api::RollbackRequest request;
  request.set_volume(options.target);
  request.set_undo(true);
  request.set_force(options.force);
  return run(context, request);
}

void add_force(CLI::App& verb, bool& force) {
  verb.add_flag("--force", force,
                "Also while initiators have the LUN open; they see new data at once");
}

}  // namespace

void add_rollback_verbs(CLI::App& app, Context& context) {
  auto options = std::make_shared<RollbackOptions>();
  auto& noun = *app.add_subcommand("rollback", "Return a volume to a moment");
  noun.add_option("VOLUME@TIME", options->target, "The volume and the moment")
      ->type_name("VOLUME@TIME");
  add_force(noun, options->force);
  auto undone = std::make_shared<RollbackOptions>();
  auto* verb = noun.add_subcommand("undo", "Return to the moment before the last rollback");
  verb->add_option("VOLUME", undone->target, "The volume")->required()->type_name("VOLUME");
  add_force(*verb, undone->force);
  noun.callback([&context, verb, options, undone] {
    context.action = [&context, verb, options, undone] {
      return verb->parsed() ? undo(context, *undone) : rollback(context, *options);
    };
  });
}

}  // namespace mariner::client

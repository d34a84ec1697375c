// mariner view expose | list | unexpose
#include <fmt/format.h>

#include <optional>
#include <set>

#include "server/client/consistent.h"
#include "server/client/group_moments.h"
#include "server/client/quantity.h"
#include "server/client/session_text.h"
#include "server/client/table.h"
#include "server/client/verbs.h"

namespace mariner::client {
namespace {

struct ExposeOptions {
  std::string target;
  std::string name;
  std::string ttl;
  std::string overlay_max;
  bool writable = false;
  bool keep = false;
  bool consistent = false;
};

struct UnexposeOptions {
  std::string name;
  bool force = false;
};

// What a host must know before it uses a copy of a disk that it may have mounted already.
std::string host_advice(const api::View& view) {
  const auto iqn = printable(view.iqn());
  return fmt::format(
      "On a Linux host:\n"
      "  iscsiadm -m discovery -t sendtargets -p ADDRESS\n"
      "  iscsiadm -m node -T {0} -p ADDRESS --login\n"
      "Its file systems have the same UUIDs as the volume's. Where both are on one host:\n"
      "  XFS    mount -o {1}nouuid DEVICE /mnt{2}\n"
      "  ext4   mount {3}DEVICE /mnt, by device and not by UUID or label{4}\n"
      "  LVM    vgimportclone --basevgname NAME DEVICE\n"
      "{5}"
      "Windows keeps a disk with a known signature offline: look at it on another host, or bring "
      "it online in\n"
      "Disk Management, which {6}.\n",
      iqn, view.writable() ? "" : "ro,norecovery,",
      view.writable() ? ", or xfs_admin -U generate DEVICE" : "",
      view.writable() ? "" : "-o ro,noload ",
      view.writable() ? "; or tune2fs -U random DEVICE first" : "",
      view.writable() ? ""
                      : "The view is read-only: journals cannot be replayed, so expose it with "
                        "--writable if a mount fails.\n",
      view.writable() ? "writes a new signature"
                      : "needs --writable, because it writes a new signature");
}

// From here on `request` means exactly the moment that was mended, with its repairs.
Result<ConsistentMoment> make_consistent(const Context& context, api::ExposeRequest& request) {
  auto client = context.client();
  api::ExposeRequest question = request;
  question.set_dry_run(true);
  const auto planned = client.view_expose(question);
  if (!planned) return planned.error();
  const std::uint64_t sequence = planned->at().sequence();
  auto mended = ConsistentMoment::find(context, {.volume = request.volume(), .sequence = sequence});
  if (!mended) return mended.error();
  request.mutable_at()->set_sequence(sequence);
  if (request.dry_run()) return mended;
  const auto id = mended->hand_over(client);
  if (!id) return id.error();
  request.set_repairs(*id);
  return mended;
}

Result<ExitCode> expose(Context& context, const ExposeOptions& options) {
  const auto target = context.target(options.target);
  if (!target) return target.error();
  api::ExposeRequest request;
  request.set_volume(target->object);
  *request.mutable_at() = target->at;
  request.set_writable(options.writable);
  request.set_name(options.name);
  request.set_keep(options.keep);
  request.set_dry_run(context.flags.dry_run);
  if (!options.overlay_max.empty()) {
    const auto size = parse_size(options.overlay_max);
    if (!size) return size.error();
    if (!options.writable)
      return Error{ErrorCode::kInvalidArgument, "--overlay-max is for a view with --writable"};
    if (size->bytes == 0)
      return Error{ErrorCode::kInvalidArgument, "--overlay-max: expected a size, found 0"};
    request.set_overlay_bytes_max(size->bytes);
  }
  if (!options.ttl.empty()) {
    const auto ttl = parse_duration(options.ttl);
    if (!ttl) return ttl.error();
    if (*ttl < std::chrono::seconds(1))
      return Error{ErrorCode::kInvalidArgument, "--ttl: expected a second or more"};
    request.set_ttl_s(
        static_cast<std::uint64_t>(std::chrono::floor<std::chrono::seconds>(*ttl).count()));
  }
  if (const auto group = group_of(request.volume())) {
    if (options.consistent)
      return Error{ErrorCode::kInvalidArgument, "--consistent is for a view of one volume"};
    return expose_group(context, *group, request);
  }
  std::optional<ConsistentMoment> mended;
  if (options.consistent) {
    auto found = make_consistent(context, request);
    if (!found) return found.error();
    mended.emplace(*std::move(found));
  }
  auto view = context.client().view_expose(request);
  if (!view) return view.error();
  if (mended) view->set_repaired_blocks(mended->blocks());
  if (context.print_json(*view)) return ExitCode::kDone;
  const auto& console = context.console;
  Facts facts;
  facts.add("view",
            fmt::format("{}, {}{}", view->name(), view->writable() ? "writable" : "read-only",
                        context.flags.dry_run ? " (not exposed: a dry run)" : ""));
  facts.add("volume", view->volume());
  facts.add("size", format_size(view->size_bytes()));
  facts.add("moment", context.moment(view->at()));
  if (mended) facts.add("repaired", mended->text());
  facts.add("target", view->iqn());
  facts.add("expires", view->expires_ns() == 0 ? "never" : context.local_time(view->expires_ns()));
  if (view->overlay_bytes_max() != 0)
    facts.add("holds", "at most " + format_size(view->overlay_bytes_max()) + " of what is written");
  if (view->keep()) facts.add("kept", "also when the log is full");
  console.print(facts.text(console));
  if (!context.flags.dry_run) console.note("\n" + host_advice(*view));
  context.note_dry_run();
  return ExitCode::kDone;
}

std::string mode_of(const api::View& view) {
  return std::string(view.writable() ? "writable" : "read-only") + (view.keep() ? ", kept" : "") +
         (view.group_view().empty() ? "" : ", part of " + view.group_view()) +
         (view.failure().empty() ? "" : ", not served");
}

Result<ExitCode> list_views(Context& context, const NoOptions&) {
  const auto views = context.client().view_list();
  if (!views) return views.error();
  if (context.print_json(*views)) return ExitCode::kDone;
  Table table({"VIEW", "VOLUME", ">SIZE", ">SEQUENCE", "LOCAL TIME", "UTC", "MODE", "EXPIRES",
               ">SESSIONS", ">WRITTEN", ">AT MOST", "TARGET"});
  for (const auto& view : views->views()) {
    table.add({view.name(), view.volume(), format_size(view.size_bytes()),
               std::to_string(view.at().sequence()), context.local_time(view.at().time_ns()),
               context.utc_time(view.at().time_ns()), mode_of(view),
               view.expires_ns() == 0 ? "never" : context.short_time(view.expires_ns()),
               std::to_string(view.sessions()), format_size(view.overlay_bytes()),
               view.overlay_bytes_max() == 0 ? "-" : format_size(view.overlay_bytes_max()),
               view.iqn()});
  }
  context.console.print(table.empty() ? "There are no views.\n" : table.text(context.console));
  return ExitCode::kDone;
}

// Whom it takes the view from, or all views of a group's, and what was written to them.
struct Unexposed {
  std::set<std::string> names;
  std::string confirm;  // what is to be typed: the volume, or the name of a group's view
  std::uint64_t written_bytes = 0;
  std::string sessions;
};

Result<Unexposed> what_goes(const Context& context, const std::string& name) {
  const auto views = context.client().view_list();
  if (!views) return views.error();
  Unexposed all{.names = {name}, .confirm = name};
  for (const auto& view : views->views()) {
    if (view.name() != name && view.group_view() != name) continue;
    all.names.insert(view.name());
    if (view.writable()) all.written_bytes += view.overlay_bytes();
    if (view.name() == name) all.confirm = view.volume();
  }
  const auto sessions = context.client().session_list();
  if (!sessions) return sessions.error();
  all.sessions = sessions_text(*sessions, [&all](const api::Session& session) {
    return all.names.contains(session.view());
  });
  return all;
}

Result<ExitCode> unexpose(Context& context, const UnexposeOptions& options) {
  api::UnexposeRequest request;
  request.set_name(options.name);
  request.set_dry_run(context.flags.dry_run);
  context.force_helps = !options.force;
  request.set_force(options.force);
  const auto all = what_goes(context, options.name);
  if (!all) return all.error();
  const bool used = !all->sessions.empty();
  if (used || all->written_bytes > 0) {
    // Nobody is asked about what will be refused.
    api::UnexposeRequest trial = request;
    trial.set_force(true);
    trial.set_dry_run(true);
    if (const auto refused = context.client().view_unexpose(trial); !refused) {
      return refused.error();
    }
    if (!context.flags.json) {
      context.console.note(fmt::format("This takes {} away{}, with {} of what was written to it.\n",
                                       printable(options.name), used ? " from whoever uses it" : "",
                                       format_size(all->written_bytes)));
      context.console.note(all->sessions);
    }
    if (!context.flags.dry_run && !context.confirmed(all->confirm)) return ExitCode::kNotConfirmed;
    // Who was shown the sessions and confirmed has said all that --force says.
    if (used) request.set_force(true);
  }
  const auto view = context.client().view_unexpose(request);
  if (!view) return view.error();
  if (context.print_json(*view)) return ExitCode::kDone;
  context.console.note(fmt::format(
      "{} of {} {}; it showed {}\n", printable(view->name()), printable(view->volume()),
      context.flags.dry_run ? "would be gone" : "is gone", printable(context.moment(view->at()))));
  context.note_dry_run();
  return ExitCode::kDone;
}

}  // namespace

void add_view_verbs(CLI::App& app, Context& context) {
  auto& noun = *app.add_subcommand("view", "Look at past moments as LUNs of their own");
  noun.require_subcommand(1);
  add_verb<ExposeOptions>(
      noun, context, "expose", "Expose a moment of a volume under its own target, or of a group",
      [](CLI::App& verb, ExposeOptions& options) {
        verb.add_option("OBJECT@TIME", options.target,
                        "The volume, or group:GROUP, and the moment (default: now)")
            ->required()
            ->type_name("OBJECT@TIME");
        verb.add_flag("--writable", options.writable,
                      "Writes go to an overlay that ends with the view");
        verb.add_flag("--consistent", options.consistent,
                      "Mend the file system of that moment, in the view");
        verb.add_option("--overlay-max", options.overlay_max,
                        "How much may be written to it (default: as the server is configured)")
            ->type_name("SIZE");
        verb.add_flag("--keep", options.keep,
                      "A full log does not drop it: writes fail instead, unless it is unexposed");
        verb.add_option("--ttl", options.ttl, "How long it lives, such as 2h")
            ->type_name("DURATION");
        verb.add_option("--name", options.name, "Its name (default: one is made)")
            ->type_name("NAME");
      },
      expose);
  add_verb<NoOptions>(noun, context, "list", "List the exposed views", no_options, list_views);
  add_verb<UnexposeOptions>(
      noun, context, "unexpose", "End a view",
      [](CLI::App& verb, UnexposeOptions& options) {
        verb.add_option("VIEW", options.name, "The view")->required()->type_name("VIEW");
        verb.add_flag("--force", options.force, "Also while sessions use it");
      },
      unexpose);
}

}  // namespace mariner::client

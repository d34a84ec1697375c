// mariner session list | kick
#include <fmt/format.h>

#include <algorithm>

#include "server/client/quantity.h"
#include "server/client/session_text.h"
#include "server/client/table.h"
#include "server/client/verbs.h"

namespace mariner::client {
namespace {

std::string digests(const api::Session& session) {
  if (session.header_digest() && session.data_digest()) return "header, data";
  return session.header_digest() ? "header" : session.data_digest() ? "data" : "-";
}

Result<ExitCode> list_sessions(Context& context, const NoOptions&) {
  const auto sessions = context.client().session_list();
  if (!sessions) return sessions.error();
  if (context.print_json(*sessions)) return ExitCode::kDone;
  Table table({">ID", "INITIATOR", "ADDRESS", "USES", "SINCE", "LAST I/O", ">COMMANDS", ">READ",
               ">WRITTEN", ">OPEN", "DIGESTS"});
  for (const auto& session : sessions->sessions()) {
    const auto uses = session.discovery() ? "discovery"
                      : session.view().empty()
                          ? session.volume()
                          : fmt::format("view {} of {}", session.view(), session.volume());
    table.add({std::to_string(session.id()), session.initiator(), session.address(), uses,
               context.short_time(session.since_ns()), context.short_time(session.last_io_ns()),
               std::to_string(session.commands()), format_size(session.bytes_read()),
               format_size(session.bytes_written()), std::to_string(session.outstanding()),
               digests(session)});
  }
  context.console.print(table.empty() ? "There are no sessions.\n" : table.text(context.console));
  return ExitCode::kDone;
}

struct KickOptions {
  std::uint64_t id = 0;
  bool force = false;
};

Result<ExitCode> kick(Context& context, const KickOptions& options) {
  const std::uint64_t id = options.id;
  auto client = context.client();
  const auto sessions = client.session_list();
  if (!sessions) return sessions.error();
  const auto session =
      std::find_if(sessions->sessions().begin(), sessions->sessions().end(),
                   [id](const api::Session& candidate) { return candidate.id() == id; });
  if (session == sessions->sessions().end()) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("there is no session {}; see mariner session list", id)};
  }
  const auto name = session->volume().empty() ? std::to_string(id) : session->volume();
  if (!context.flags.json) {
    context.console.note(
        fmt::format("This closes session {}, which uses {}. Its initiator may log in again.\n", id,
                    printable(name)));
    context.console.note(session_line(*session));
  }
  if (!context.flags.dry_run && !context.confirmed(name)) return ExitCode::kNotConfirmed;
  api::SessionRequest request;
  request.set_id(id);
  request.set_dry_run(context.flags.dry_run);
  request.set_force(options.force);
  const auto kicked = client.session_kick(request);
  if (!kicked) return kicked.error();
  if (context.print_json(*kicked)) return ExitCode::kDone;
  if (!context.flags.dry_run) {
    context.console.note(
        options.force
            ? fmt::format("session {} closed\n", id)
            : fmt::format("session {} is asked to log out, and closed if it does not\n", id));
  }
  context.note_dry_run();
  return ExitCode::kDone;
}

}  // namespace

void add_session_verbs(CLI::App& app, Context& context) {
  auto& noun = *app.add_subcommand("session", "Who is logged in");
  noun.require_subcommand(1);
  add_verb<NoOptions>(noun, context, "list", "List the iSCSI sessions", no_options, list_sessions);
  add_verb<KickOptions>(
      noun, context, "kick", "Close a session",
      [](CLI::App& verb, KickOptions& options) {
        verb.add_option("ID", options.id, "The session's number")->required()->type_name("SESSION");
        verb.add_flag("--force", options.force, "At once, without asking it to log out");
      },
      kick);
}

}  // namespace mariner::client

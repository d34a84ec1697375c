#include "server/client/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "server/client/completion.h"
#include "server/client/verbs.h"

namespace mariner::client {
namespace {

void add_flags(CLI::App& app, Flags& flags) {
  app.add_flag("--json", flags.json, "Print the daemon's JSON; never ask");
  app.add_flag("--dry-run", flags.dry_run, "Say what would be done; change nothing");
  app.add_flag("--yes", flags.yes, "Do not ask before destroying something");
  app.add_flag("--quiet", flags.quiet, "Print only what was asked for, and errors");
  app.add_flag("--no-color", flags.no_color, "No colors");
  app.add_option("--socket", flags.socket,
                 "The daemon's admin socket (default: " + flags.socket + ")")
      ->type_name("PATH");
}

// CLI11 takes the words from the back.
std::vector<std::string> reversed(std::vector<std::string> words) {
  std::reverse(words.begin(), words.end());
  return words;
}

}  // namespace

std::shared_ptr<CLI::App> make_app(Context& context) {
  auto app = std::make_shared<CLI::App>("Administers marinerd: volumes that remember every write.",
                                        "mariner");
  app->set_version_flag("--version", "mariner " MARINER_VERSION);
  app->require_subcommand(1);
  // Global flags may stand anywhere.
  app->fallthrough();
  add_flags(*app, context.flags);
  add_status_verb(*app, context);
  add_volume_verbs(*app, context);
  add_history_verbs(*app, context);
  add_mark_verbs(*app, context);
  add_view_verbs(*app, context);
  add_rollback_verbs(*app, context);
  add_fsck_verbs(*app, context);
  add_fs_verbs(*app, context);
  add_target_verbs(*app, context);
  add_session_verbs(*app, context);
  add_node_verbs(*app, context);
  add_replica_verbs(*app, context);
  add_config_verbs(*app, context);
  add_doctor_verb(*app, context);
  add_completion_verb(*app, context);
  app->footer(
      "A TIME is \"2026-11-20 14:32:05\", 2026-11-20T14:32:05Z, 14:32:05, -10m, \"10 minutes "
      "ago\",\n"
      "yesterday, now, mark:NAME or #SEQUENCE. See mariner(1).");
  return app;
}

int run_command(const std::vector<std::string>& words, Console console, const Zone& zone,
                std::function<VersionTime()> now) {
  Context context{console, zone, std::move(now), {}, {}};
  const auto app = make_app(context);
  if (!words.empty() && words[0] == "__complete") {
    for (const auto& candidate :
         completions(*app, {words.begin() + 1, words.end()}, context.flags.socket)) {
      console.print(candidate + "\n");
    }
    return 0;
  }
  try {
    app->parse(reversed(words));
  } catch (const CLI::ParseError& error) {
    const int code = app->exit(error, console.out, console.err);
    return code == 0 ? 0 : static_cast<int>(ExitCode::kUsage);
  }
  console.quiet = context.flags.quiet;
  console.color = console.color && console.out_is_terminal && !context.flags.no_color;
  const auto result = context.action();
  return result ? static_cast<int>(*result) : context.report(result.error(), "mariner");
}

}  // namespace mariner::client

#include "server/client/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "server/client/application.h"
#include "server/client/completion.h"
#include "server/client/verbs.h"

namespace mariner::client {
std::shared_ptr<CLI::App> make_app(Context& context) {
  auto app = std::make_shared<CLI::App>("Administers marinerd: volumes that remember every write.",
                                        "mariner");
  add_common_flags(*app, context, "Print the daemon's JSON; never ask");
  app->add_flag("--dry-run", context.flags.dry_run, "Say what would be done; change nothing");
  app->add_flag("--yes", context.flags.yes, "Do not ask before destroying something");
  add_log_verbs(*app, context);
  add_status_verb(*app, context);
  add_volume_verbs(*app, context);
  add_history_verbs(*app, context);
  add_mark_verbs(*app, context);
  add_view_verbs(*app, context);
  add_group_verbs(*app, context);
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
  return run_application(*app, context, words);
}

}  // namespace mariner::client

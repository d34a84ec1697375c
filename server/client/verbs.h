// The verbs of the command, noun by noun. Each function adds a noun to the application and sets
// Context::action when one of its verbs was given. The context outlives the application.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "server/client/context.h"

namespace mariner::client {

void add_volume_verbs(CLI::App& app, Context& context);
void add_export_verb(CLI::App& noun, Context& context);  // of `volume`
void add_history_verbs(CLI::App& app, Context& context);
void add_mark_verbs(CLI::App& app, Context& context);
void add_view_verbs(CLI::App& app, Context& context);
void add_group_verbs(CLI::App& app, Context& context);
void add_rollback_verbs(CLI::App& app, Context& context);
void add_fsck_verbs(CLI::App& app, Context& context);
void add_fs_verbs(CLI::App& app, Context& context);
void add_target_verbs(CLI::App& app, Context& context);
void add_session_verbs(CLI::App& app, Context& context);
void add_node_verbs(CLI::App& app, Context& context);
void add_replica_verbs(CLI::App& app, Context& context);
void add_config_verbs(CLI::App& app, Context& context);
void add_log_verbs(CLI::App& app, Context& context);
void add_status_verb(CLI::App& app, Context& context);
void add_doctor_verb(CLI::App& app, Context& context);
void add_completion_verb(CLI::App& app, Context& context);

// Adds the verb `name` to `noun`: `setup` declares its words in an Options that lives as long as
// the application, `run` is its action.
template <typename Options, typename Setup, typename Run>
CLI::App* add_verb(CLI::App& noun, Context& context, const char* name, const char* help,
                   Setup setup, Run run) {
  auto options = std::make_shared<Options>();
  auto* verb = noun.add_subcommand(name, help);
  setup(*verb, *options);
  verb->callback([&context, options, run] {
    context.action = [&context, options, run] { return run(context, *options); };
  });
  return verb;
}

// For verbs without words of their own.
struct NoOptions {};
inline void no_options(CLI::App&, NoOptions&) {}

}  // namespace mariner::client

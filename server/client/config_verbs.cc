// mariner config check [FILE]
#include <fmt/format.h>

#include "server/admin/json.h"
#include "server/client/verbs.h"
#include "server/node/config.h"

namespace mariner::client {
namespace {

Result<ExitCode> check(Context& context, const std::string& file) {
  const auto reading = load_config(file);
  const auto exit_code = reading.config ? ExitCode::kDone : ExitCode::kFailed;
  api::ConfigCheck answer;
  answer.set_file(file);
  answer.set_valid(reading.config.has_value());
  for (const auto& problem : reading.problems) {
    auto& entry = *answer.add_problems();
    entry.set_level(problem.level == ConfigProblem::Level::kWarning ? "warning" : "error");
    entry.set_file(problem.file);
    entry.set_line(problem.line);
    entry.set_key(problem.key);
    entry.set_message(problem.message);
  }
  if (context.print_json(answer)) return exit_code;
  for (const auto& problem : reading.problems)
    context.console.print(printable(to_string(problem)) + "\n");
  if (reading.config) context.console.note(printable(file) + " is valid\n");
  return exit_code;
}

}  // namespace

void add_config_verbs(CLI::App& app, Context& context) {
  auto& noun = *app.add_subcommand("config", "The daemon's configuration");
  noun.require_subcommand(1);
  add_verb<std::string>(
      noun, context, "check", "Say what is wrong with a configuration, all of it",
      [](CLI::App& verb, std::string& file) {
        file = kDefaultConfigPath;
        verb.add_option("FILE", file, "The file (default: " + file + ")")->type_name("FILE");
      },
      check);
}

}  // namespace mariner::client

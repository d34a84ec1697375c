// mariner config check [FILE]
// mariner config apply FILE
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "server/client/config_file.h"
#include "server/client/table.h"
#include "server/client/verbs.h"
#include "server/node/config.h"

namespace mariner::client {
namespace {

constexpr std::string_view kNextStart = "at the next start";
constexpr std::string_view kNever = "never";

void print_problems(Context& context, const ConfigReading& reading) {
  for (const auto& problem : reading.problems)
    context.console.print(printable(to_string(problem)) + "\n");
}

api::ConfigCheck answer_of(const std::string& file, const ConfigReading& reading) {
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
  return answer;
}

Result<ExitCode> check(Context& context, const std::string& file) {
  const auto reading = load_config(file);
  const auto exit_code = reading.config ? ExitCode::kDone : ExitCode::kFailed;
  if (context.print_json(answer_of(file, reading))) return exit_code;
  print_problems(context, reading);
  if (reading.config) context.console.note(printable(file) + " is valid\n");
  return exit_code;
}

// Keys whose changes take effect then, joined.
std::string keys_of(const api::ConfigChanges& changes, std::string_view takes_effect) {
  std::string keys;
  for (const api::ConfigChange& change : changes.changes()) {
    if (change.takes_effect() != takes_effect) continue;
    if (!keys.empty()) keys += ", ";
    keys += change.key();
  }
  return keys;
}

void print_changes(Context& context, const api::ConfigChanges& changes) {
  const auto value = [](const std::string& text) { return text.empty() ? "-" : text; };
  Table table({"KEY", "FROM", "TO", "TAKES EFFECT"});
  for (const api::ConfigChange& change : changes.changes()) {
    table.add({change.key(), value(change.from()), value(change.to()),
               change.reason().empty() ? change.takes_effect()
                                       : change.takes_effect() + ": " + change.reason()});
  }
  if (table.empty()) {
    context.console.note("nothing differs from what the daemon runs with\n");
  } else {
    context.console.print(table.text(context.console));
  }
}

// Volumes that only the file does not name any more.
void note_undeclared(Context& context, const api::ConfigChanges& changes) {
  static constexpr std::string_view kBegin = "volume.";
  static constexpr std::string_view kEnd = ".size";  // which each has
  for (const api::ConfigChange& change : changes.changes()) {
    const std::string& key = change.key();
    if (!change.to().empty() || !key.starts_with(kBegin) || !key.ends_with(kEnd)) continue;
    const std::string name = key.substr(kBegin.size(), key.size() - kBegin.size() - kEnd.size());
    context.console.note(
        fmt::format("volume {0} stays, with its history: mariner volume delete {0} removes it\n",
                    printable(name)));
  }
}

void note_outcome(Context& context, const api::ConfigChanges& changes) {
  note_undeclared(context, changes);
  const std::string later = keys_of(changes, kNextStart);
  if (context.flags.dry_run) return context.note_dry_run();
  context.console.note(printable(changes.file()) +
                       (changes.former().empty()
                            ? " was read again\n"
                            : " was replaced, and read; its former content is in " +
                                  printable(changes.former()) + "\n"));
  if (!later.empty()) {
    context.console.note("systemctl restart marinerd, for " + printable(later) + "\n");
  }
}

Result<ExitCode> apply(Context& context, const std::string& file) {
  const Result<std::string> text = read_config_text(file);
  if (!text) return Error{ErrorCode::kIo, file + " " + text.error().message};
  const ConfigReading reading = parse_config(*text, file);
  if (!reading.config) {
    if (!context.print_json(answer_of(file, reading))) print_problems(context, reading);
    return ExitCode::kFailed;
  }
  if (!context.flags.json) print_problems(context, reading);
  AdminClient client = context.client();
  api::ConfigCompareRequest request;
  request.set_text(*text);
  request.set_file(file);
  Result<api::ConfigChanges> changes = client.config_compare(request);
  if (!changes) return changes.error();
  const std::string refused = keys_of(*changes, kNever);
  std::string former;
  if (!context.flags.dry_run && refused.empty()) {
    const std::string target = changes->file();
    const Result<bool> differs = differs_from(target, *text);
    if (!differs) return differs.error();
    if (*differs) {
      Result<std::string> replaced = replace_config(target, *text);
      if (!replaced) return replaced.error();
      former = *std::move(replaced);
    }
    changes = client.config_reload();
    if (!changes) {
      return Error{
          changes.error().code,
          fmt::format("{} {}, but the daemon did not take all of it: {}", target,
                      former.empty() ? "is as it was"
                                     : "was replaced (its former content is in " + former + ")",
                      changes.error().message)};
    }
  }
  changes->set_dry_run(context.flags.dry_run);
  changes->set_former(former);
  const auto exit_code = refused.empty() ? ExitCode::kDone : ExitCode::kFailed;
  if (context.print_json(*changes)) return exit_code;
  print_changes(context, *changes);
  if (!refused.empty()) {
    return Error{ErrorCode::kReadOnly,
                 fmt::format("{} cannot be changed: nothing was applied", refused)};
  }
  note_outcome(context, *changes);
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
  add_verb<std::string>(
      noun, context, "apply", "Make FILE the configuration of the running daemon",
      [](CLI::App& verb, std::string& file) {
        verb.add_option("FILE", file, "The new configuration")->required()->type_name("FILE");
      },
      apply);
}

}  // namespace mariner::client

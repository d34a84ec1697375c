#include "server/node/config_desk.h"

#include <fmt/format.h>

#include <vector>

#include "server/node/config_changes.h"

namespace mariner::node {
namespace {

using Effect = ConfigChange::Effect;

const char* text_of(Effect effect) {
  switch (effect) {
    case Effect::kAtOnce: return "at once";
    case Effect::kNextStart: return "at the next start";
    case Effect::kNever: return "never";
  }
  return "";
}

api::ConfigChanges answer_of(const std::string& file, const std::vector<ConfigChange>& changes) {
  api::ConfigChanges answer;
  answer.set_schema(1);
  answer.set_file(file);
  for (const ConfigChange& change : changes) {
    api::ConfigChange& out = *answer.add_changes();
    out.set_key(change.key);
    out.set_from(change.from);
    out.set_to(change.to);
    out.set_takes_effect(text_of(change.effect));
    out.set_reason(change.reason);
  }
  return answer;
}

// All that makes it unusable, a line each.
Error errors_of(const ConfigReading& reading) {
  std::string message;
  for (const ConfigProblem& problem : reading.problems) {
    if (problem.level != ConfigProblem::Level::kError) continue;
    if (!message.empty()) message += "\n";
    message += to_string(problem);
  }
  return {ErrorCode::kInvalidArgument, std::move(message)};
}

void log_changes(const std::vector<ConfigChange>& changes, Log& log) {
  if (const std::string keys = keys_of(changes, Effect::kNextStart); !keys.empty()) {
    log.warning("changes that take effect at the next start", {{"keys", keys}});
  }
  for (const ConfigChange& change : changes) {
    if (change.effect != Effect::kNever) continue;
    log.warning("a change that is not taken", {{"key", change.key}, {"reason", change.reason}});
  }
}

}  // namespace

void log_problems(const ConfigReading& reading, Log& log) {
  for (const ConfigProblem& problem : reading.problems) {
    if (problem.level == ConfigProblem::Level::kError) {
      log.error(to_string(problem));
    } else {
      log.warning(to_string(problem));
    }
  }
}

Result<api::ConfigChanges> compare_config(const Daemon& daemon, const std::string& file,
                                          const api::ConfigCompareRequest& request) {
  const ConfigReading reading = parse_config(request.text(), request.file());
  if (!reading.config) return errors_of(reading);
  return answer_of(file, config_changes(daemon.config(), *reading.config));
}

Result<api::ConfigChanges> reload_config(Daemon& daemon, const std::string& file, Log& log) {
  const ConfigReading reading = load_config(file);
  log_problems(reading, log);
  if (!reading.config) {
    log.error("the configuration stays as it was");
    return errors_of(reading);
  }
  const std::vector<ConfigChange> changes = config_changes(daemon.config(), *reading.config);
  log_changes(changes, log);
  if (reading.config->roles == daemon.config().roles) {
    if (Result<void> taken = daemon.reload(*reading.config); !taken) {
      log.error("the new configuration was applied in part");
      return taken.error();
    }
    log.info("configuration read again");
  }
  return answer_of(file, changes);
}

}  // namespace mariner::node

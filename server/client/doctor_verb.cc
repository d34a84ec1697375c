// mariner doctor
#include <fmt/format.h>

#include <algorithm>

#include "server/client/local_checks.h"
#include "server/client/verbs.h"
#include "server/node/config.h"

namespace mariner::client {
namespace {

std::string level_text(const Console& console, const std::string& level) {
  if (level == "ok") return console.green("ok     ");
  return level == "warning" ? console.yellow("warning") : console.red("error  ");
}

// The file that was named, else the one that the daemon runs on, else where it would look.
std::string config_path_of(Context& context, const std::string& named) {
  if (!named.empty()) return named;
  const auto status = context.client().status();
  return status && !status->config_path().empty() ? status->config_path()
                                                  : std::string(kDefaultConfigPath);
}

Result<ExitCode> doctor(Context& context, const std::string& named) {
  const auto from_daemon = context.client().doctor();
  const std::string config_path = config_path_of(context, named);
  auto answer = from_daemon ? *from_daemon : api::DoctorAnswer{};
  for (auto& finding :
       local_findings({config_path, context.flags.socket, from_daemon.has_value()})) {
    *answer.add_findings() = std::move(finding);
  }
  const bool sound =
      std::none_of(answer.findings().begin(), answer.findings().end(),
                   [](const api::Finding& finding) { return finding.level() == "error"; });
  const auto exit_code = sound ? ExitCode::kDone : ExitCode::kFailed;
  if (context.print_json(answer)) return exit_code;
  const auto& console = context.console;
  for (const auto& finding : answer.findings()) {
    if (console.quiet && finding.level() == "ok") continue;
    console.print(fmt::format("{}  {}: {}\n", level_text(console, finding.level()),
                              printable(finding.check()), printable(finding.found())));
    if (!finding.advice().empty())
      console.print(fmt::format("         {}\n", printable(finding.advice())));
  }
  return exit_code;
}

}  // namespace

void add_doctor_verb(CLI::App& app, Context& context) {
  add_verb<std::string>(
      app, context, "doctor", "Say what is wrong and what to do",
      [](CLI::App& verb, std::string& file) {
        verb.add_option("--config", file,
                        "The daemon's configuration (default: the one it runs on)")
            ->type_name("FILE");
      },
      doctor);
}

}  // namespace mariner::client

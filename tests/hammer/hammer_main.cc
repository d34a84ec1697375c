// mariner-hammer: loads a LUN with writes that it remembers, and checks what became of them.
//
//   mariner-hammer run          URL CAMPAIGN [--writes N] [--seconds S] ...
//   mariner-hammer verify       URL CAMPAIGN            the volume after a round
//   mariner-hammer verify-view  URL CAMPAIGN --history FILE --sequence S [--asked-ns T]
//   mariner-hammer login        URL [--timeout S]       repeats until a login succeeds
//
// CAMPAIGN is a folder of journals (journal.h). Prints one JSON object. Exit codes: 0 as expected;
// 1 wrong bytes or another fault; 2 wrong usage; 3 could not be carried out; 10 the connection was
// lost; 11 the target ended a command with an error.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

#include "tests/hammer/load.h"
#include "tests/hammer/verify.h"

namespace mariner::hammer {
namespace {

constexpr int kFault = 1;
constexpr int kCannot = 3;
constexpr int kLost = 10;
constexpr int kRefused = 11;

std::atomic<bool> stop{false};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out + '"';
}

int cannot(const Error& error) {
  std::fprintf(stderr, "mariner-hammer: %s\n", to_string(error).c_str());
  return kCannot;
}

int print(const VerifyReport& report) {
  std::string faults;
  for (const std::string& fault : report.faults) {
    faults += (faults.empty() ? "" : ", ") + quoted(fault);
  }
  fmt::print(
      "{{\"cells\": {}, \"writes\": {}, \"present\": {}, \"absent\": {}, \"records\": {}, "
      "\"faults\": [{}]}}\n",
      report.cells, report.writes, report.present, report.absent, report.records, faults);
  return report.faults.empty() ? 0 : kFault;
}

int print(const Result<VerifyReport>& report) {
  return report ? print(*report) : cannot(report.error());
}

int run(const LoadOptions& options) {
  const auto report = run_load(options, stop);
  if (!report) return cannot(report.error());
  fmt::print(
      "{{\"seed\": {}, \"issued\": {}, \"acknowledged\": {}, \"reads\": {}, "
      "\"payload_bytes\": {}, \"seconds\": {:.3f}, \"end\": {}, \"detail\": {}, "
      "\"fault\": {}}}\n",
      report->seed, report->issued, report->acknowledged, report->reads, report->payload_bytes,
      report->seconds, quoted(report->end), quoted(report->detail), quoted(report->fault));
  if (!report->fault.empty()) return kFault;
  if (report->end == "lost") return kLost;
  return report->end == "refused" ? kRefused : 0;
}

int login(const InitiatorOptions& options, double timeout_s) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  while (true) {
    const auto initiator = Initiator::connect(options);
    if (initiator) {
      fmt::print("{{\"seconds\": {:.3f}, \"cells\": {}, \"block_bytes\": {}}}\n", seconds(),
                 (*initiator)->cells(), (*initiator)->block_bytes());
      (*initiator)->logout();
      return 0;
    }
    if (seconds() > timeout_s) return cannot(initiator.error());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // the server is killed under the load: an error, not the end
  std::signal(SIGTERM, [](int) { stop = true; });
  std::signal(SIGINT, [](int) { stop = true; });
  CLI::App app{"Loads a LUN with writes that it remembers, and checks what became of them"};
  app.require_subcommand(1);
  LoadOptions load;
  ViewOptions view;
  double timeout_s = 30;
  std::uint64_t region_bytes = 0;
  std::uint64_t region_offset = 0;
  const auto common = [&](CLI::App* command) {
    command->add_option("url", load.initiator.url, "iscsi://HOST:PORT/IQN/LUN")->required();
    command->add_option("--initiator", load.initiator.name, "the initiator's name");
  };
  const auto with_campaign = [&](CLI::App* command) {
    common(command);
    command->add_option("campaign", load.campaign, "folder of journals")->required();
    command->add_option("--region-bytes", region_bytes, "0: the whole LUN");
    command->add_option("--region-offset", region_offset, "in bytes");
  };
  CLI::App* run_command = app.add_subcommand("run", "load the LUN");
  with_campaign(run_command);
  run_command->add_option("--depth", load.depth, "writes outstanding");
  run_command->add_option("--writes", load.writes_max, "stop after so many; 0: never");
  run_command->add_option("--seconds", load.seconds_max, "stop after so long; 0: never");
  run_command->add_option("--seed", load.seed, "0: from the clock");
  run_command->add_flag("--repeat-attentions", load.initiator.repeat_attentions,
                        "send again what meets a unit attention");
  run_command->add_option("--unmap-percent", load.unmap_percent, "share of UNMAP");
  run_command->add_option("--same-percent", load.same_percent, "share of WRITE SAME");
  run_command->add_option("--read-percent", load.read_percent, "share of verified reads");
  run_command->add_option("--cells", load.block_writes_only, "every write is so many cells");
  CLI::App* verify_command = app.add_subcommand("verify", "compare the volume after a round");
  with_campaign(verify_command);
  CLI::App* view_command = app.add_subcommand("verify-view", "compare a moment of the volume");
  with_campaign(view_command);
  view_command->add_option("--history", view.history, "the daemon's list of writes")->required();
  view_command->add_option("--sequence", view.sequence, "the moment")->required();
  view_command->add_option("--asked-ns", view.asked_ns, "the time that was asked for");
  view_command->add_option("--listed-ns", view.listed_ns, "when the history was asked for");
  CLI::App* login_command = app.add_subcommand("login", "repeat until a login succeeds");
  common(login_command);
  login_command->add_option("--timeout", timeout_s, "seconds");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  load.region = {region_offset / kCellBytes, region_bytes / kCellBytes};
  const VerifyOptions verify{load.initiator, load.campaign, load.region};
  if (verify_command->parsed()) return print(verify_volume(verify));
  if (view_command->parsed()) return print(verify_moment(verify, view));
  if (login_command->parsed()) return login(load.initiator, timeout_s);
  return run(load);
}

}  // namespace
}  // namespace mariner::hammer

int main(int argc, char** argv) { return mariner::hammer::main(argc, argv); }

// mariner status
#include <fmt/format.h>

#include "server/client/quantity.h"
#include "server/client/table.h"
#include "server/client/verbs.h"

namespace mariner::client {
namespace {

Result<ExitCode> show_status(Context& context, const NoOptions&) {
  const auto status = context.client().status();
  if (!status) return status.error();
  if (context.print_json(*status)) return ExitCode::kDone;
  std::string portals;
  for (const auto& portal : status->portals()) portals += (portals.empty() ? "" : ", ") + portal;
  Facts facts;
  facts.add("marinerd",
            fmt::format("{}, {}", status->version(), status->ready() ? "ready" : "not ready"));
  facts.add("since", fmt::format("{}  ({})", context.local_time(status->started_ns()),
                                 context.utc_time(status->started_ns())));
  facts.add("portals", portals);
  facts.add("targets", status->iqn_base() + ":VOLUME");
  facts.add("log", fmt::format("{} of {}", format_size(status->log_used_bytes()),
                               format_size(status->log_limit_bytes())));
  if (status->log_history_bytes() > status->log_used_bytes()) {
    facts.add("history", format_size(status->log_history_bytes()) + " before it was compacted");
  }
  facts.add("epoch", std::to_string(status->epoch()));
  facts.add("payloads", format_size(status->payload_memory_bytes()) + " in memory");
  facts.add("configuration", status->config_path());
  context.console.print(facts.text(context.console));
  return ExitCode::kDone;
}

}  // namespace

void add_status_verb(CLI::App& app, Context& context) {
  add_verb<NoOptions>(app, context, "status", "Show the daemon's state", no_options, show_status);
}

}  // namespace mariner::client

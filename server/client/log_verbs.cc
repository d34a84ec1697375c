// mariner log compact
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "server/client/progress.h"
#include "server/client/quantity.h"
#include "server/client/verbs.h"

namespace mariner::client {
namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(200);

struct CompactOptions {
  bool wait = false;
};

// The daemon's state when it has done what was asked for.
Result<api::StatusAnswer> wait_for_it(Context& context, std::uint64_t used_before) {
  AdminClient client = context.client();
  Progress progress(context, "compacting");
  for (;;) {
    Result<api::StatusAnswer> status = client.status();
    if (!status || !status->log_compacting()) {
      progress.end();
      return status;
    }
    // How much of the log is left to do is not known: what was gained so far.
    const std::uint64_t used = status->log_used_bytes();
    progress.show(used_before - std::min(used_before, used), used_before);
    std::this_thread::sleep_for(kLookEvery);
  }
}

Result<ExitCode> compact(Context& context, const CompactOptions& options) {
  AdminClient client = context.client();
  const auto before = client.status();
  if (!before) return before.error();
  if (context.flags.dry_run) {
    context.console.print(
        fmt::format("would compact the log's complete tracks; {} are in use now\n",
                    format_size(before->log_used_bytes())));
    return ExitCode::kDone;
  }
  const auto begun = client.log_compact();
  if (!begun) return begun.error();
  if (!options.wait) {
    if (context.print_json(*begun)) return ExitCode::kDone;
    context.console.print("the log is being compacted; mariner status shows what it uses\n");
    return ExitCode::kDone;
  }
  const auto after = wait_for_it(context, before->log_used_bytes());
  if (!after) return after.error();
  if (!after->log_compact_trouble().empty()) {
    return Error{ErrorCode::kNoSpace,
                 "not all of the log was compacted: " + after->log_compact_trouble()};
  }
  if (context.print_json(*after)) return ExitCode::kDone;
  context.console.print(fmt::format("the log uses {} for {} of history\n",
                                    format_size(after->log_used_bytes()),
                                    format_size(after->log_history_bytes())));
  return ExitCode::kDone;
}

}  // namespace

void add_log_verbs(CLI::App& app, Context& context) {
  auto& noun = *app.add_subcommand("log", "The log, which holds the history of all volumes");
  noun.require_subcommand(1);
  add_verb<CompactOptions>(
      noun, context, "compact", "Compact everything that is complete now, however young",
      [](CLI::App& verb, CompactOptions& options) {
        verb.add_flag("--wait", options.wait, "Until it is done");
      },
      compact);
}

}  // namespace mariner::client

// mariner history show VOLUME | prune VOLUME
#include <fmt/format.h>

#include <algorithm>

#include "server/client/chart.h"
#include "server/client/quantity.h"
#include "server/client/table.h"
#include "server/client/verbs.h"

namespace mariner::client {
namespace {

constexpr std::uint32_t kBucketsMax = 1000;
constexpr std::size_t kChartRows = 6;

struct ShowOptions {
  std::string volume;
  std::string since;
  std::string until;
  std::uint32_t writes = 0;
  std::uint32_t buckets = 0;  // 0: as the terminal is wide
};

// Under the columns, what checks found of their moments: the worst of each. Empty: nothing.
std::string verdict_line(const api::History& history) {
  std::string line;
  bool any = false;
  for (const auto& bucket : history.buckets()) {
    const char sign = bucket.damaged() > 0      ? '!'
                      : bucket.repairable() > 0 ? '~'
                      : bucket.clean() > 0      ? '+'
                                                : ' ';
    any = any || sign != ' ';
    line += sign;
  }
  if (!any) return "";
  return line.substr(0, line.find_last_not_of(' ') + 1) +
         "\nFile system checked:  + clean  ~ repairable  ! damaged\n";
}

std::string chart(const Context& context, const api::History& history) {
  std::vector<std::uint64_t> bytes;
  std::uint64_t largest = 0;
  for (const auto& bucket : history.buckets()) {
    bytes.push_back(bucket.bytes());
    largest = std::max(largest, bucket.bytes());
  }
  const auto verdicts = verdict_line(history);
  if (largest == 0 && verdicts.empty()) return "";
  const auto& first = history.buckets(0);
  auto from = context.short_time(first.from_ns());
  const auto to = context.short_time(history.buckets(history.buckets_size() - 1).to_ns());
  const auto width =
      std::chrono::nanoseconds(static_cast<std::int64_t>(first.to_ns() - first.from_ns()));
  // To the unit that matters: "3m20s", not "3m20s417ms".
  const auto rounded =
      width > std::chrono::seconds(10)
          ? std::chrono::nanoseconds(std::chrono::round<std::chrono::seconds>(width))
          : width;
  auto text = fmt::format("Bytes written, a column is {}, the highest {}\n",
                          format_duration(rounded), format_size(largest));
  text += bar_chart(bytes, kChartRows);
  const auto used = from.size() + to.size();
  const auto line_end = verdicts.empty() ? 0 : verdicts.find('\n') + 1;
  return text + verdicts.substr(0, line_end) + from +
         std::string(bytes.size() > used ? bytes.size() - used : 2, ' ') + to + "\n" +
         verdicts.substr(line_end);
}

std::string events(const Context& context, const api::History& history) {
  Table table({"EVENT", ">SEQUENCE", "TIME", "WHAT"});
  for (const auto& event : history.events()) {
    table.add({event.kind(), std::to_string(event.sequence()), context.local_time(event.time_ns()),
               event.text()});
  }
  return table.empty() ? "" : table.text(context.console);
}

std::string writes(const Context& context, const api::History& history) {
  Table table({">SEQUENCE", "TIME", "KIND", ">FIRST BLOCK", ">BLOCKS", ">EPOCH"});
  for (const auto& write : history.write_list()) {
    const auto kind = write.kind() == "rollback"
                          ? fmt::format("rollback to #{}", write.target_sequence())
                          : write.kind();
    table.add({std::to_string(write.sequence()), context.local_time(write.time_ns()), kind,
               std::to_string(write.first_block()), std::to_string(write.blocks()),
               std::to_string(write.epoch())});
  }
  if (table.empty()) return "";
  return table.text(context.console) +
         (history.truncated() ? "There are more: give a larger --writes, or --since and --until.\n"
                              : "");
}

Result<ExitCode> show_history(Context& context, const ShowOptions& options) {
  api::HistoryRequest request;
  request.set_name(options.volume);
  if (!options.since.empty()) {
    const auto since = context.moment_spec(options.since);
    if (!since) return since.error();
    *request.mutable_from() = *since;
  }
  if (!options.until.empty()) {
    const auto until = context.moment_spec(options.until);
    if (!until) return until.error();
    *request.mutable_to() = *until;
  }
  const auto columns = static_cast<std::uint32_t>(std::clamp(context.console.columns, 20, 200));
  request.set_buckets(options.buckets == 0 ? columns : options.buckets);
  request.set_max_writes(options.writes);
  const auto history = context.client().history(request);
  if (!history) return history.error();
  if (context.print_json(*history)) return ExitCode::kDone;
  const auto& console = context.console;
  Facts facts;
  facts.add("volume", history->name());
  facts.add("from", context.moment(history->from()));
  facts.add("to", context.moment(history->to()));
  facts.add("written",
            fmt::format("{} writes, {}; {} of the volume changed", history->writes(),
                        format_size(history->bytes()), format_size(history->distinct_bytes())));
  console.print(facts.text(console));
  for (const auto& part :
       {chart(context, *history), events(context, *history), writes(context, *history)}) {
    if (!part.empty()) console.print("\n" + part);
  }
  return ExitCode::kDone;
}

struct PruneOptions {
  std::string volume;
  std::string retain;
};

std::string joined(const google::protobuf::RepeatedPtrField<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

Result<ExitCode> prune(Context& context, const PruneOptions& options) {
  auto client = context.client();
  api::PruneRequest request;
  request.set_name(options.volume);
  request.set_retain(options.retain);
  request.set_dry_run(true);
  const auto plan = client.history_prune(request);
  if (!plan) return plan.error();
  if (!context.flags.json) {
    Facts facts;
    facts.add("every moment since", context.moment(plan->oldest()));
    facts.add("behind that", plan->retain());
    context.console.print(facts.text(context.console));
    Table table({">SEQUENCE", "LOCAL TIME", "UTC", "KEPT AS"});
    for (const auto* list : {&plan->kept(), &plan->gone()}) {
      for (const auto& each : *list) {
        table.add({std::to_string(each.at().sequence()),
                   context.local_time(each.through().time_ns()),
                   context.utc_time(each.through().time_ns()),
                   each.because().empty() ? "nothing: goes" : joined(each.because())});
      }
    }
    if (!table.empty()) context.console.print("\n" + table.text(context.console));
    context.console.note(
        fmt::format("{} moments stay, {} go\n", plan->kept_size(), plan->gone_size()));
  }
  if (context.flags.dry_run || plan->gone().empty()) {
    if (!context.print_json(*plan)) context.note_dry_run();
    return ExitCode::kDone;
  }
  if (!context.confirmed(options.volume)) return ExitCode::kNotConfirmed;
  request.set_dry_run(false);
  const auto pruned = client.history_prune(request);
  if (!pruned) return pruned.error();
  context.print_json(*pruned);
  return ExitCode::kDone;
}

}  // namespace

void add_history_verbs(CLI::App& app, Context& context) {
  auto& noun = *app.add_subcommand("history", "What was written, and when");
  noun.require_subcommand(1);
  add_verb<ShowOptions>(
      noun, context, "show", "Show the writes of a volume over time",
      [](CLI::App& verb, ShowOptions& options) {
        verb.add_option("VOLUME", options.volume, "The volume")->required()->type_name("VOLUME");
        verb.add_option("--since", options.since, "After this moment (default: the oldest)")
            ->type_name("TIME");
        verb.add_option("--until", options.until, "Up to this moment (default: now)")
            ->type_name("TIME");
        verb.add_option("--writes", options.writes, "List single writes, at most so many")
            ->type_name("N");
        verb.add_option("--buckets", options.buckets,
                        "Columns of the histogram (default: as many as fit)")
            ->check(CLI::Range(1u, kBucketsMax))
            ->type_name("N");
      },
      show_history);
  add_verb<PruneOptions>(
      noun, context, "prune",
      "Show which moments are kept behind the window, and give up what nothing keeps",
      [](CLI::App& verb, PruneOptions& options) {
        verb.add_option("VOLUME", options.volume, "The volume")->required()->type_name("VOLUME");
        verb.add_option("--retain", options.retain, "As if it kept these (with --dry-run)")
            ->type_name("SCHEDULE");
      },
      prune);
}

}  // namespace mariner::client

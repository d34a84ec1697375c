// mariner replica status
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "server/client/quantity.h"
#include "server/client/table.h"
#include "server/client/verbs.h"

namespace mariner::client {
namespace {

// How far a storage node is with what it missed.
std::string missed_of(const api::Replica& replica) {
  const std::uint64_t total = replica.missed_total_bytes();
  const std::uint64_t left = std::min(replica.missed_left_bytes(), total);
  std::string text =
      fmt::format("fetching what it missed: {} of {} ({} %)", format_size(total - left),
                  format_size(total), (total - left) * 100 / total);
  const std::uint64_t rate = replica.missed_bytes_per_second();
  if (rate == 0) return text;
  return text + fmt::format(", {}/s, about {} left", format_size(rate),
                            format_duration(std::chrono::seconds(left / rate + 1)));
}

// How far a replica is, in a few words.
std::string distance_of(const api::Replica& replica) {
  if (replica.away()) {
    return fmt::format("away: the storage nodes keep what is written since #{}",
                       replica.away_since());
  }
  if (!replica.known()) return "this node does not know";
  if (replica.role() == "logger") {
    return fmt::format("everything up to #{} is settled", replica.settled());
  }
  std::string text = fmt::format("#{} in the image", replica.durable());
  if (!replica.failure().empty()) return "image failed: " + replica.failure() + "; " + text;
  if (replica.missed_total_bytes() > 0) return missed_of(replica) + "; " + text;
  if (replica.lag_bytes() > 0) {
    text += fmt::format(", {} waiting for it", format_size(replica.lag_bytes()));
  }
  return (replica.caught_up() ? "has all; " : "catching up; ") + text;
}

std::string progress_of(const api::Replica& replica) {
  std::string text = distance_of(replica);
  if (replica.payloads() == "multicast") text += "; writes come by multicast";
  if (replica.payloads() == "connection")
    text += "; writes come over its connection, not by multicast";
  return text;
}

std::string replicated_state(const api::ReplicatedVolume& volume) {
  const std::string state = volume.state().empty() ? "-" : volume.state();
  return volume.degraded().empty() ? state : state + ", degraded";
}

Result<ExitCode> show_replicas(Context& context, const NoOptions&) {
  const auto cluster = context.client().cluster_status();
  if (!cluster) return cluster.error();
  if (context.print_json(*cluster)) return ExitCode::kDone;
  Table table({"VOLUME", ">EPOCH", "COORDINATOR", "HERE", "ROLE", "NODE", "PROGRESS"});
  for (const auto& volume : cluster->volumes()) {
    bool first = true;
    for (const auto& replica : volume.replicas()) {
      const auto once = [first](std::string text) { return first ? text : std::string(); };
      table.add({once(volume.name()), once(std::to_string(volume.epoch())),
                 once(volume.coordinator().empty() ? "-" : volume.coordinator()),
                 once(replicated_state(volume)), replica.role(), replica.node(),
                 progress_of(replica)});
      first = false;
    }
  }
  context.console.print(table.empty() ? "The cluster has no volumes.\n"
                                      : table.text(context.console));
  return ExitCode::kDone;
}

}  // namespace

void add_replica_verbs(CLI::App& app, Context& context) {
  auto& noun = *app.add_subcommand("replica", "What the nodes of a cluster have of its volumes");
  noun.require_subcommand(1);
  add_verb<NoOptions>(noun, context, "status",
                      "Who coordinates each volume, and how far its replicas are", no_options,
                      show_replicas);
}

}  // namespace mariner::client

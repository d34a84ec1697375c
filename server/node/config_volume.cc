#include "server/node/config_volume.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "server/node/config_replication.h"
#include "server/node/config_roles.h"
#include "server/node/config_server.h"
#include "server/node/config_values.h"
#include "server/node/names.h"
#include "server/node/nearest.h"

namespace mariner::config {
namespace {

void read_block_size(ConfigTable& table, VolumeConfig& volume) {
  const auto block_size = table.integer("block_size");
  if (!block_size) return;
  if (*block_size != 512 && *block_size != 4096) {
    table.error("block_size", fmt::format("expected 512 or 4096, found {}", *block_size));
  } else {
    volume.block_size = static_cast<std::uint32_t>(*block_size);
  }
}

Result<std::chrono::nanoseconds> parse_fault_delay(std::string_view text) {
  auto delay = parse_duration(text);
  if (delay && *delay > std::chrono::minutes(1)) {
    return Error{ErrorCode::kInvalidArgument, "a delay is at most 1m"};
  }
  return delay;
}

FaultConfig read_faults(ConfigTable table) {
  FaultConfig faults;
  table.parsed("read_errors", faults.read_errors, share_from(0));
  table.parsed("write_errors", faults.write_errors, share_from(0));
  table.parsed("read_delay", faults.read_delay, parse_fault_delay);
  table.parsed("write_delay", faults.write_delay, parse_fault_delay);
  table.finish();
  return faults;
}

Result<bool> parse_promote(std::string_view text) {
  if (text == "auto") return true;
  if (text == "manual") return false;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("expected \"auto\" or \"manual\", found \"{}\"", text)};
}

void check_node(ConfigTable& table, std::string_view key, const std::string& name,
                const std::vector<ClusterNodeConfig>& nodes) {
  if (nodes.empty()) return;  // which is an error of its own
  std::vector<std::string> names;
  for (const ClusterNodeConfig& node : nodes) names.push_back(node.name);
  if (std::ranges::find(names, name) != names.end()) return;
  table.error(key, fmt::format("there is no [[cluster.node]] \"{}\"; the nearest that exists is "
                               "\"{}\"",
                               name, *nearest(name, names)));
}

void read_logger(ConfigTable& table, const Config& config, VolumeConfig& volume) {
  if (clustered(config) && !table.has("logger")) {
    table.error("logger",
                "missing: in a cluster a volume needs the name of the node that logs its writes, "
                "as in logger = \"c\"");
  }
  auto logger = table.string("logger");
  if (!logger) return;
  if (clustered(config)) check_node(table, "logger", *logger, config.cluster.nodes);
  volume.logger = *std::move(logger);
}

void read_storage(ConfigTable& table, const Config& config, VolumeConfig& volume) {
  if (clustered(config) && !table.has("storage")) {
    table.error("storage",
                "missing: in a cluster a volume needs the names of one or two nodes that keep its "
                "image, as in storage = [\"a\", \"b\"]");
  }
  auto storage = table.strings("storage");
  if (!storage) return;
  if (storage->empty() || storage->size() > kVolumeStoragesMax) {
    table.error("storage",
                fmt::format("expected the names of one or two nodes, found {}", storage->size()));
    return;
  }
  if (std::ranges::count(*storage, storage->front()) > 1) {
    table.error("storage", fmt::format("\"{}\" stands there twice", storage->front()));
  }
  for (const std::string& name : *storage) {
    if (clustered(config)) check_node(table, "storage", name, config.cluster.nodes);
  }
  volume.storage = *std::move(storage);
}

void read_targets(ConfigTable& table, const Config& config, VolumeConfig& volume) {
  auto targets = table.strings("targets");
  if (!targets) return;
  if (targets->empty()) {
    table.error("targets",
                "empty; expected the names of the nodes that may serve the volume, the first of "
                "which does rather than the others, as in targets = [\"d\", \"a\"]; without the "
                "key, its storages do");
    return;
  }
  for (auto name = targets->begin(); name != targets->end(); ++name) {
    if (std::find(targets->begin(), name, *name) != name) {
      table.error("targets", fmt::format("\"{}\" stands there twice", *name));
    } else if (clustered(config)) {
      check_node(table, "targets", *name, config.cluster.nodes);
    }
  }
  volume.targets = *std::move(targets);
}

// Which nodes do what for the volume.
void read_placement(ConfigTable& table, const Config& config, VolumeConfig& volume) {
  if (config.standalone()) {
    for (const auto* key : {"logger", "storage", "targets", "promote", "group"}) {
      if (table.has(key)) {
        table.error(key, "only in a cluster: this node is standalone; remove it, or set the roles");
      }
    }
  }
  read_logger(table, config, volume);
  read_storage(table, config, volume);
  read_targets(table, config, volume);
  table.parsed("promote", volume.promote, parse_promote);
  table.parsed("group", volume.group,
               [](std::string_view text) -> Result<std::optional<trm::Group>> {
                 auto group = parse_group(text);
                 if (!group) return group.error();
                 return std::optional<trm::Group>(*std::move(group));
               });
}

// In a cluster its nodes know where to; a standalone server is told.
void read_redirection(ConfigTable& table, const Config& config, VolumeConfig& volume) {
  if (clustered(config)) {
    volume.redirect_to_server = table.boolean("redirect").value_or(false);
    table.ignore("redirect_permanent");
    if (table.has("redirect_permanent")) {
      table.error("redirect_permanent",
                  "not in a cluster: who serves the volume changes; remove it");
    }
    return;
  }
  if (!config.standalone()) {  // the roles are wrong, which has been said
    table.ignore("redirect");
    table.ignore("redirect_permanent");
    return;
  }
  table.parsed("redirect", volume.redirect, [](std::string_view text) -> Result<std::string> {
    const auto address = parse_target_address(text);
    if (!address) return address.error();
    return to_string(*address);
  });
  volume.redirect_permanent = table.boolean("redirect_permanent").value_or(false);
  if (volume.redirect_permanent && volume.redirect.empty()) {
    table.error("redirect_permanent", "without redirect: where to?");
  }
}

VolumeConfig read_volume(ConfigTable table, const Config& config, ConfigProblems& problems) {
  VolumeConfig volume;
  if (!table.has("name")) table.error("name", "missing: a volume needs a name");
  if (!table.has("size")) table.error("size", "missing: a volume needs a size, such as \"100G\"");
  if (auto name = table.string("name")) {
    const auto valid = check_volume_name(*name);
    if (!valid) table.error("name", valid.error().message);
    volume.name = *std::move(name);
  }
  table.parsed("size", volume.size, size_between(kVolumeSizeMin, kVolumeSizeMax));
  if (volume.size.bytes % 4096 != 0) table.error("size", "expected a multiple of 4096 bytes");
  table.parsed("window", volume.window, seconds_between(kWindowMin, kWindowMax));
  table.parsed("retain", volume.retain, parse_retention);
  read_block_size(table, volume);
  if (auto acl = table.strings("acl")) {
    for (const auto& initiator : *acl) {
      const auto valid = check_initiator_name(initiator);
      if (!valid) table.error("acl", valid.error().message);
    }
    volume.acl = *std::move(acl);
  }
  volume.auth = read_auth_names(table, "auth", config.auth);
  read_redirection(table, config, volume);
  volume.sanitize = table.boolean("sanitize").value_or(false);
  volume.removable = table.boolean("removable").value_or(false);
  read_placement(table, config, volume);
  if (const auto* faults = table.table("faults")) {
    volume.faults = read_faults(ConfigTable(*faults, "volume.faults", problems));
  }
  table.finish();
  return volume;
}

}  // namespace

void read_volumes(ConfigTable& root, ConfigProblems& problems, Config& config) {
  const auto tables = root.tables("volume");
  if (tables.size() > kVolumesMax) {
    root.error("volume", fmt::format("more than {} volumes", kVolumesMax));
    return;
  }
  for (const auto* table : tables) {
    auto volume = read_volume(ConfigTable(*table, "volume", problems), config, problems);
    const bool twice =
        std::any_of(config.volumes.begin(), config.volumes.end(),
                    [&volume](const auto& other) { return other.name == volume.name; });
    if (twice && !volume.name.empty()) {
      problems.error(table->source(), "volume.name",
                     fmt::format("there are two volumes \"{}\"", volume.name));
    }
    config.volumes.push_back(std::move(volume));
  }
}

}  // namespace mariner::config

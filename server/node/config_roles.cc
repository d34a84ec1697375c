#include "server/node/config_roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace mariner::config {
namespace {

std::optional<Role> parse_role(std::string_view name) {
  if (name == "standalone") return Role::kStandalone;
  if (name == "target") return Role::kTarget;
  if (name == "logger") return Role::kLogger;
  if (name == "storage") return Role::kStorage;
  if (name == "manager") return Role::kManager;
  return std::nullopt;
}

// The number of a node goes into the tags of its groups.
void check_portal_groups(ConfigTable& root, const Config& config) {
  for (const PortalGroupConfig& group : config.server.portal_groups) {
    if (group.tag <= kClusterPortalGroupTagMax) continue;
    root.error("server",
               fmt::format("there is a portal group {}: in a cluster, expected a tag of 2 to {}",
                           group.tag, kClusterPortalGroupTagMax));
  }
}

}  // namespace

std::vector<Role> read_roles(ConfigTable& root) {
  if (!root.has("roles")) return {Role::kStandalone};
  std::vector<Role> roles;
  const auto names = root.strings("roles");
  if (!names) return roles;
  if (names->empty()) root.error("roles", "empty; write roles = [\"standalone\"]");
  bool known = true;
  for (const std::string& name : *names) {
    const auto role = parse_role(name);
    if (!role) {
      known = false;
      root.error("roles", name == "remote"
                              ? "the role \"remote\" is not built yet: remove it"
                              : fmt::format("there is no role \"{}\"; expected \"standalone\", or "
                                            "any of \"target\", \"logger\", \"storage\" and "
                                            "\"manager\"",
                                            name));
    } else if (std::ranges::find(roles, *role) != roles.end()) {
      root.error("roles", fmt::format("\"{}\" stands there twice", name));
    } else {
      roles.push_back(*role);
    }
  }
  const auto has = [&roles](Role role) { return std::ranges::find(roles, role) != roles.end(); };
  if (has(Role::kStandalone) && names->size() > 1) {
    known = false;
    root.error("roles",
               "\"standalone\" stands alone: it is target, logger and storage in one process; "
               "remove it, or the others");
  }
  if (!known) roles.clear();
  return roles;
}

void check_sections(ConfigTable& root, const Config& config) {
  if (!clustered(config)) return;
  check_portal_groups(root, config);
  if (config.log.on_full == OnFull::kThrottle) {
    root.error("log",
               "on_full = \"throttle\" is for a standalone server: the logger of a cluster cannot "
               "slow the hosts of other nodes yet; expected \"shorten-window\" or \"stop-writes\"");
  }
  struct Section {
    std::string_view name;
    Role role;
    std::string_view role_name;
  };
  static constexpr Section kSections[] = {{"log", Role::kLogger, "logger"},
                                          {"index", Role::kLogger, "logger"},
                                          {"storage", Role::kStorage, "storage"}};
  const bool journals = config.has(Role::kStorage) && !config.has(Role::kLogger);
  for (const Section& section : kSections) {
    if (journals && section.role == Role::kLogger) {
      if (!root.has(section.name) || !config.log.disks.empty()) continue;
      root.warning(section.name,
                   "not used: a storage node keeps a journal where [log] disks says; name a file "
                   "or a block device there, or remove the section");
    } else if (root.has(section.name) && !config.has(section.role)) {
      root.warning(section.name, fmt::format("not used: this node has not the role \"{}\"; add the "
                                             "role, or remove the section",
                                             section.role_name));
    }
  }
  if (root.has("views")) {
    root.warning("views", "not used: a cluster has no writable views yet; remove the section");
  }
  if (root.has("volume") && !config.has(Role::kTarget) && !config.has(Role::kManager)) {
    root.error("volume",
               "only on a node with the role \"target\" or \"manager\": remove the sections here, "
               "the others tell this node what it needs");
  }
}

}  // namespace mariner::config

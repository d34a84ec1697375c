#include "server/node/config_server.h"

#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "server/node/config_values.h"
#include "server/node/names.h"

namespace mariner::config {
namespace {

constexpr std::size_t kSocketThreadsMax = 64;

Result<std::string> socket_path(std::string_view text) {
  constexpr std::size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  if (text.size() > kLongest) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the path of a socket has at most {} characters, this one {}",
                             kLongest, text.size())};
  }
  return absolute_path(text);
}

Result<std::string> iqn_base(std::string_view text) {
  const auto valid = check_iqn_base(text);
  if (!valid) return valid.error();
  return std::string(text);
}

AuthConfig read_account(ConfigTable table, std::string name) {
  AuthConfig auth;
  auth.name = std::move(name);
  auth.user = table.string("user").value_or(auth.name);
  if (auth.user.empty()) table.error("user", "expected a name");
  if (!table.has("secret_file")) {
    table.error("secret_file", "missing: CHAP needs a secret, in a file of mode 0600");
  }
  table.parsed("secret_file", auth.secret_file, absolute_path);
  auth.mutual_user = table.string("mutual_user").value_or("");
  table.parsed("mutual_secret_file", auth.mutual_secret_file, absolute_path);
  if (table.has("mutual_user") != table.has("mutual_secret_file")) {
    table.error("mutual_user", "mutual_user and mutual_secret_file need each other");
  }
  table.finish();
  return auth;
}

// Sessions: at least one.
void read_count(ConfigTable& table, std::string_view key, std::size_t& to) {
  const auto count = table.integer(key);
  if (!count) return;
  if (*count < 1 || *count > static_cast<std::int64_t>(kSessionsMax)) {
    table.error(key, fmt::format("expected 1 to {}, found {}", kSessionsMax, *count));
  } else {
    to = static_cast<std::size_t>(*count);
  }
}

// "auto", or a number.
Result<std::optional<std::size_t>> parse_socket_threads(std::string_view text) {
  if (text == "auto") return std::optional<std::size_t>();
  std::size_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, failed] = std::from_chars(text.data(), end, count);
  if (failed == std::errc{} && stopped == end && count <= kSocketThreadsMax) return count;
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("expected \"auto\" or \"0\" to \"{}\", found \"{}\"", kSocketThreadsMax, text)};
}

Result<std::optional<std::chrono::nanoseconds>> parse_busy_poll(std::string_view text) {
  if (text == "auto") return std::optional<std::chrono::nanoseconds>();
  auto most = duration_up_to(std::chrono::milliseconds(1))(text);
  if (most) return *most;
  return Error{ErrorCode::kInvalidArgument,
               "expected \"auto\" or a duration: " + most.error().message};
}

// Sets `portals`, if the table has any.
void read_portals(ConfigTable& table, std::vector<Endpoint>& portals) {
  const auto texts = table.strings("portals");
  if (!texts) return;
  portals.clear();
  for (const auto& text : *texts) {
    const auto endpoint = parse_endpoint(text);
    if (!endpoint) {
      table.error("portals", endpoint.error().message);
    } else if (std::ranges::find(portals, *endpoint) != portals.end()) {
      table.error("portals", fmt::format("\"{}\" stands there twice", text));
    } else {
      portals.push_back(*endpoint);
    }
  }
  if (texts->empty()) {
    table.error("portals",
                "empty: no initiator could connect; write [\"0.0.0.0:3260\", \"[::]:3260\"]");
  }
  if (texts->size() > kPortalsMax) {
    table.error("portals", fmt::format("more than {} portals", kPortalsMax));
  }
}

PortalGroupConfig read_portal_group(ConfigTable table) {
  constexpr std::int64_t kTagMin = 2;  // 1 is that of [server] portals
  constexpr std::int64_t kTagMax = 65535;
  PortalGroupConfig group;
  if (!table.has("tag")) table.error("tag", "missing: a portal group needs a number, 2 or higher");
  if (const auto tag = table.integer("tag")) {
    if (*tag < kTagMin || *tag > kTagMax) {
      table.error("tag", fmt::format("expected {} to {} (1 is the group of [server] portals), "
                                     "found {}",
                                     kTagMin, kTagMax, *tag));
    } else {
      group.tag = static_cast<std::uint16_t>(*tag);
    }
  }
  if (!table.has("portals")) table.error("portals", "missing: a portal group needs portals");
  read_portals(table, group.portals);
  table.finish();
  return group;
}

void read_portal_groups(ConfigTable& table, ConfigProblems& problems, ServerConfig& server) {
  std::vector<Endpoint> all = server.portals;
  for (const auto* group_table : table.tables("portal_group")) {
    PortalGroupConfig group =
        read_portal_group(ConfigTable(*group_table, "server.portal_group", problems));
    const auto same_tag = [&](const PortalGroupConfig& other) { return other.tag == group.tag; };
    if (group.tag != 0 && std::ranges::any_of(server.portal_groups, same_tag)) {
      problems.error(group_table->source(), "server.portal_group.tag",
                     fmt::format("there are two portal groups {}", group.tag));
    }
    for (const Endpoint& portal : group.portals) {
      if (portal.port != 0 && std::ranges::find(all, portal) != all.end()) {
        problems.error(group_table->source(), "server.portal_group.portals",
                       fmt::format("{} stands in another group, too", to_string(portal)));
      }
      all.push_back(portal);
    }
    server.portal_groups.push_back(std::move(group));
  }
  if (all.size() > kPortalsMax) {
    table.error("portal_group", fmt::format("more than {} portals in all", kPortalsMax));
  }
  std::ranges::sort(server.portal_groups, {}, &PortalGroupConfig::tag);
}

}  // namespace

std::vector<AuthConfig> read_auth(const toml::table& tables, ConfigProblems& problems) {
  std::vector<AuthConfig> accounts;
  for (const auto& [key, node] : tables) {
    const auto path = fmt::format("auth.{}", key.str());
    const auto* table = node.as_table();
    if (table == nullptr) {
      problems.error(key.source(), path, fmt::format("expected a table: [{}]", path));
      continue;
    }
    accounts.push_back(read_account(ConfigTable(*table, path, problems), std::string(key.str())));
  }
  return accounts;
}

std::vector<std::string> read_auth_names(ConfigTable& table, std::string_view key,
                                         const std::vector<AuthConfig>& accounts) {
  std::vector<std::string> names = table.string_or_strings(key);
  for (const std::string& name : names) {
    if (std::ranges::find(accounts, name, &AuthConfig::name) == accounts.end()) {
      table.error(key, fmt::format("there is no [auth.{}]", name));
    }
  }
  return names;
}

void read_server(ConfigTable table, const std::vector<AuthConfig>& accounts,
                 ConfigProblems& problems, ServerConfig& server) {
  table.parsed("iqn_base", server.iqn_base, iqn_base);
  table.parsed("admin", server.admin_socket, socket_path);
  table.parsed("state_dir", server.state_dir, absolute_path);
  if (const auto http = table.string("http"); http && http->empty()) {
    server.http.reset();
  } else if (http) {
    const auto endpoint = parse_endpoint(*http);
    if (!endpoint) {
      table.error("http", endpoint.error().message);
    } else {
      server.http = *endpoint;
      if (!endpoint->loopback()) {
        table.warning("http",
                      "metrics and health will be readable by everyone who reaches this address: "
                      "they are served without a password; 127.0.0.1 keeps them on this machine");
      }
    }
  }
  read_portals(table, server.portals);
  read_portal_groups(table, problems, server);
  server.discovery_auth = read_auth_names(table, "discovery_auth", accounts);
  read_count(table, "sessions_max", server.sessions_max);
  server.sessions_per_initiator_max =
      std::min(server.sessions_per_initiator_max, server.sessions_max);
  read_count(table, "sessions_per_initiator_max", server.sessions_per_initiator_max);
  table.parsed("initiator_memory", server.initiator_memory,
               size_between(kInitiatorMemoryMin, ByteSize{1ull << 40}));
  table.parsed("busy_poll", server.busy_poll, parse_busy_poll);
  table.parsed("socket_threads", server.socket_threads, parse_socket_threads);
  table.parsed("socket_threads_load", server.socket_threads_load, share_from(0));
  table.finish();
}

}  // namespace mariner::config

#include "server/client/local_checks.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "server/client/quantity.h"
#include "server/node/config.h"

namespace mariner::client {
namespace {

api::Finding finding(std::string_view check, std::string_view level, std::string found,
                     std::string advice) {
  api::Finding finding;
  finding.set_check(std::string(check));
  finding.set_level(std::string(level));
  finding.set_found(std::move(found));
  finding.set_advice(std::move(advice));
  return finding;
}

// Closes at the end of its scope.
struct Socket {
  int fd;
  explicit Socket(int family) : fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (fd >= 0) ::close(fd);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
};

// errno of an attempt to listen there; 0 if it would work.
int try_to_listen(const Endpoint& endpoint) {
  const Socket socket(endpoint.v6 ? AF_INET6 : AF_INET);
  if (socket.fd < 0) return errno;
  const int on = 1;
  setsockopt(socket.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  int result = 0;
  if (endpoint.v6) {
    setsockopt(socket.fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(endpoint.port);
    inet_pton(AF_INET6, endpoint.address.c_str(), &address.sin6_addr);
    result = ::bind(socket.fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  } else {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(endpoint.port);
    inet_pton(AF_INET, endpoint.address.c_str(), &address.sin_addr);
    result = ::bind(socket.fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  if (result == 0) result = ::listen(socket.fd, 1);
  return result == 0 ? 0 : errno;
}

api::Finding check_port(std::string_view key, const Endpoint& endpoint) {
  const auto where = to_string(endpoint);
  const int error = try_to_listen(endpoint);
  if (error == 0) return finding("port", "ok", fmt::format("{} ({}) is free", where, key), "");
  if (error == EADDRINUSE) {
    return finding(
        "port", "error", fmt::format("{} ({}) is used by another program", where, key),
        fmt::format("find it with: ss -ltnp 'sport = :{}'; stop it, or configure another port",
                    endpoint.port));
  }
  return finding("port", "error", fmt::format("{} ({}): {}", where, key, std::strerror(error)),
                 error == EADDRNOTAVAIL ? "no interface has this address: see ip address"
                                        : "run the doctor as root, or configure another address");
}

api::Finding check_socket(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) {
    const bool denied = errno == EACCES;
    return finding(
        "socket", "error", fmt::format("{}: {}", path, std::strerror(errno)),
        denied ? "run this as root"
               : "start the daemon: systemctl start marinerd; its log: journalctl -u marinerd");
  }
  if (!S_ISSOCK(status.st_mode)) {
    return finding("socket", "error", path + " is not a socket",
                   "move it away, or configure another server.admin");
  }
  const Socket socket(AF_UNIX);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return finding("socket", "error", path + " is too long for a socket",
                   "configure a shorter server.admin");
  std::memcpy(address.sun_path, path.c_str(), path.size());
  if (::connect(socket.fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return finding("socket", "warning",
                   "the daemon accepts connections at " + path + " but does not answer as expected",
                   "look at its log: journalctl -u marinerd");
  }
  if (errno == EACCES || errno == EPERM)
    return finding("socket", "error", "no permission to use " + path, "run this as root");
  return finding(
      "socket", "error",
      fmt::format("nobody listens at {}: the daemon has ended without removing it", path),
      "start the daemon: systemctl start marinerd; its log: journalctl -u marinerd");
}

void check_config(const std::string& path, const ConfigReading& reading,
                  std::vector<api::Finding>& findings) {
  for (const auto& problem : reading.problems) {
    findings.push_back(finding(
        "configuration", problem.level == ConfigProblem::Level::kWarning ? "warning" : "error",
        to_string(problem), "correct it, then: mariner config check " + path));
  }
  if (reading.problems.empty())
    findings.push_back(finding("configuration", "ok", path + " is valid", ""));
}

api::Finding check_directory(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    return finding("state", "error", path + " (server.state_dir) is not a directory",
                   "make it: install -d -m 0700 " + path);
  }
  const auto space = std::filesystem::space(path, error);
  if (error)
    return finding("state", "warning", fmt::format("{}: {}", path, error.message()),
                   "run the doctor as root");
  const bool scarce = space.available < space.capacity / 20;
  return finding("state", scarce ? "warning" : "ok",
                 fmt::format("{} has {} free", path, format_size(space.available)),
                 scarce ? "images grow: make room, or move server.state_dir" : "");
}

api::Finding check_clock() {
  timex state{};
  const int synchronised = adjtimex(&state);
  if (synchronised < 0) {
    return finding("clock", "warning",
                   fmt::format("the clock cannot be asked: {}", std::strerror(errno)),
                   "run the doctor as root, outside of containers");
  }
  if (synchronised == TIME_ERROR) {
    return finding(
        "clock", "warning", "the clock is not synchronised",
        "times of writes are only as good as the clock: enable systemd-timesyncd or chrony");
  }
  return finding("clock", "ok", "the clock is synchronised", "");
}

}  // namespace

std::vector<api::Finding> local_findings(const LocalChecks& checks) {
  std::vector<api::Finding> findings;
  const auto reading = load_config(checks.config_path);
  check_config(checks.config_path, reading, findings);
  if (!checks.daemon_answers) {
    findings.push_back(check_socket(checks.socket));
    if (reading.config) {
      for (const auto& portal : reading.config->server.portals)
        findings.push_back(check_port("server.portals", portal));
      if (reading.config->server.http)
        findings.push_back(check_port("server.http", *reading.config->server.http));
      findings.push_back(check_directory(reading.config->server.state_dir));
    }
    findings.push_back(check_clock());
  }
  return findings;
}

}  // namespace mariner::client

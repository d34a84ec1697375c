#include "tests/server/manager/etcd_cluster.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "proto/check.h"

namespace mariner::manager {
namespace {

constexpr const char* kProgram = "/usr/bin/etcd";

std::string url(const Endpoint& endpoint) { return "http://" + to_string(endpoint); }

// A socket that has this port of the loopback, -1 if somebody else has it.
int bound(unsigned port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  ::close(fd);
  return -1;
}

}  // namespace

bool EtcdCluster::installed() { return std::filesystem::exists(kProgram); }

EtcdCluster::EtcdCluster(std::size_t members) : members_(members) {
  for (Member& member : members_) member = {free_endpoint(), free_endpoint(), 0};
  for (std::size_t i = 0; i < members; ++i) start(i);
}

EtcdCluster::~EtcdCluster() {
  for (std::size_t i = 0; i < members_.size(); ++i) kill(i);
}

std::vector<Endpoint> EtcdCluster::endpoints() const {
  std::vector<Endpoint> endpoints;
  for (const Member& member : members_) endpoints.push_back(member.client);
  return endpoints;
}

// Below the ports that the kernel gives to connections: one of these could take it before who is to
// listen there. So could another test beside this one: each has a stretch of its own, which is its
// own while it keeps the first port of it. None is given twice, as long as there are others.
Endpoint EtcdCluster::free_endpoint() {
  constexpr unsigned kFirst = 10'000;
  constexpr unsigned kStretches = 100;
  constexpr unsigned kPorts = 220;
  static const unsigned stretch = [] {
    for (unsigned i = 0; i < kStretches; ++i) {
      const unsigned first = kFirst + (static_cast<unsigned>(::getpid()) + i) % kStretches * kPorts;
      if (bound(first) >= 0) return first;
    }
    CHECK_MSG(false, "every stretch of ports is taken");
    return 0u;
  }();
  static unsigned given = 0;
  for (unsigned tries = 0; tries < kPorts; ++tries) {
    const unsigned port = stretch + 1 + given++ % (kPorts - 1);
    const int fd = bound(port);
    if (fd < 0) continue;
    ::close(fd);
    return {.address = "127.0.0.1", .port = static_cast<std::uint16_t>(port)};
  }
  CHECK_MSG(false, "every port of this test's stretch is taken");
  return {};
}

void EtcdCluster::start(std::size_t member) {
  CHECK(members_[member].pid == 0);
  std::string all;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    all += (i == 0 ? "" : ",") + name(i) + "=" + url(members_[i].peer);
  }
  const std::string client = url(members_[member].client);
  const std::string peer = url(members_[member].peer);
  const std::string data = directory_.file(name(member));
  const std::string log = data + ".log";
  // Short times, so that elections and leases are over soon; nothing here is to survive a power
  // cut.
  std::vector<std::string> words{kProgram,     "--name",
                                 name(member), "--data-dir",
                                 data,         "--listen-client-urls",
                                 client,       "--advertise-client-urls",
                                 client,       "--listen-peer-urls",
                                 peer,         "--initial-advertise-peer-urls",
                                 peer,         "--initial-cluster",
                                 all,          "--heartbeat-interval",
                                 "50",         "--election-timeout",
                                 "500",        "--unsafe-no-fsync"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (::getppid() != parent || fd < 0) ::_exit(1);
    ::dup2(fd, STDOUT_FILENO);
    ::dup2(fd, STDERR_FILENO);
    ::execv(kProgram, arguments.data());
    ::_exit(1);
  }
  members_[member].pid = pid;
}

void EtcdCluster::kill(std::size_t member) {
  pid_t& pid = members_[member].pid;
  if (pid == 0) return;
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  pid = 0;
}

void EtcdCluster::freeze(std::size_t member) { ::kill(members_[member].pid, SIGSTOP); }

void EtcdCluster::go_on(std::size_t member) { ::kill(members_[member].pid, SIGCONT); }

}  // namespace mariner::manager

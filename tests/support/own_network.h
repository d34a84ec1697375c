// A network of the calling thread's own, for as long as it lives: interfaces can be made, changed
// and taken away there, and nobody else sees them. Sockets that the thread makes belong to it.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "proto/check.h"

namespace mariner::test {

class OwnNetwork {
 public:
  OwnNetwork() : before_(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)) {
    made_ = before_ >= 0 && unshare(CLONE_NEWNET) == 0;
  }
  ~OwnNetwork() {
    if (made_) CHECK(setns(before_, CLONE_NEWNET) == 0);
    if (before_ >= 0) close(before_);
  }
  OwnNetwork(const OwnNetwork&) = delete;
  OwnNetwork& operator=(const OwnNetwork&) = delete;

  // False: there is no right to make one, or no command to make interfaces with.
  [[nodiscard]] bool made() const { return made_ && run("ip link set lo up"); }
  // Whether the command succeeded, there.
  [[nodiscard]] bool run(const std::string& command) const {
    return made_ && std::system((command + " 2>/dev/null").c_str()) == 0;
  }

  // The interface with address 10.9.9.1, which is one end of a cable.
  static constexpr const char* kAddress = "10.9.9.1";
  [[nodiscard]] bool make_interface(int mtu) const {
    const std::string packets = "mtu " + std::to_string(mtu);
    return run("ip link add near " + packets + " type veth peer name far " + packets) &&
           run("ip address add 10.9.9.1/24 dev near") && run("ip link set near up") &&
           run("ip link set far up");
  }
  [[nodiscard]] bool set_mtu(int mtu) const {
    return run("ip link set near mtu " + std::to_string(mtu));
  }
  [[nodiscard]] bool take_interface_away() const { return run("ip link delete near"); }
  // What is sent leaves so fast: until then it fills its socket's buffer.
  [[nodiscard]] bool set_rate(const std::string& rate) const {
    return run("tc qdisc replace dev near root tbf burst 2kb latency 100s rate " + rate);
  }

 private:
  int before_;
  bool made_ = false;
};

}  // namespace mariner::test

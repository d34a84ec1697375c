// Real etcd for tests: some members on loopback, each with its data in a directory of its own.
//
// They end with the object, and with the test's process whatever becomes of it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "proto/endpoint.h"
#include "tests/logging/temporary_directory.h"

namespace mariner::manager {

class EtcdCluster {
 public:
  explicit EtcdCluster(std::size_t members);
  ~EtcdCluster();
  EtcdCluster(const EtcdCluster&) = delete;
  EtcdCluster& operator=(const EtcdCluster&) = delete;

  // Whether Debian's etcd-server is installed.
  [[nodiscard]] static bool installed();

  // On loopback, with a port of this process alone, as long as it runs: none is given twice.
  [[nodiscard]] static Endpoint free_endpoint();

  [[nodiscard]] std::vector<Endpoint> endpoints() const;
  // As kill -9; start() begins it again with the data that it had.
  void kill(std::size_t member);
  void start(std::size_t member);
  // It holds its connections and says nothing, until go_on().
  void freeze(std::size_t member);
  void go_on(std::size_t member);

 private:
  struct Member {
    Endpoint client;
    Endpoint peer;
    pid_t pid = 0;
  };
  [[nodiscard]] std::string name(std::size_t member) const { return "m" + std::to_string(member); }

  logging::test::TemporaryDirectory directory_;
  std::vector<Member> members_;
};

}  // namespace mariner::manager

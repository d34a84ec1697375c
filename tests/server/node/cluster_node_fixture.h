// Nodes of a cluster in one process, each in a directory of its own and with its loop on a thread
// of its own, and a real etcd of one member that they share.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "server/manager/etcd_store.h"
#include "server/node/cluster_control.h"
#include "server/node/cluster_node.h"
#include "tests/logging/temporary_directory.h"
#include "tests/server/manager/etcd_cluster.h"
#include "tests/server/node/block_client.h"
#include "tests/server/node/log_file.h"
#include "tests/server/node/loop_thread.h"
#include "tests/server/peer/peer_rig.h"

namespace mariner::node::testing {

// Stopped when it is gone.
class RunningNode {
 public:
  // It logs to the file `log`, behind what is there.
  RunningNode(const Config& config, const std::string& log);
  ~RunningNode();
  RunningNode(const RunningNode&) = delete;
  RunningNode& operator=(const RunningNode&) = delete;

  // Its loop runs from here on, if it is good.
  Result<void> start();

  template <typename Work>
  auto on_loop(Work work) {
    return loop_.run([this, work = std::move(work)] { return work(node_); });
  }
  template <typename T, typename Request>
  Result<T> ask(void (ClusterControl::*call)(const Request&, admin::Answer<T>),
                const std::type_identity_t<Request>& request) {
    return loop_.answer<Result<T>>(
        [this, call, request](auto done) { (control_.*call)(request, std::move(done)); });
  }
  template <typename T>
  Result<T> ask(void (ClusterControl::*call)(admin::Answer<T>)) {
    return loop_.answer<Result<T>>([this, call](auto done) { (control_.*call)(std::move(done)); });
  }
  // A repair of a moment: one block, all of one byte. Its id; empty: it was refused.
  std::string hand_over(const std::string& volume, std::uint64_t sequence, std::uint64_t block,
                        char byte);
  // What `call` is answered, which is given where the past is read, and the way to answer.
  template <typename T, typename Call>
  Result<T> ask_past(Call call) {
    return loop_.answer<Result<T>>(
        [this, call](auto done) { call(control_.past(), admin::Answer<T>(std::move(done))); });
  }
  Result<api::Volume> show(const std::string& volume);
  // Of a volume that the cluster has; empty if it has none of that name.
  api::ReplicatedVolume replicas(const std::string& volume);
  [[nodiscard]] bool serves(const std::string& volume);
  // As it shows the volume; empty: it does not know it (yet).
  [[nodiscard]] std::string state_of(const std::string& volume);
  // Through its own portals: `member` is its place among the members.
  [[nodiscard]] BlockClient client(std::size_t member) {
    return {loop_, node_, static_cast<std::uint16_t>(member + 1)};
  }

 private:
  LogFile log_;
  LoopThread loop_;
  ClusterNode node_;
  ClusterControl control_;
  bool running_ = false;
};

class ClusterNodeFixture : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kVolumeBytes = 1u << 20;
  static constexpr const char* kVolume = "db1";
  static constexpr const char* kIqn = "iqn.2026-11.org.example:db1";
  struct Member {
    std::string name;
    std::vector<Role> roles;
  };

  // One node, "a", with every role.
  ClusterNodeFixture()
      : ClusterNodeFixture({{"a", {Role::kTarget, Role::kStorage, Role::kLogger}}}) {}
  // Numbered from 1.
  explicit ClusterNodeFixture(const std::vector<Member>& members);
  void SetUp() override;
  void TearDown() override;

  // Of the member; a test may change it before start().
  [[nodiscard]] Config& config(std::size_t member = 0) { return configs_[member]; }
  // In the member's directory.
  [[nodiscard]] std::string path(const std::string& name, std::size_t member = 0) const;
  // kVolume, in the configuration of the member.
  void configure_volume(std::size_t member, std::string logger, std::vector<std::string> storage);

  // That it starts is expected.
  void start(std::size_t member = 0);
  void stop(std::size_t member = 0) { nodes_[member].reset(); }
  // What a start is refused with; empty: it is not refused.
  std::string refusal(std::size_t member = 0);
  [[nodiscard]] RunningNode& node(std::size_t member = 0) { return *nodes_[member]; }
  // Whether it comes to serve kVolume.
  [[nodiscard]] bool comes_to_serve(std::size_t member = 0);
  void write(std::uint64_t block, char byte, std::size_t member = 0);
  // Nothing: the answer is not good.
  std::optional<char> read(std::uint64_t block, std::size_t member = 0);
  // What all members have logged.
  [[nodiscard]] std::string logs() const;
  // How often the member has logged a line with `text`.
  [[nodiscard]] std::size_t told(const std::string& text, std::size_t member = 0) const;
  [[nodiscard]] static bool eventually(const std::function<bool()>& condition) {
    return LoopThread::eventually(condition);
  }

  // The shared store, as another client of it.
  void put(const std::string& key, const std::string& value);
  std::optional<std::string> get(const std::string& key);
  [[nodiscard]] manager::EtcdCluster& etcd() { return *etcd_; }
  [[nodiscard]] const peer::test::TestCluster& authority() const { return authority_; }

 private:
  logging::test::TemporaryDirectory directory_;
  const peer::test::TestCluster authority_{"north"};
  std::unique_ptr<manager::EtcdCluster> etcd_;
  LoopThread loop_;
  std::unique_ptr<manager::EtcdStore> store_;
  std::vector<Config> configs_;
  std::vector<std::unique_ptr<RunningNode>> nodes_;
};

}  // namespace mariner::node::testing

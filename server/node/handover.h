// What a node that stops waits for before it logs hosts out: that another node serves the volumes
// which were coordinated here, and that hosts have had the time to see it. So multipath goes over
// while the old way still answers, and need not wait until it gives up a connection.
//
// Hosts without multipath, which have no other way, are redirected while they log in once more.
//
// Bounded by kTakeover and the graces; nothing is waited for where no host is logged in, or where
// nobody is there who would take over. Loop's thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proto/executor.h"
#include "server/manager/cluster_view.h"
#include "server/manager/volume_record.h"

namespace mariner::node {

class Handover {
 public:
  // For another node to serve.
  static constexpr std::chrono::milliseconds kTakeover{1000};
  // For hosts to ask again, when one does.
  static constexpr std::chrono::milliseconds kGrace{1000};
  // For hosts that were asked to leave to come again, and be sent there: they wait for two seconds
  // before that (DefaultTime2Wait, RFC 7143 13.15).
  static constexpr std::chrono::milliseconds kRedirectGrace{4000};

  struct Volume {
    VolumeId id;
    std::string iqn;
    std::vector<replication::NodeId> successors;  // that may take over by themselves
    bool redirect = false;
  };
  struct Parts {
    Executor& executor;                // outlives it
    const manager::ClusterView& view;  // outlives it
    replication::NodeId self;
    std::function<std::size_t(const std::string& iqn)> sessions;  // that hosts have at a target
  };

  explicit Handover(Parts parts) : parts_(std::move(parts)) {}
  ~Handover() { *alive_ = false; }
  Handover(const Handover&) = delete;
  Handover& operator=(const Handover&) = delete;

  // Coordination of `volumes` has ended here. `done` once, maybe from within.
  void begin(std::vector<Volume> volumes, UniqueFunction<void()> done);

 private:
  void look();
  [[nodiscard]] bool served_elsewhere(const Volume& volume) const;
  [[nodiscard]] bool hopeless(const Volume& volume) const;
  [[nodiscard]] std::chrono::nanoseconds grace() const;

  const Parts parts_;
  std::vector<Volume> volumes_;
  UniqueFunction<void()> done_;
  std::chrono::nanoseconds begun_{0};
  std::optional<std::chrono::nanoseconds> served_;  // since when all are that can be
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::node

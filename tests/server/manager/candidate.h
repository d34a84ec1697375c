// A node that would coordinate a volume: lease, view and election on a store.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "server/manager/election.h"

namespace mariner::manager {

// Members are public: a test looks at each.
struct Candidate {
  // Both outlive it.
  Candidate(ClusterStore& store, Executor& executor, VolumeId volume, replication::NodeId id,
            bool promote = true)
      : lease(store, executor, {.key = alive_key(id), .value = "", .backoff = {.seed = id.value}},
              {.gained = [this] { look(); },
               .lost =
                   [this] {
                     ++lost;
                     look();
                   }}),
        view(store, executor, std::string(kClusterPrefix), {.seed = id.value}, [this] { look(); }),
        election(store, executor, lease, view,
                 {.volume = volume, .self = id, .promote = promote, .backoff = {.seed = id.value}},
                 {.elected =
                      [this](const VolumeRecord& record) {
                        epoch = record.epoch.value;
                        ++elected;
                      },
                  .deposed =
                      [this] {
                        ++deposed;
                        if (on_deposed) on_deposed();
                      },
                  .failed = [this](const Error& error) { failed = error.message; },
                  .may_follow = [this](replication::NodeId) { return others_may_follow; }}) {
    ready = true;
    lease.start();
  }
  void look() {
    if (ready) election.look();
  }

  bool ready = false;
  std::uint64_t epoch = 0;
  int lost = 0;
  int elected = 0;
  int deposed = 0;
  std::string failed;
  bool others_may_follow = true;
  std::function<void()> on_deposed;
  NodeLease lease;
  ClusterView view;
  Election election;
};

}  // namespace mariner::manager

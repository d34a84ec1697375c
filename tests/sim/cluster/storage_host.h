// A storage node of the simulated cluster: the production code's StorageRole over a table of
// pending writes and an image that is written in the background.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>

#include "replication/storage_role.h"
#include "tests/sim/cluster/cluster_model.h"
#include "tests/sim/cluster/planted.h"
#include "tests/sim/cluster/sim_network.h"

namespace mariner::test {

// What of one volume is on a storage node's stable storage.
struct StorageDisk {
  Epoch promised;
  Blocks image;
  SequenceNumber durable;
};

class StorageHost {
 public:
  // Asks the logger what changed in (from, to], until it answers.
  using AskHistory = std::function<void(SequenceNumber from, SequenceNumber to,
                                        std::function<void(const Blocks&)> answer)>;

  StorageHost(SimNode& node, std::mt19937_64& random, ClusterModel& model, StorageDisk& disk,
              VolumeId volume, Planted planted, AskHistory ask);

  using AnswerTo = std::function<void(replication::FromStorage)>;
  // `closed` is called when the connection has ended.
  replication::ConnectionId accept(AnswerTo answer);
  void disconnected(replication::ConnectionId connection);
  void received(replication::ConnectionId from, replication::ToStorage message);

  // What a read sees once everything at or below `at` is committed.
  void read(std::uint64_t block, SequenceNumber at, std::function<void(BlockValue)> done);
  [[nodiscard]] BlockValue value(std::uint64_t block) const;

  // The image is not written meanwhile.
  void set_slow(bool slow);
  [[nodiscard]] const replication::StorageRole& role() const { return role_; }
  // Everything committed is in the image.
  [[nodiscard]] bool applied() const { return pending_.empty() && !applying_; }

 private:
  struct Waiting {
    std::uint64_t block = 0;
    SequenceNumber at;
    std::function<void(BlockValue)> done;
  };
  void run(replication::StorageRole::Actions& actions);
  void carry_out(replication::StorageRole::Action& action);
  void commit(SequenceNumber settled);
  void serve_waiting();
  void apply_later();
  void apply();
  void flush_later();

  static constexpr std::uint64_t kLagBytesMax = 200ull * kBlockBytes;

  SimNode& node_;
  std::mt19937_64& random_;
  ClusterModel& model_;
  StorageDisk& disk_;
  const Planted planted_;
  AskHistory ask_;
  replication::StorageRole role_;
  std::map<replication::ConnectionId, AnswerTo> peers_;
  std::deque<replication::WriteMessage> prepared_;
  Blocks pending_;
  std::uint64_t pending_bytes_ = 0;
  std::uint64_t given_back_ = 0;  // bytes that were prepared, and do not wait any more
  std::deque<Waiting> waiting_;
  SequenceNumber committed_;
  bool applying_ = false;
  bool apply_set_ = false;
  bool slow_ = false;
  bool flushing_ = false;
  bool running_ = false;
  std::deque<replication::StorageRole::Action> queue_;
};

}  // namespace mariner::test

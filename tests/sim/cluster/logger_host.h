// A logger of the simulated cluster: the production code's LoggerRole over a disk that keeps what
// it has acknowledged, and of what was under way in a crash some.
#pragma once

#include <map>
#include <memory>
#include <random>
#include <set>

#include "replication/logger_role.h"
#include "tests/sim/cluster/cluster_model.h"
#include "tests/sim/cluster/planted.h"
#include "tests/sim/cluster/sim_network.h"

namespace mariner::test {

// What of one volume is on the logger's stable storage.
struct LoggerDisk {
  Epoch promised;
  VersionTime floor;
  std::map<SequenceNumber, LoggedWrite> writes;
  std::set<SequenceNumber> voids;
  SequenceNumber frontier;
  // Under way: on the disk perhaps.
  struct InFlight {
    std::optional<LoggedWrite> write;  // nothing: voids
    replication::SequenceRange numbers;
  };
  std::map<std::uint64_t, InFlight> in_flight;

  // The power goes, or the process ends: each thing under way is there or not. What stands behind a
  // missing number was never acknowledged, and is withdrawn.
  void crash(std::mt19937_64& random);
  // Every number at or below is there.
  [[nodiscard]] SequenceNumber last() const;
};

class LoggerHost {
 public:
  struct Faults {
    unsigned fail_writes = 0;  // so many of the next fail
    bool hangs = false;        // nothing is finished meanwhile
  };

  LoggerHost(SimNode& node, std::mt19937_64& random, ClusterModel& model, LoggerDisk& disk,
             VolumeId volume, Planted planted);

  // A coordinator has dialled. It is answered through `connection`, by `answer` at its end.
  using AnswerTo = std::function<void(replication::FromLogger)>;
  replication::ConnectionId accept(const SimConnectionPtr& connection, AnswerTo answer);
  void received(replication::ConnectionId from, replication::ToLogger message);

  // What the history says that changed in (from, to]; nothing: it does not know yet.
  [[nodiscard]] std::optional<Blocks> changed(SequenceNumber from, SequenceNumber to) const;

  void set_faults(Faults faults);
  [[nodiscard]] const replication::LoggerRole& role() const { return role_; }

 private:
  struct Peer {
    SimConnectionPtr connection;
    AnswerTo answer;
  };
  void run(replication::LoggerRole::Actions& actions);
  void append(LoggerDisk::InFlight what, std::function<void(const Result<void>&)> done);
  void finish(std::uint64_t number, const std::function<void(const Result<void>&)>& done);
  void flush_later();

  SimNode& node_;
  std::mt19937_64& random_;
  ClusterModel& model_;
  LoggerDisk& disk_;
  const Planted planted_;
  Faults faults_;
  replication::LoggerRole role_;
  std::map<replication::ConnectionId, Peer> peers_;
  std::uint64_t appends_ = 0;
  std::deque<std::function<void()>> hanging_;
  bool flushing_ = false;
  bool running_ = false;
  std::deque<replication::LoggerRole::Action> queue_;
};

}  // namespace mariner::test

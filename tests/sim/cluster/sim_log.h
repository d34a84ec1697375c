// The logger's disk in the simulated cluster: keeps what it has acknowledged, and of what was under
// way in a crash some.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "replication/logger_role.h"
#include "replication/participant.h"
#include "tests/sim/cluster/cluster_model.h"
#include "tests/sim/cluster/planted.h"
#include "tests/sim/cluster/sim_node.h"

namespace mariner::test {

// What of one volume is on the logger's stable storage.
struct LoggerDisk {
  Epoch promised;
  VersionTime floor;
  // Behind this the history begins; what was before is lost.
  SequenceNumber begun;
  VersionTime begun_time;
  std::map<SequenceNumber, LoggedWrite> writes;
  std::set<SequenceNumber> voids;
  SequenceNumber frontier;
  // What was written up to here is found in the images alone, but for what nothing was written to
  // since; nobody can be told what changed since before.
  SequenceNumber given_up;
  // Under way: on the disk perhaps.
  struct InFlight {
    std::optional<LoggedWrite> write;  // nothing: voids
    replication::SequenceRange numbers;
  };
  std::map<std::uint64_t, InFlight> in_flight;

  // The power goes, or the process ends: each thing under way is there or not. What stands behind a
  // missing number was never acknowledged, and is withdrawn.
  void crash(std::mt19937_64& random);
  // What it needs no more for the images, it gives up.
  void give_up();
  // Behind this, what changed can be told; what the volume held then, images know.
  [[nodiscard]] SequenceNumber base() const { return std::max(begun, given_up); }
  // Every number at or below is there.
  [[nodiscard]] SequenceNumber last() const;
  // Where a role begins.
  [[nodiscard]] replication::LoggerRole::Start start(VolumeId volume) const;
};

class SimLog final : public replication::ClusterLoggerParticipant,
                     public replication::PromiseStore,
                     public replication::LogSource {
 public:
  struct Faults {
    unsigned fail_writes = 0;  // so many of the next fail
    bool hangs = false;        // nothing is finished meanwhile
  };

  // The logger's, or a journal.
  SimLog(SimNode& node, std::mt19937_64& random, ClusterModel& model, LoggerDisk& disk,
         Planted planted)
      : node_(node), random_(random), model_(model), disk_(disk), planted_(planted) {}

  void log(const replication::WriteMessage& message,
           UniqueFunction<void(Result<void>)> done) override;
  void log_void(const replication::VoidMessage& message,
                UniqueFunction<void(Result<void>)> done) override;
  void begin_anew(SequenceNumber at, VersionTime time,
                  UniqueFunction<void(Result<void>)> done) override;
  void promise(VolumeId volume, Epoch epoch, VersionTime floor,
               UniqueFunction<void(Result<void>)> done) override;

  void fetch(SequenceNumber from, SequenceNumber to,
             UniqueFunction<void(Result<Portion>)> done) override;

  // What the history says that changed in (from, to], of which everything is settled; only a blank
  // image asks from before base(): what was written since then.
  [[nodiscard]] Blocks changed(SequenceNumber from, SequenceNumber to) const;
  [[nodiscard]] const LoggerDisk& disk() const { return disk_; }

  void set_faults(Faults faults);

 private:
  using Done = UniqueFunction<void(Result<void>)>;
  void append(LoggerDisk::InFlight what, Done done);
  void finish(std::uint64_t number);

  SimNode& node_;
  std::mt19937_64& random_;
  ClusterModel& model_;
  LoggerDisk& disk_;
  const Planted planted_;
  Faults faults_;
  std::uint64_t appends_ = 0;
  std::map<std::uint64_t, Done> done_;
  std::deque<std::uint64_t> hanging_;
};

}  // namespace mariner::test

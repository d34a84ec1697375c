// A cluster in one thread, from a seed: two nodes that may coordinate and hold images, one logger,
// and, by chance, one that may coordinate and holds nothing; initiators that write, read and open
// moments; faults of many kinds; and at the end, when all are back, what must hold
// (cluster_model.h).
//
// The protocol's code is the production code: the roles of replication/, lease, view and election
// of server/manager, and, with every other seed, encoding and multicast between the nodes
// (sim_bus.h); without, each conversation has a connection of its own (connection_ways.h). Clock,
// networks, disks, the shared store and the initiators are simulated.
#pragma once

#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/sim/cluster/sim_bus.h"
#include "tests/sim/cluster/sim_log.h"
#include "tests/sim/cluster/sim_store.h"
#include "tests/sim/cluster/target_host.h"

namespace mariner::test {

class ClusterSim {
 public:
  struct Totals {
    std::uint64_t runs = 0;
    std::uint64_t acknowledged = 0;
    std::uint64_t reads = 0;
    std::uint64_t reads_elsewhere = 0;  // of a target that stores nothing
    std::uint64_t moments = 0;
    std::uint64_t faults = 0;
    std::uint64_t epochs = 0;
    std::uint64_t times_away = 0;         // of a logger, and it was gone without
    std::uint64_t acknowledged_away = 0;  // meanwhile
    std::uint64_t logs_lost = 0;          // by a logger that was away
    std::uint64_t disks_replaced = 0;     // an image and its journal
    std::uint64_t journals_replaced = 0;  // of these, while they were all that was kept
    std::uint64_t given_up = 0;           // times that a log gave up what the images have
    std::uint64_t images_let_go = 0;      // times that an image failed and was done without
    std::uint64_t images_failed = 0;      // ... and was needed all the same
    std::uint64_t seconds = 0;            // virtual
    std::uint64_t runs_with_bus = 0;
    BusTotals bus;
  };

  ClusterSim(std::uint64_t seed, Planted planted);
  ~ClusterSim();
  ClusterSim(const ClusterSim&) = delete;
  ClusterSim& operator=(const ClusterSim&) = delete;

  // What was violated; empty: nothing.
  std::string run(Totals& totals);

  // What happened, for who looks for the reason: MARINER_TEST_TRACE=1 prints it.
  void say(const std::string& what);

 private:
  static constexpr std::size_t kVolumes = 2;
  static constexpr std::uint64_t kBlocks = 40;
  static constexpr std::uint32_t kNodesMax = 4;  // 1 and 2: targets with storage
  static constexpr std::uint32_t kLogger = 3;
  static constexpr std::uint32_t kAlone = 4;  // a target without

  struct Life;  // of a node: what ends with it
  struct LoggerPart;
  struct Volume;  // what is on stable storage
  struct Machine;
  struct Worker {
    std::size_t volume = 0;
    std::uint32_t portal = 1;
    std::uint64_t operation = 0;  // its number, so that late answers are not heard
  };

  [[nodiscard]] static bool stores(std::uint32_t node) { return node < kLogger; }
  [[nodiscard]] bool may_serve(std::uint32_t node) const {
    return node != kLogger && node <= nodes_;
  }
  // One that may serve.
  std::uint32_t any_target() {
    return nodes_ == kAlone && below(3) == 0 ? kAlone : 1 + static_cast<std::uint32_t>(below(2));
  }
  // ... and another one.
  [[nodiscard]] std::uint32_t next_target(std::uint32_t node) const;
  Machine& machine(std::uint32_t node) { return *machines_[node - 1]; }
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  [[nodiscard]] SimBus::Cluster bus_of(std::uint64_t seed);
  void start(std::uint32_t node);
  void crash(std::uint32_t node);
  void ask_history(std::uint32_t node, std::size_t volume, SequenceNumber from, SequenceNumber to,
                   std::function<void(const Blocks*)> answer);

  const Blocks* other_image(std::uint32_t node, std::size_t volume, SequenceNumber base);

  void add_bus(Totals& totals);

  void work_later(std::size_t worker);
  void work(std::size_t worker);
  void write(std::size_t worker, BlockRange extent);
  void read(std::size_t worker, std::uint64_t block);
  void open_moment(std::size_t worker);

  void fault_later();
  void fault();
  void heal();
  [[nodiscard]] bool could_not_keep(std::uint32_t number);
  void lose_logs();
  void replace_disks(std::uint32_t node);
  [[nodiscard]] bool may_lose(const Volume& volume, std::size_t index, std::uint32_t node);
  std::string settle_and_check();
  // Why the cluster is not at rest; empty: it is.
  [[nodiscard]] std::string restless();
  [[nodiscard]] std::uint64_t acknowledged() const;

  ManualExecutor world_;
  std::mt19937_64 random_;
  const Planted planted_;
  const std::uint32_t nodes_;
  SimNetwork network_;
  SimMulticast multicast_;
  SimBus::Cluster bus_;
  const bool with_bus_;
  manager::MemoryCluster cluster_;
  std::vector<std::unique_ptr<Volume>> volumes_;
  std::array<std::unique_ptr<Machine>, kNodesMax> machines_;
  std::vector<Worker> workers_;
  std::uint64_t faults_ = 0;
  std::uint64_t logs_lost_ = 0;
  std::uint64_t disks_replaced_ = 0;
  std::uint64_t journals_replaced_ = 0;
  std::uint64_t given_up_ = 0;
  std::uint64_t reads_elsewhere_ = 0;  // of targets that are gone
  bool working_ = true;
  bool faulty_ = true;
  const bool trace_;
};

}  // namespace mariner::test

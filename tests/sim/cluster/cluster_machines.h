// What the simulated cluster is made of (cluster_sim.h): for its own files.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "tests/sim/cluster/cluster_sim.h"
#include "tests/sim/cluster/sim_bus.h"

namespace mariner::test {

struct ClusterSim::Volume {
  VolumeId id;
  ClusterModel model;
  LoggerDisk log;
  LoggedWrites lost;  // that it held once, all of them in the images
  std::array<LoggerDisk, 2> journals;
  std::array<StorageDisk, 2> disks;
  Directory directory;

  // ... and its history has not begun anew yet.
  [[nodiscard]] bool log_is_lost() const { return !lost.empty() && log.begun.value == 0; }
};

// A logger's part of a volume, or a journal.
struct ClusterSim::LoggerPart {
  LoggerPart(SimNode& node, std::mt19937_64& random, Volume& volume, LoggerDisk& disk,
             Planted planted)
      : log(node, random, volume.model, disk, planted),
        host(disk.start(volume.id), node, log, log) {}

  SimLog log;
  replication::LoggerHost host;
};

struct ClusterSim::Life {
  SimStore store;
  std::unique_ptr<SimWays> ways;
  SimBus* bus = nullptr;  // `ways`, if it is one
  std::unique_ptr<manager::NodeLease> lease;
  std::unique_ptr<manager::ClusterView> view;
  std::vector<std::unique_ptr<LoggerPart>> loggers;  // by volume
  std::vector<std::unique_ptr<StoragePart>> storages;
  std::vector<std::unique_ptr<TargetHost>> targets;

  Life(SimNode& node, manager::MemoryCluster& cluster) : store(node, cluster) {}
};

struct ClusterSim::Machine {
  SimNode node;
  std::unique_ptr<Life> life;
  bool store_cut = false;

  Machine(ManualExecutor& world, replication::NodeId id) : node(world, id) {}
};

}  // namespace mariner::test

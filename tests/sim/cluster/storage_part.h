// A storage node's part of a volume in the simulated cluster, and how its parts are found.
#pragma once

#include <functional>

#include "replication/logger_host.h"
#include "replication/storage_host.h"
#include "tests/sim/cluster/planted.h"
#include "tests/sim/cluster/sim_reads.h"
#include "tests/sim/cluster/sim_storage.h"

namespace mariner::test {

// With what is planted there.
struct StoragePart {
  StoragePart(SimNode& node, std::mt19937_64& random, StorageDisk& disk, VolumeId volume,
              Planted planted_in, SimStorage::AskHistory ask);

  void received(replication::ConnectionId from, replication::ToStorage message);

  SimStorage storage;
  replication::StorageHost host;
  SimReads reads;
  const Planted planted;
};

// Where the parts of a volume are. Null: they do not answer now. Outlives all nodes.
struct Directory {
  std::function<replication::LoggerHost*(replication::NodeId)> log;  // of the logger, or a journal
  std::function<replication::LogSource*(replication::NodeId)> source;
  std::function<StoragePart*(replication::NodeId)> storage;
  std::function<SimNode&(replication::NodeId)> node;
};

}  // namespace mariner::test

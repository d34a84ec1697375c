// A node that stores a volume and may serve it, over production parts: disks in memory, real
// connections, a store on a virtual clock.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "tests/server/cluster/service_rig.h"
#include "tests/server/cluster/target_rig.h"

namespace mariner::cluster {

struct StoringSide {
  static constexpr std::uint64_t kBlocks = 16;

  // `logger`: if the volume's logger is on this node; otherwise it is on `logger_node`. `targets`:
  // none: the nodes that store it.
  StoringSide(test::ManualExecutor& executor, manager::MemoryCluster& cluster,
              ServiceRig::Node& node_in, LoggerPart* logger, replication::NodeId logger_node,
              std::vector<replication::NodeId> targets = {})
      : node(node_in),
        history(logger != nullptr ? static_cast<volume::History&>(logger->logged().history())
                                  : node.caller.history(kVolume, logger_node)),
        image(executor, {.size_bytes = kBlocks * kBlockBytes}),
        worker(executor),
        promises(executor),
        storage(std::make_unique<test::TellingDisk>(image, [](ByteRange, bool) {}),
                replication::StorageRole::Start{kVolume, {}, {}}, volume::Storage::Options{},
                StoragePart::Parts{history, nullptr, worker, executor, promises},
                StoragePart::Events{}),
        member(executor, cluster, node.id) {
    ParticipantService::Parts own;
    own.storage = &storage.host();
    own.current = &storage.current();
    if (logger != nullptr) {
      own.logger = &logger->host();
      own.history = &history;
    }
    node.server.add(kVolume, own);
    TargetPart::Options options;
    options.volume = kVolume;
    options.size_bytes = kBlocks * kBlockBytes;
    options.targets = std::move(targets);
    member.begin(options, {executor, member.store, member.lease, member.view, node.caller,
                           &storage.storage(), history, own});
  }
  [[nodiscard]] bool serves() const {
    return member.target->state() == TargetPart::State::kServing;
  }
  void close() {
    member.target->close();
    storage.close();
    node.server.remove(kVolume);
  }
  [[nodiscard]] bool idle() const { return member.target->idle() && storage.idle(); }

  ServiceRig::Node& node;
  volume::History& history;
  test::FaultyDisk image;
  test::InlineWorker worker;
  MemoryPromises promises;
  StoragePart storage;
  TargetMember member;
};

}  // namespace mariner::cluster

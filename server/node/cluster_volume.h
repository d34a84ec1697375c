// One volume of a cluster as this node has it: the parts that the cluster gives it, and its target.
//
// Owner's thread only. Destroyed after close() and idle().
#pragma once

#include <memory>
#include <string>

#include "proto/meta.pb.h"
#include "server/cluster/journal_reclaimable.h"
#include "server/cluster/journal_source.h"
#include "server/cluster/logger_part.h"
#include "server/cluster/remote_base.h"
#include "server/cluster/storage_part.h"
#include "server/cluster/target_part.h"
#include "server/node/cluster_port_groups.h"
#include "server/node/metered_device.h"
#include "server/scsi/device.h"

namespace mariner::node {

struct ClusterVolume {
  ClusterVolume() = default;
  ClusterVolume(const ClusterVolume&) = delete;
  ClusterVolume& operator=(const ClusterVolume&) = delete;

  meta::Volume meta;
  std::string iqn;
  scsi::Identity identity;
  std::string image_path;              // empty: no image is here
  volume::History* history = nullptr;  // as this node reaches it; null: it asks nothing about it
  // What this node is not of the volume, is null. A journal and what comes with it need the
  // storage; a target does not.
  std::unique_ptr<cluster::LoggerPart> logger;
  // Keeps the volume's writes while its logger, another node, is away.
  std::unique_ptr<cluster::LoggerPart> journal;
  std::unique_ptr<cluster::JournalReclaimable> journal_reclaimable;  // with the journal
  std::unique_ptr<cluster::JournalSource> journal_source;            // ...
  std::unique_ptr<volume::Spill> spill;                              // ...
  std::unique_ptr<cluster::RemoteBase> other_image;                  // null: there is none
  std::unique_ptr<cluster::StoragePart> storage;
  std::unique_ptr<cluster::TargetPart> target;
  std::shared_ptr<ClusterPortGroups> port_groups;  // commands may outlive the target
  std::shared_ptr<scsi::Device> device;
  std::shared_ptr<MeteredDevice> metered;

  ~ClusterVolume() {
    if (port_groups != nullptr) port_groups->detach();
  }
  void close(const Error& error) {
    if (target != nullptr) target->close();
    if (storage != nullptr) storage->close();
    if (logger != nullptr) logger->close(error);
    if (journal != nullptr) journal->close(error);
  }
  [[nodiscard]] bool idle() const {
    return (target == nullptr || target->idle()) && (storage == nullptr || storage->idle()) &&
           (logger == nullptr || logger->idle()) && (journal == nullptr || journal->idle()) &&
           (journal_source == nullptr || journal_source->in_flight() == 0);
  }
};

}  // namespace mariner::node

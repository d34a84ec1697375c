// One volume of a cluster as this node has it: the parts that the cluster gives it, and its target.
//
// Owner's thread only. Destroyed after close() and idle().
#pragma once

#include <memory>
#include <string>

#include "proto/meta.pb.h"
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
  // What this node is not of the volume, is null. Each needs those before it.
  std::unique_ptr<cluster::LoggerPart> logger;
  std::unique_ptr<cluster::RemoteBase> other_image;  // null: there is none
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
  }
  [[nodiscard]] bool idle() const {
    return (target == nullptr || target->idle()) && (storage == nullptr || storage->idle()) &&
           (logger == nullptr || logger->idle());
  }
};

}  // namespace mariner::node

#include "server/manager/volume_record.h"

#include <algorithm>

#include "proto/cluster.pb.h"

namespace mariner::manager {

using replication::NodeId;

std::string volume_key(VolumeId volume) {
  return std::string(kClusterPrefix) + "volumes/" + std::to_string(volume.value);
}

std::string alive_key(NodeId node) {
  return std::string(kClusterPrefix) + "alive/" + std::to_string(node.value);
}

std::string encode(const VolumeRecord& record) {
  cluster::VolumeRecord message;
  message.set_volume(record.volume.value);
  message.set_epoch(record.epoch.value);
  message.set_coordinator(record.coordinator.value);
  message.set_logger(record.logger.value);
  for (const NodeId node : record.storages) message.add_storages(node.value);
  message.set_wanted(record.wanted.value);
  message.set_declined(static_cast<cluster::VolumeRecord::Declined>(record.declined));
  if (record.away) {
    message.mutable_away()->set_since(record.away->since.value);
    message.mutable_away()->set_used(record.away->used.value);
    message.mutable_away()->set_floor_ns(record.away->floor.ns);
    message.mutable_away()->set_end(record.away->end.value);
  }
  return message.SerializeAsString();
}

Result<VolumeRecord> decode_volume_record(VolumeId volume, std::string_view bytes) {
  const auto corrupt = [&](const std::string& what) {
    return Error{ErrorCode::kCorrupt, "the cluster's record " + volume_key(volume) + " " + what};
  };
  cluster::VolumeRecord message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return corrupt("cannot be read (" + std::to_string(bytes.size()) + " bytes)");
  }
  if (message.volume() != volume.value) {
    return corrupt("is of volume " + std::to_string(message.volume()));
  }
  VolumeRecord record{volume, {message.epoch()}, {message.coordinator()}, {message.logger()}, {}};
  record.wanted = {message.wanted()};
  for (const std::uint32_t node : message.storages()) record.storages.push_back({node});
  if (record.logger.value == 0) return corrupt("names no logger");
  if (record.storages.empty()) return corrupt("names no storage node");
  for (auto node = record.storages.begin(); node != record.storages.end(); ++node) {
    if (node->value == 0 || std::find(record.storages.begin(), node, *node) != node) {
      return corrupt("names storage node " + std::to_string(node->value) + ", or names it twice");
    }
  }
  if (!cluster::VolumeRecord::Declined_IsValid(message.declined())) {
    return corrupt("declines for reason " + std::to_string(message.declined()) + ", which is none");
  }
  record.declined = static_cast<Declined>(message.declined());
  if (message.has_away()) {
    const auto& away = message.away();
    if (record.storages.size() != 2 || std::ranges::count(record.storages, record.logger) != 0 ||
        away.used() < away.since()) {
      return corrupt("says that the logger is away since #" + std::to_string(away.since()) +
                     ", of #" + std::to_string(away.used()) +
                     ": expected two storage nodes beside it, and numbers that ascend");
    }
    record.away =
        replication::LogAway{{away.since()}, {away.used()}, {away.floor_ns()}, {away.end()}};
  }
  return record;
}

}  // namespace mariner::manager

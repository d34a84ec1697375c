#include "server/manager/serving_sign.h"

#include <utility>

#include "proto/cluster.pb.h"

namespace mariner::manager {

using replication::NodeId;

std::string serving_key(VolumeId volume) {
  return std::string(kClusterPrefix) + "serving/" + std::to_string(volume.value);
}

std::optional<NodeId> server_of(const ClusterView& view, VolumeId volume) {
  const Entry* const sign = view.find(serving_key(volume));
  const Entry* const entry = view.find(volume_key(volume));
  if (sign == nullptr || entry == nullptr) return std::nullopt;
  const Result<VolumeRecord> record = decode_volume_record(volume, entry->value);
  cluster::Serving serving;
  if (!record || !serving.ParseFromString(sign->value)) return std::nullopt;
  const bool counts = serving.node() == record->coordinator.value && serving.node() != 0 &&
                      serving.epoch() == record->epoch.value;
  if (!counts || view.find(alive_key(record->coordinator)) == nullptr) return std::nullopt;
  return record->coordinator;
}

void ServingSign::look(std::optional<Epoch> serves) {
  if (!serves || setting_ || !lease_.held() || !view_.known()) return;
  cluster::Serving serving;
  serving.set_node(self_.value);
  serving.set_epoch(serves->value);
  const std::string value = serving.SerializeAsString();
  const Entry* const there = view_.find(serving_key(volume_));
  if (there != nullptr && there->value == value && there->lease == lease_.id()) return;
  Transaction transaction;
  transaction.compares.push_back({alive_key(self_), lease_.id()});
  transaction.puts.push_back({serving_key(volume_), value, lease_.id()});
  setting_ = true;
  // Whatever the answer says: the view shows what has become of it.
  store_.commit(std::move(transaction), [this, alive = alive_](const Result<CommitAnswer>&) {
    if (*alive) setting_ = false;
  });
}

}  // namespace mariner::manager

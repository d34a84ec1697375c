#include "server/manager/etcd_members.h"

#include <utility>

#include "proto/check.h"

namespace mariner::manager {

EtcdMembers::EtcdMembers(std::vector<Endpoint> endpoints) : endpoints_(std::move(endpoints)) {
  CHECK(!endpoints_.empty());
}

void EtcdMembers::failed(const Endpoint& endpoint) {
  if (endpoint == preferred()) preferred_ = (preferred_ + 1) % endpoints_.size();
}

bool EtcdMembers::same_cluster(std::uint64_t cluster) {
  if (cluster_ == 0) cluster_ = cluster;
  return cluster != 0 && cluster == cluster_;
}

}  // namespace mariner::manager

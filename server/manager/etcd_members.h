// The members of an etcd cluster as a client sees them: where they are, which one to ask, and that
// all of them are one cluster.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "proto/endpoint.h"

namespace mariner::manager {

class EtcdMembers {
 public:
  // At least one.
  explicit EtcdMembers(std::vector<Endpoint> endpoints);

  // The one to ask: the same until it fails.
  [[nodiscard]] const Endpoint& preferred() const { return endpoints_[preferred_]; }
  // The next one is preferred, unless another is already.
  void failed(const Endpoint& endpoint);

  // Whether an answer of `cluster` may be believed: the first one decides. An etcd whose data were
  // thrown away has another identity, and its revisions begin anew.
  [[nodiscard]] bool same_cluster(std::uint64_t cluster);

 private:
  std::vector<Endpoint> endpoints_;
  std::size_t preferred_ = 0;
  std::uint64_t cluster_ = 0;  // 0: not known yet
};

}  // namespace mariner::manager

// Promises to the coordinators of volumes, in the node's store.
#pragma once

#include "proto/executor.h"
#include "replication/participant.h"
#include "server/node/meta_store.h"

namespace mariner::node {

class NodePromises final : public replication::PromiseStore {
 public:
  // Both outlive it, and what it has under way.
  NodePromises(MetaStore& store, Executor& executor) : store_(store), executor_(executor) {}

  // Blocks on a small write: there are few.
  void promise(VolumeId volume, Epoch epoch, VersionTime floor,
               UniqueFunction<void(Result<void>)> done) override {
    executor_.post([result = store_.raise_promise(volume.value, epoch, floor),
                    done = std::move(done)]() mutable { done(std::move(result)); });
  }

 private:
  MetaStore& store_;
  Executor& executor_;
};

}  // namespace mariner::node

// What a storage node has of a volume of a cluster: image and pending writes, and whom it listens
// to.
//
// Owner's thread only. Destroyed after close() and idle().
#pragma once

#include <memory>

#include "logging/disk.h"
#include "proto/executor.h"
#include "replication/storage_host.h"
#include "server/volume/stored_volume.h"

namespace mariner::cluster {

class StoragePart {
 public:
  struct Parts {  // all outlive it
    volume::History& history;
    volume::Worker& worker;
    Executor& executor;
    replication::PromiseStore& promises;
  };
  struct Events {
    UniqueFunction<void(SequenceNumber)> durable;     // everything at or below is in the image
    UniqueFunction<void(const Error&)> apply_failed;  // will be tried again
  };

  // `start.durable`: what the image is known to hold. What came since, the history tells.
  StoragePart(std::unique_ptr<logging::Disk> image, const replication::StorageRole::Start& start,
              const volume::Storage::Options& options, Parts parts, Events events);
  StoragePart(const StoragePart&) = delete;
  StoragePart& operator=(const StoragePart&) = delete;

  [[nodiscard]] volume::Storage& storage() { return stored_.storage(); }
  [[nodiscard]] const volume::Storage& storage() const { return stored_.storage(); }
  [[nodiscard]] replication::StorageHost& host() { return host_; }
  [[nodiscard]] const replication::StorageHost& host() const { return host_; }

  void close() { stored_.close(); }
  [[nodiscard]] bool idle() const { return stored_.idle(); }

 private:
  volume::Storage::Events storage_events();

  Events events_;
  // Of what the log has given up: nothing yet, a cluster's log keeps all it has.
  const volume::BaseMap base_{false};
  volume::StoredVolume stored_;
  replication::StorageHost host_;
};

}  // namespace mariner::cluster

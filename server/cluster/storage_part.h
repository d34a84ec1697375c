// What a storage node has of a volume of a cluster: image and pending writes, and whom it listens
// to.
//
// Owner's thread only. Destroyed after close() and idle().
#pragma once

#include <memory>

#include "logging/disk.h"
#include "proto/executor.h"
#include "replication/storage_host.h"
#include "server/cluster/rebuilding_history.h"
#include "server/volume/stored_volume.h"

namespace mariner::cluster {

class StoragePart {
 public:
  struct Parts {  // all outlive it
    volume::History& history;
    volume::Base* other;  // another node's image of the volume; null: there is none
    volume::Worker& worker;
    Executor& executor;
    replication::PromiseStore& promises;
  };
  struct Events {
    // Everything at or below is in the image. It is to be kept on stable storage: when `kept` says
    // that it is, the coordinator hears of it, and the log relies on it.
    UniqueFunction<void(SequenceNumber, volume::Done kept)> durable;
    UniqueFunction<void(const Error&)> apply_failed;  // will be tried again
  };

  // `start.durable`: what the image is known to hold. What came since, the history tells. 0: the
  // image is to be built anew (rebuilding_history.h); until it is, reads of the past ask `other`.
  StoragePart(std::unique_ptr<logging::Disk> image, const replication::StorageRole::Start& start,
              const volume::Storage::Options& options, Parts parts, Events events);
  StoragePart(const StoragePart&) = delete;
  StoragePart& operator=(const StoragePart&) = delete;

  [[nodiscard]] volume::Storage& storage() { return stored_.storage(); }
  [[nodiscard]] const volume::Storage& storage() const { return stored_.storage(); }
  [[nodiscard]] replication::StorageHost& host() { return host_; }
  [[nodiscard]] const replication::StorageHost& host() const { return host_; }

  // The image, for a node that lacks one: kUnavailable while it is being built itself.
  [[nodiscard]] volume::Base& image() { return served_; }

  void close() { stored_.close(); }
  [[nodiscard]] bool idle() const {
    return stored_.idle() && history_.idle() && served_.in_flight == 0 && keeping_ == 0;
  }

 private:
  struct ServedImage final : public volume::Base {
    explicit ServedImage(const StoragePart& of_part) : part(of_part) {}
    void read(BlockRange range, std::span<std::byte> to, volume::Done done) override;
    [[nodiscard]] bool may_move() const override { return true; }
    const StoragePart& part;
    std::size_t in_flight = 0;
  };

  [[nodiscard]] bool building() const { return storage().durable().value == 0; }
  volume::Storage::Events storage_events();
  void keep(SequenceNumber durable);

  Events events_;
  std::size_t keeping_ = 0;
  logging::Disk& disk_;  // of stored_
  RebuildingHistory history_;
  volume::StoredVolume stored_;
  replication::StorageHost host_;
  ServedImage served_{*this};
};

}  // namespace mariner::cluster

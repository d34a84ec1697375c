// What a storage node has of a volume: the image, and the table of pending writes in front of it.
//
// Of the past it knows what it asks the history for. Owner's thread only. Destroyed after close()
// and idle().
#pragma once

#include <memory>

#include "logging/disk.h"
#include "proto/executor.h"
#include "server/volume/base_map.h"
#include "server/volume/history.h"
#include "server/volume/storage.h"
#include "server/volume/worker.h"

namespace mariner::volume {

class StoredVolume {
 public:
  struct Parts {  // all outlive it
    History& history;
    BaseMap* base;  // as ImageApplier::Parts demands it
    Worker& worker;
    Executor& executor;
    Spill* spill = nullptr;  // null: it cannot be hardened
  };

  StoredVolume(std::unique_ptr<logging::Disk> image, Parts parts, Storage::Options options,
               Storage::Found found, Storage::Events events)
      : image_(std::move(image)),
        storage_({*image_, parts.history, parts.worker, parts.base}, parts.executor, options,
                 std::move(found), std::move(events), parts.spill) {}

  [[nodiscard]] Storage& storage() { return storage_; }
  [[nodiscard]] const Storage& storage() const { return storage_; }

  // Stops applying. What is pending is found again in the log.
  void close() { storage_.stop(); }
  [[nodiscard]] bool idle() const { return storage_.idle(); }

 private:
  const std::unique_ptr<logging::Disk> image_;
  Storage storage_;
};

}  // namespace mariner::volume

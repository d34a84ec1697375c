// What marinerd runs: a standalone server, or a node of a cluster.
#pragma once

#include <cstdint>

#include "proto/error.h"
#include "proto/unique_function.h"
#include "server/node/config.h"

namespace mariner::node {

class Daemon {
 public:
  virtual ~Daemon() = default;

  // Listens, recovers, and begins to serve. Blocking; before the event loop runs.
  virtual Result<void> start() = 0;
  // Called by start() every few seconds with the number of records that were recovered.
  virtual void on_progress(UniqueFunction<void(std::uint64_t)> progress) = 0;
  // Refuses new work, asks initiators to log out, completes what is under way; `done` when nothing
  // is in flight any more. Once.
  virtual void stop(UniqueFunction<void()> done) = 0;
  // Applies what can change at run time; the roles are the same. An error: not all of it was taken;
  // the rest was.
  virtual Result<void> reload(const Config& config) = 0;
  // What it runs with: as it was read at the start, with what was taken since.
  [[nodiscard]] virtual const Config& config() const = 0;
};

}  // namespace mariner::node

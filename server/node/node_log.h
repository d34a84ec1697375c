// The log and the index of a node that logs, or keeps journals: opened, recovered, and their disks
// changed while it runs.
//
// Loop's thread; open() blocks, and happens before the loop runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "logging/io_ring.h"
#include "server/node/config.h"
#include "server/node/event_loop.h"
#include "server/node/index_stack.h"
#include "server/node/log.h"
#include "server/node/log_stack.h"
#include "server/node/meta_store.h"
#include "server/node/recovered_volumes.h"
#include "server/volume/worker.h"

namespace mariner::node {

class NodeLog {
 public:
  // For what a killed process has left under way on the disks.
  static constexpr std::chrono::seconds kLockWait{20};

  struct Parts {  // all outlive it
    EventLoop& loop;
    logging::IoRing& ring;
    MetaStore& store;
    volume::Worker& worker;
    RecoveredVolumes& recovered;  // knows which volumes to expect
    Log& log;
  };
  // Told every few seconds of how many records have been recovered.
  using Progress = UniqueFunction<void(std::uint64_t)>;

  // Opens the log of [log] and the index of [index], makes what is new, and gives every record to
  // `recovered`. What that takes back is withdrawn, durably, on return.
  static Result<std::unique_ptr<NodeLog>> open(const Config& config, Parts parts,
                                               Progress progress);
  ~NodeLog();
  NodeLog(const NodeLog&) = delete;
  NodeLog& operator=(const NodeLog&) = delete;

  // Changes the disks to these: what is new comes in, what is gone is drained.
  void change_disks(const std::vector<std::string>& paths);
  // As [log] polling says.
  void set_polling(bool polling);
  // Lets go of what was drained and holds nothing any more.
  void retire_disks();
  // When no volume is left that uses the index.
  void drop_indexes() { indexes_.reset(); }

  [[nodiscard]] LogStack& stack() { return *stack_; }
  [[nodiscard]] IndexStack& indexes() { return *indexes_; }

 private:
  NodeLog(const Config& config, Parts parts, Progress progress);
  Result<void> open();
  Result<void> open_index(const std::string& log, std::uint64_t given_up);
  Result<void> withdraw_taken_back();
  void report_damage();
  void tell_progress(std::uint64_t records);
  Result<void> remember_disks();

  LogConfig log_config_;
  const IndexConfig index_config_;
  const std::string state_dir_;
  const std::uint64_t lag_bytes_;
  const Parts parts_;
  Progress progress_;
  std::chrono::nanoseconds progress_told_{0};
  std::unique_ptr<LogStack> stack_;
  std::unique_ptr<IndexStack> indexes_;
};

}  // namespace mariner::node

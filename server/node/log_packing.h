// How the log's cold tracks are compacted on this node: the settings of [log] compact*, what the
// administrator asks for, and what there is to tell.
//
// Owner's thread only.
#pragma once

#include <cstdint>
#include <string>

#include "server/node/config.h"
#include "server/node/log.h"
#include "server/node/log_stack.h"

namespace mariner::node {

[[nodiscard]] logging::PackingOptions packing_options(const CompactConfig& config);

class LogPacking {
 public:
  // Begins. Both outlive it.
  LogPacking(LogStack& stack, const CompactConfig& config, Log& log);

  void set(const CompactConfig& config);
  // Compacts every complete track, in the background. kUnavailable when no disk of the log can be
  // compacted.
  Result<void> compact_now();
  // What compact_now() began is not done yet.
  [[nodiscard]] bool compacting() const { return compacting_ > 0; }
  // Why the last compact_now() did not do all of it; empty: it did.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

 private:
  void report(std::uint8_t disk, const logging::PackingReport& report);

  LogStack& stack_;
  Log& log_;
  std::uint64_t compacting_ = 0;
  std::string trouble_;
};

}  // namespace mariner::node

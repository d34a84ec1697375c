// The progress of something long: a bar on a terminal, JSON lines otherwise.
#pragma once

#include <cstdint>
#include <string>

#include "server/client/context.h"

namespace mariner::client {

class Progress {
 public:
  Progress(const Context& context, std::string what) : context_(context), what_(std::move(what)) {}
  void show(std::uint64_t done_bytes, std::uint64_t total_bytes);
  // Leaves the bar's line.
  void end();

 private:
  const Context& context_;
  std::string what_;
  bool drawn_ = false;
};

}  // namespace mariner::client

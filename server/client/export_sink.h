// Where the contents of a volume go, in the order of its addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "proto/error.h"

namespace mariner::client {

class ExportSink {
 public:
  virtual ~ExportSink() = default;

  // What stands at `offset` of the volume: whole blocks, behind all that came before. What is left
  // out is zeros. After an error nothing else is called.
  [[nodiscard]] virtual Result<void> write(std::uint64_t offset,
                                           std::span<const std::byte> bytes) = 0;
  // That was all.
  [[nodiscard]] virtual Result<void> finish() = 0;
};

}  // namespace mariner::client

// A raw image that goes through a pipe: zeros and all.
#pragma once

#include <iosfwd>

#include "server/client/export_sink.h"

namespace mariner::client {

class RawStream final : public ExportSink {
 public:
  // `out` outlives it.
  RawStream(std::ostream& out, std::uint64_t size_bytes) : out_(out), size_bytes_(size_bytes) {}

  // kIo when nobody takes it.
  [[nodiscard]] Result<void> write(std::uint64_t offset, std::span<const std::byte> bytes) override;
  [[nodiscard]] Result<void> finish() override;

 private:
  Result<void> fill(std::uint64_t to);
  Result<void> put(std::span<const std::byte> bytes);

  std::ostream& out_;
  const std::uint64_t size_bytes_;
  std::uint64_t end_ = 0;
};

}  // namespace mariner::client

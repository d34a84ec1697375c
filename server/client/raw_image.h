// A raw image: each byte of the volume at its place, zeros as holes.
#pragma once

#include "server/client/export_sink.h"
#include "server/client/output_file.h"

namespace mariner::client {

class RawImage final : public ExportSink {
 public:
  // `file` outlives it. A device may be longer: what is behind the volume's end stays.
  RawImage(OutputFile& file, std::uint64_t size_bytes) : file_(file), size_bytes_(size_bytes) {}

  [[nodiscard]] Result<void> write(std::uint64_t offset, std::span<const std::byte> bytes) override;
  [[nodiscard]] Result<void> finish() override;

 private:
  OutputFile& file_;
  const std::uint64_t size_bytes_;
  std::uint64_t end_ = 0;  // of what was written
};

}  // namespace mariner::client

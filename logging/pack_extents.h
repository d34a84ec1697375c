// Writes a pack into the slots of its log disk as it is built, about 1 MiB at a time.
//
// One thread. The slots belong to it until SlottedDisk::end_building().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "logging/pack_builder.h"
#include "logging/slotted_disk.h"
#include "proto/payload.h"

namespace mariner::logging {

class PackExtents final : public PackSink {
 public:
  struct Limits {
    std::uint64_t bytes_max = 0;    // of the pack
    std::uint64_t leave_slots = 0;  // so many are to stay free
  };
  // `disk` outlives it.
  PackExtents(SlottedDisk& disk, Limits limits);

  // kLimit when the pack is longer than bytes_max; kNoSpace when there is no slot for it.
  Result<void> append(std::span<const std::byte> bytes) override;
  // Everything is on the disk, durably, on return.
  Result<void> finish();

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  // Where it stands: what they hold of it is as long as they say. After finish().
  [[nodiscard]] const std::vector<PackExtent>& extents() const { return extents_; }

 private:
  static constexpr std::size_t kBufferBytes = 1u << 20;

  Result<void> write_buffer();

  SlottedDisk& disk_;
  const Limits limits_;
  Payload buffer_;
  std::size_t buffered_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<PackExtent> extents_;
  std::uint32_t room_ = 0;  // behind what has been written to the last extent
};

}  // namespace mariner::logging

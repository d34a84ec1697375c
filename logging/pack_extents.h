// Writes a pack into the slots of its log disk as it is built, about 1 MiB at a time.
//
// One thread. The slots belong to it until SlottedDisk::end_building().
#pragma once

#include <cstdint>
#include <future>
#include <span>
#include <vector>

#include "logging/beside.h"
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
  // `disk` outlives it, and `beside`, which writes one piece while the next one is built. Null: its
  // owner writes.
  PackExtents(SlottedDisk& disk, Limits limits, Beside* beside = nullptr);
  ~PackExtents() override;

  // kLimit when the pack is longer than bytes_max; kNoSpace when there is no slot for it; errors of
  // what was written before.
  Result<void> append(std::span<const std::byte> bytes) override;
  // Everything is on the disk, durably, on return.
  Result<void> finish();

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  // Where it stands: what they hold of it is as long as they say. After finish().
  [[nodiscard]] const std::vector<PackExtent>& extents() const { return extents_; }

 private:
  static constexpr std::size_t kBufferBytes = 1u << 20;

  // Where a part of a buffer goes.
  struct Write {
    std::uint64_t offset = 0;  // of the disk
    std::size_t from = 0;
    std::size_t bytes = 0;
  };

  Result<void> write_buffer();
  Result<void> written();

  SlottedDisk& disk_;
  const Limits limits_;
  Beside* const beside_;
  Payload buffer_;
  Payload written_buffer_;             // what is being written
  std::future<Result<void>> writing_;  // valid: it is
  std::size_t buffered_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<PackExtent> extents_;
  std::uint32_t room_ = 0;  // behind what has been written to the last extent
};

}  // namespace mariner::logging

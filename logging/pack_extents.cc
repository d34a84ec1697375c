#include "logging/pack_extents.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

namespace mariner::logging {

PackExtents::PackExtents(SlottedDisk& disk, Limits limits, Beside* beside)
    : disk_(disk), limits_(limits), beside_(beside), buffer_(Payload::allocate(kBufferBytes)) {
  if (beside_ != nullptr) written_buffer_ = Payload::allocate(kBufferBytes);
}

PackExtents::~PackExtents() {
  if (writing_.valid()) writing_.wait();
}

Result<void> PackExtents::append(std::span<const std::byte> bytes) {
  bytes_ += bytes.size();
  if (bytes_ > limits_.bytes_max) {
    return Error{ErrorCode::kLimit,
                 "the pack would be longer than " + std::to_string(limits_.bytes_max) + " bytes"};
  }
  while (!bytes.empty()) {
    const std::size_t length = std::min(bytes.size(), kBufferBytes - buffered_);
    std::memcpy(buffer_.data() + buffered_, bytes.data(), length);
    buffered_ += length;
    bytes = bytes.subspan(length);
    if (buffered_ < kBufferBytes) return {};
    if (Result<void> r = write_buffer(); !r) return r;
  }
  return {};
}

Result<void> PackExtents::written() { return writing_.valid() ? writing_.get() : Result<void>{}; }

// Whole blocks go to the disk; what is behind the last byte of the pack is zeros.
Result<void> PackExtents::write_buffer() {
  if (Result<void> r = written(); !r) return r;
  std::vector<Write> writes;
  std::size_t from = 0;
  while (from < buffered_) {
    if (room_ == 0) {
      const std::optional<PackExtent> extent = disk_.take_extent(limits_.leave_slots);
      if (!extent) {
        return Error{ErrorCode::kNoSpace, "the log has no free track to pack tracks into"};
      }
      room_ = extent->bytes;
      extents_.push_back({extent->slot, extent->at, 0});
    }
    PackExtent& extent = extents_.back();
    const std::size_t length = std::min<std::size_t>(buffered_ - from, room_);
    const std::size_t in_blocks = (length + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    std::memset(buffer_.data() + from + length, 0, in_blocks - length);
    writes.push_back({disk_.offset_of(extent) + extent.bytes, from, in_blocks});
    extent.bytes += static_cast<std::uint32_t>(length);
    room_ -= static_cast<std::uint32_t>(in_blocks);
    from += length;
  }
  buffered_ = 0;
  const auto write = [disk = &disk_.under(), writes = std::move(writes),
                      buffer = buffer_]() -> Result<void> {
    for (const Write& each : writes) {
      const ConstBytes part = ConstBytes(buffer.bytes()).subspan(each.from, each.bytes);
      Result<void> r = disk->write(each.offset, {&part, 1}, Durability::kVolatile);
      if (!r) return r;
    }
    return {};
  };
  if (beside_ == nullptr) return write();
  std::swap(buffer_, written_buffer_);
  writing_ = beside_->begin(write);
  return {};
}

Result<void> PackExtents::finish() {
  if (Result<void> r = write_buffer(); !r) return r;
  if (Result<void> r = written(); !r) return r;
  return disk_.under().flush();
}

}  // namespace mariner::logging

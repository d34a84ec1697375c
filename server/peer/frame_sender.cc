#include "server/peer/frame_sender.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::peer {

void FrameSender::push(std::string header, PayloadSlice payload, Bound bound) {
  CHECK(!header.empty() && header.size() <= kFrameHeaderBytesMax);
  CHECK(payload.length <= kFramePayloadBytesMax);
  CHECK(payload.offset + payload.length <= payload.payload.size());
  const FrameLengths lengths{.header_bytes = static_cast<std::uint32_t>(header.size()),
                             .payload_bytes = static_cast<std::uint32_t>(payload.length)};
  frames_.push_back({pack_prefix(lengths), std::move(header), std::move(payload), bound});
  queued_bytes_ += frames_.back().bytes();
  bound_bytes_.at(index(bound)) += frames_.back().bytes();
}

void FrameSender::push_heartbeat() {
  queued_bytes_ += kFramePrefixBytes;
  frames_.push_back({pack_prefix({}), {}, {}});
}

std::span<const std::byte> FrameSender::pending() {
  if (staged_begin_ == staged_end_) {
    if (frames_.empty()) return {};
    if (front_is_large()) return front_part();
    gather();
  }
  return {staging_.get() + staged_begin_, staged_end_ - staged_begin_};
}

// A payload that has begun in place goes on in place, to its end.
bool FrameSender::front_is_large() const {
  const Frame& front = frames_.front();
  return front.payload.length >= kRecordBytes &&
         front_done_ >= kFramePrefixBytes + front.header.size();
}

std::span<const std::byte> FrameSender::front_part() const {
  const Frame& front = frames_.front();
  std::size_t done = front_done_;
  if (done < kFramePrefixBytes) return std::span(front.prefix).subspan(done);
  done -= kFramePrefixBytes;
  if (done < front.header.size()) return as_byte_span(front.header).subspan(done);
  return front.payload.bytes().subspan(done - front.header.size());
}

void FrameSender::consume(std::size_t bytes) {
  front_done_ += bytes;
  const Frame& front = frames_.front();
  if (front_done_ < front.bytes()) return;
  if (!front.header.empty()) bound_bytes_.at(index(front.bound)) -= front.bytes();
  frames_.pop_front();
  front_done_ = 0;
}

void FrameSender::gather() {
  if (!staging_) staging_ = std::make_unique_for_overwrite<std::byte[]>(kRecordBytes);
  staged_begin_ = staged_end_ = 0;
  while (!frames_.empty() && staged_end_ < kRecordBytes && !front_is_large()) {
    const std::span<const std::byte> part = front_part();
    const std::size_t bytes = std::min(part.size(), kRecordBytes - staged_end_);
    std::memcpy(staging_.get() + staged_end_, part.data(), bytes);
    staged_end_ += bytes;
    consume(bytes);
  }
}

void FrameSender::sent(std::size_t bytes) {
  CHECK(bytes <= queued_bytes_);
  queued_bytes_ -= bytes;
  if (staged_begin_ < staged_end_) {
    CHECK(bytes <= staged_end_ - staged_begin_);
    staged_begin_ += bytes;
    return;
  }
  CHECK(bytes <= front_part().size());
  consume(bytes);
}

}  // namespace mariner::peer

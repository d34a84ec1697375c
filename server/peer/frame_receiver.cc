// What is copied: payloads that arrive together with what stands before them, and the last bytes of
// each, up to kDirectBytesMin; reading those together with the next frame costs less than a read of
// their own. A sender begins a TLS record with a large payload (FrameSender), and one read does not
// go beyond its record, so that of these nearly nothing is copied.
#include "server/peer/frame_receiver.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "proto/check.h"

namespace mariner::peer {
namespace {

// A prefix, the longest header, and a TLS record behind it.
constexpr std::size_t kBufferBytes = kFramePrefixBytes + kFrameHeaderBytesMax + 16 * 1024;
constexpr std::size_t kDirectBytesMin = 4096;

}  // namespace

std::span<std::byte> FrameReceiver::prepare() {
  direct_ = false;
  if (stage_ == Stage::kStopped) return {};
  if (stage_ == Stage::kPayload && payload_left() >= kDirectBytesMin) {
    CHECK(buffered() == 0);
    direct_ = true;
    return payload_.bytes().subspan(payload_done_);
  }
  if (!buffer_) buffer_ = std::make_unique_for_overwrite<std::byte[]>(kBufferBytes);
  // What is buffered is always an incomplete prefix or header: moving it is cheap.
  if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, buffered());
    end_ -= begin_;
    begin_ = 0;
  }
  CHECK(end_ < kBufferBytes);
  return {buffer_.get() + end_, kBufferBytes - end_};
}

void FrameReceiver::received(std::size_t bytes, FrameSink& sink) {
  if (std::exchange(direct_, false)) {
    CHECK(bytes <= payload_left());
    payload_done_ += bytes;
  } else {
    CHECK(bytes <= kBufferBytes - end_);
    end_ += bytes;
  }
  for (bool more = true; more;) {
    switch (stage_) {
      case Stage::kPrefix: more = take_prefix(sink); break;
      case Stage::kHeader: more = take_header(sink); break;
      case Stage::kPayload: more = take_payload(sink); break;
      case Stage::kStopped: more = false; break;
    }
  }
  if (buffered() == 0) begin_ = end_ = 0;
}

bool FrameReceiver::take_prefix(FrameSink& sink) {
  if (buffered() < kFramePrefixBytes) return false;
  const auto lengths = parse_prefix(
      std::span<const std::byte, kFramePrefixBytes>(buffer_.get() + begin_, kFramePrefixBytes),
      bounds_);
  if (!lengths) {
    stage_ = Stage::kStopped;
    sink.on_bad_frame(lengths.error());
    return false;
  }
  begin_ += kFramePrefixBytes;
  if (lengths->heartbeat()) return true;
  lengths_ = *lengths;
  stage_ = Stage::kHeader;
  return true;
}

bool FrameReceiver::take_header(FrameSink& sink) {
  if (buffered() < lengths_.header_bytes) return false;
  const std::string_view header(reinterpret_cast<const char*>(buffer_.get() + begin_),
                                lengths_.header_bytes);
  begin_ += lengths_.header_bytes;
  if (lengths_.payload_bytes == 0) return deliver(header, sink);
  payload_ = Payload::allocate(lengths_.payload_bytes);
  payload_done_ = 0;
  if (buffered() < lengths_.payload_bytes) {
    header_ = header;
    stage_ = Stage::kPayload;
    return true;
  }
  std::memcpy(payload_.data(), buffer_.get() + begin_, lengths_.payload_bytes);
  begin_ += lengths_.payload_bytes;
  return deliver(header, sink);
}

bool FrameReceiver::take_payload(FrameSink& sink) {
  const std::size_t bytes = std::min(buffered(), payload_left());
  if (bytes > 0) {
    std::memcpy(payload_.data() + payload_done_, buffer_.get() + begin_, bytes);
    begin_ += bytes;
    payload_done_ += bytes;
  }
  if (payload_left() > 0) return false;
  return deliver(header_, sink);
}

bool FrameReceiver::deliver(std::string_view header, FrameSink& sink) {
  stage_ = Stage::kPrefix;
  if (sink.on_frame(header, std::exchange(payload_, {}))) return true;
  stage_ = Stage::kStopped;
  return false;
}

}  // namespace mariner::peer

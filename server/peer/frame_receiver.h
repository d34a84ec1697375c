// The receiving half of a channel, sans I/O: bytes of the stream in, whole frames out.
//
// Tells who reads where the next bytes go: what is left of a large payload goes to its place, in
// memory that a disk can take; small frames arrive together in a look-ahead buffer. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "proto/error.h"
#include "proto/payload.h"
#include "server/peer/frame.h"

namespace mariner::peer {

class FrameSink {
 public:
  virtual ~FrameSink() = default;
  // A whole frame; heartbeats are none. `header` is good during the call only. The payload has
  // exactly the frame's bytes, from its beginning on; it is null when there are none. False stops
  // the receiver for good.
  [[nodiscard]] virtual bool on_frame(std::string_view header, Payload payload) = 0;
  // What arrives is not a frame that is taken; the receiver has stopped.
  virtual void on_bad_frame(Error error) = 0;
};

class FrameReceiver {
 public:
  explicit FrameReceiver(const FrameBounds& bounds) : bounds_(bounds) {}

  // From the next frame on; also from within on_frame().
  void set_bounds(const FrameBounds& bounds) { bounds_ = bounds; }

  // Where the next bytes of the stream go; empty only when it has stopped. To be followed by
  // received() or another prepare().
  [[nodiscard]] std::span<std::byte> prepare();

  // `bytes` have been put there. Hands what is complete to `sink`.
  void received(std::size_t bytes, FrameSink& sink);

  [[nodiscard]] bool stopped() const { return stage_ == Stage::kStopped; }
  // True between two frames: nothing of the next one is here.
  [[nodiscard]] bool between_frames() const { return stage_ == Stage::kPrefix && begin_ == end_; }

 private:
  enum class Stage : std::uint8_t { kPrefix, kHeader, kPayload, kStopped };

  [[nodiscard]] std::size_t buffered() const { return end_ - begin_; }
  [[nodiscard]] std::size_t payload_left() const { return lengths_.payload_bytes - payload_done_; }
  // Each consumes what it can; false when it needs more bytes or has stopped.
  bool take_prefix(FrameSink& sink);
  bool take_header(FrameSink& sink);
  bool take_payload(FrameSink& sink);
  bool deliver(std::string_view header, FrameSink& sink);

  FrameBounds bounds_;
  Stage stage_ = Stage::kPrefix;
  FrameLengths lengths_;
  std::string header_;  // while its payload is on the way
  Payload payload_;
  std::size_t payload_done_ = 0;
  bool direct_ = false;  // what prepare() offered is the payload's
  // Look-ahead; the bytes [begin_, end_) are valid. Allocated at the first prepare().
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace mariner::peer

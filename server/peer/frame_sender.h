// The sending half of a channel, sans I/O: frames in, pieces of memory to write out.
//
// A piece is one TLS record's worth of small frames, gathered by copying, or a large payload where
// it lies, which begins a record of its own: so the receiver takes it straight to its place. To
// copy 4 KiB costs a tenth of what a record and its write cost. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>

#include "proto/payload.h"
#include "server/peer/frame.h"

namespace mariner::peer {

class FrameSender {
 public:
  // What a TLS record carries (RFC 8446 5.1); payloads of this size and more are not copied.
  static constexpr std::size_t kRecordBytes = 16 * 1024;

  // Frames are counted by who bounds them.
  enum class Bound : std::uint8_t {
    kQueue,  // the queue
    kOwner,  // who holds the payload as long as it is under way
  };

  // A frame. Requires that header and payload are within the bounds of frame.h and that the header
  // is not empty. Keeps the payload until it is sent.
  void push(std::string header, PayloadSlice payload, Bound bound = Bound::kQueue);
  void push_heartbeat();

  // The next bytes to be written, contiguous; the same memory and bytes until sent(), whatever is
  // pushed meanwhile (as SSL_write() demands of a write that is tried again). Empty: nothing waits.
  [[nodiscard]] std::span<const std::byte> pending();
  // The first `bytes` of pending() have been written.
  void sent(std::size_t bytes);

  [[nodiscard]] bool empty() const { return queued_bytes_ == 0; }
  // All that waits to be written.
  [[nodiscard]] std::uint64_t queued_bytes() const { return queued_bytes_; }
  // Of whole frames of one kind; heartbeats are of neither.
  [[nodiscard]] std::uint64_t queued_bytes(Bound bound) const {
    return bound_bytes_.at(index(bound));
  }

 private:
  struct Frame {
    FramePrefix prefix{};
    std::string header;
    PayloadSlice payload;
    Bound bound = Bound::kQueue;

    [[nodiscard]] std::uint64_t bytes() const {
      return kFramePrefixBytes + header.size() + payload.length;
    }
  };

  static constexpr std::size_t index(Bound bound) { return static_cast<std::size_t>(bound); }
  void gather();
  // The rest of what the first frame's next part holds: prefix, header or payload.
  [[nodiscard]] std::span<const std::byte> front_part() const;
  [[nodiscard]] bool front_is_large() const;
  // Of the first frame, which goes when none of it is left.
  void consume(std::size_t bytes);

  std::deque<Frame> frames_;
  std::size_t front_done_ = 0;  // bytes of the first frame that are staged or written
  std::uint64_t queued_bytes_ = 0;
  std::array<std::uint64_t, 2> bound_bytes_{};
  std::unique_ptr<std::byte[]> staging_;  // kRecordBytes; [staged_begin_, staged_end_) is unwritten
  std::size_t staged_begin_ = 0;
  std::size_t staged_end_ = 0;
};

}  // namespace mariner::peer

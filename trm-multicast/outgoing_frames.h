// The frames to one receiver, in order, until each may go: at once, or when what it refers to has
// been sent by multicast.
//
// Frames of several streams, and such as carry their payloads themselves, follow one another on one
// connection. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "proto/payload.h"
#include "trm-multicast/stream_sender.h"

namespace mariner::trm {

class OutgoingFrames {
 public:
  struct Frame {
    std::string header;
    PayloadSlice payload;
    // Of the payload; nothing: the frame carries it.
    std::optional<Reference> reference{};
  };

  // `stream` has given the reference, as the receiver's number `receiver`, and outlives this, or
  // stream_gone(). Null: the frame carries its payload.
  void push(Frame frame, const StreamSender* stream, ReceiverIndex receiver) {
    waiting_bytes_ += frame.payload.length;
    frames_.push_back({std::move(frame), stream, receiver});
  }

  // Hands `send` the frames that may go, in order; those without a reference are to carry their
  // payloads.
  template <typename Send>
  void flush(Send send) {
    while (!frames_.empty()) {
      Waiting& next = frames_.front();
      if (next.stream != nullptr) {
        const auto way = next.stream->way(next.receiver, *next.frame.reference);
        if (way == StreamSender::Way::kWait) return;
        if (way == StreamSender::Way::kCarry) next.frame.reference.reset();
      }
      Frame frame = std::move(next.frame);
      waiting_bytes_ -= frame.payload.length;
      frames_.pop_front();
      send(std::move(frame));
    }
  }

  // Its frames carry their payloads themselves.
  void stream_gone(const StreamSender* stream) {
    for (Waiting& each : frames_) {
      if (each.stream != stream) continue;
      each.stream = nullptr;
      each.frame.reference.reset();
    }
  }

  [[nodiscard]] bool empty() const { return frames_.empty(); }
  [[nodiscard]] std::uint64_t waiting_bytes() const { return waiting_bytes_; }

 private:
  struct Waiting {
    Frame frame;
    const StreamSender* stream = nullptr;
    ReceiverIndex receiver = 0;
  };

  std::deque<Waiting> frames_;
  std::uint64_t waiting_bytes_ = 0;
};

}  // namespace mariner::trm

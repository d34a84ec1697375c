// The frames of one connection, joined with their payloads: whole, in the order in which they were
// sent, whatever came by which way when.
//
// Sans I/O: frames, messages about streams and datagrams in; whole frames, and messages to the
// sender, out. A frame whose payload is incomplete holds up those behind it. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trm-multicast/control.h"
#include "trm-multicast/stream_receiver.h"

namespace mariner::trm {

class IncomingFrames {
 public:
  using Nanoseconds = std::chrono::nanoseconds;
  struct Frame {
    std::string header;
    Payload payload;
  };
  struct Options {
    StreamReceiver::Options stream{};
    // Of one connection; ReceiverHub refuses more.
    std::size_t streams_max = kStreamsMax;
    // Headers and payloads of frames that are held up behind another one, but for what comes by
    // multicast: more than a sender ever has on its way to one node.
    std::uint64_t held_bytes_max = 1152u << 20;
    std::size_t held_frames_max = 256u << 10;
    // How much, or how long, is waited before the sender is told what it may forget.
    std::uint64_t report_bytes = 256u << 10;
    Nanoseconds report_interval = std::chrono::milliseconds(10);
  };

  explicit IncomingFrames(const Options& options) : options_(options) {}

  // A frame with all that belongs to it, and one that has a reference in its place.
  // kProtocol, kLimit, kCorrupt: the connection is to be ended.
  Result<void> frame(std::string_view header, Payload payload);
  Result<void> frame(std::string_view header, const Reference& reference, Nanoseconds now);

  // Opens, admits, ... The caller listens to the group of an OpenStream as long as streams() has
  // it.
  Result<void> told(const FromSender& message);

  // A datagram that may be for one of the streams. Nothing: it is for none of them.
  std::optional<StreamReceiver::Taken> datagram(const SealedDatagram& datagram, Nanoseconds now);

  // A frame was handed on past this, because none is held().
  void passed() { ++handed_; }

  // The next frame in order, if it is whole.
  Result<std::optional<Frame>> take();

  // What the sender is to be told now.
  [[nodiscard]] std::vector<FromReceiver> take_answers(Nanoseconds now);
  // When take_answers() is worth a call; nothing: not before something comes.
  [[nodiscard]] std::optional<Nanoseconds> deadline() const;

  [[nodiscard]] bool listens_to(StreamId stream) const { return streams_.contains(stream); }
  [[nodiscard]] std::size_t streams() const { return streams_.size(); }
  [[nodiscard]] std::size_t held() const { return frames_.size(); }
  // Repaired, of all streams, ever.
  [[nodiscard]] std::uint64_t repaired_bytes() const;

 private:
  struct Stream {
    Stream(const OpenStream& message, const StreamReceiver::Options& options)
        : receiver(message, options) {}
    StreamReceiver receiver;
    bool changed = false;  // since the last report
    Nanoseconds reported{};
  };
  struct Held {
    Frame frame;
    std::optional<Reference> reference;
  };

  Result<Stream*> stream(StreamId id);
  Result<void> check_room() const;
  Result<void> open(const OpenStream& message);

  const Options options_;
  std::map<StreamId, Stream> streams_;
  std::deque<Held> frames_;
  std::uint64_t held_bytes_ = 0;
  std::uint64_t handed_ = 0;          // ever
  std::uint64_t repaired_bytes_ = 0;  // of streams that are gone
};

}  // namespace mariner::trm

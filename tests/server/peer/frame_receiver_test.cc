#include "server/peer/frame_receiver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "proto/bytes.h"
#include "tests/server/peer/peer_rig.h"

namespace mariner::peer {
namespace {

using test::pattern;
using test::same_bytes;

class Sink final : public FrameSink {
 public:
  bool on_frame(std::string_view header, Payload payload) override {
    frames.push_back({std::string(header), std::move(payload)});
    return frames.size() != stop_at;
  }
  void on_bad_frame(Error error) override { errors.push_back(std::move(error)); }

  struct Frame {
    std::string header;
    Payload payload;
  };
  std::vector<Frame> frames;
  std::vector<Error> errors;
  std::size_t stop_at = 0;
};

std::string frame(const std::string& header, const Payload& payload) {
  const FramePrefix prefix = pack_prefix(
      {static_cast<std::uint32_t>(header.size()), static_cast<std::uint32_t>(payload.size())});
  std::string bytes(reinterpret_cast<const char*>(prefix.data()), prefix.size());
  bytes += header;
  if (payload) bytes.append(reinterpret_cast<const char*>(payload.data()), payload.size());
  return bytes;
}

// Gives the receiver at most `piece_max` bytes at a time; how many times it was asked.
std::size_t feed(FrameReceiver& receiver, Sink& sink, std::string_view bytes,
                 std::size_t piece_max = SIZE_MAX) {
  std::size_t reads = 0;
  for (; !bytes.empty(); ++reads) {
    const std::span<std::byte> place = receiver.prepare();
    if (place.empty()) break;
    const std::size_t piece = std::min({place.size(), bytes.size(), piece_max});
    std::memcpy(place.data(), bytes.data(), piece);
    receiver.received(piece, sink);
    bytes.remove_prefix(piece);
  }
  return reads;
}

TEST(FrameReceiver, TakesAFrameCutAtEveryByte) {
  const Payload payload = pattern(40);
  const std::string bytes = frame("header", payload) + frame("next", {});
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    FrameReceiver receiver({});
    Sink sink;
    feed(receiver, sink, std::string_view(bytes).substr(0, cut));
    feed(receiver, sink, std::string_view(bytes).substr(cut));
    ASSERT_EQ(sink.frames.size(), 2u) << cut;
    EXPECT_EQ(sink.frames[0].header, "header");
    EXPECT_TRUE(same_bytes(sink.frames[0].payload, payload));
    EXPECT_EQ(sink.frames[1].header, "next");
    EXPECT_FALSE(sink.frames[1].payload);
    EXPECT_TRUE(receiver.between_frames());
  }
}

TEST(FrameReceiver, TakesFramesInPiecesOfAnySize) {
  std::string bytes;
  std::vector<Payload> payloads;
  for (const std::size_t size : {0u, 1u, 4095u, 4096u, 8193u, 70'000u, 200'000u}) {
    payloads.push_back(size == 0 ? Payload{} : pattern(size, static_cast<unsigned>(size)));
    bytes += frame(std::string(size % 300 + 1, 'h'), payloads.back());
    bytes.append(kFramePrefixBytes, '\0');  // a heartbeat
  }
  for (const std::size_t piece : {1u, 3u, 4095u, 16384u, 100'000u, 1'000'000u}) {
    FrameReceiver receiver({});
    Sink sink;
    feed(receiver, sink, bytes, piece);
    ASSERT_EQ(sink.frames.size(), payloads.size()) << piece;
    for (std::size_t i = 0; i < payloads.size(); ++i) {
      EXPECT_TRUE(same_bytes(sink.frames[i].payload, payloads[i])) << piece << " " << i;
      EXPECT_EQ(sink.frames[i].header.size(), payloads[i].size() % 300 + 1);
    }
    EXPECT_TRUE(receiver.between_frames());
  }
}

TEST(FrameReceiver, ALargePayloadIsReceivedInItsPlace) {
  FrameReceiver receiver({});
  Sink sink;
  const Payload payload = pattern(1 << 20);
  const std::string bytes = frame("h", payload);
  feed(receiver, sink, std::string_view(bytes).substr(0, kFramePrefixBytes + 1));
  const std::span<std::byte> place = receiver.prepare();
  EXPECT_EQ(place.size(), payload.size());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(place.data()) % kBlockBytes, 0u);
  std::memcpy(place.data(), payload.data(), payload.size());
  receiver.received(payload.size(), sink);
  ASSERT_EQ(sink.frames.size(), 1u);
  EXPECT_EQ(sink.frames[0].payload.data(), place.data());  // no copy
  EXPECT_TRUE(same_bytes(sink.frames[0].payload, payload));
}

TEST(FrameReceiver, ManySmallFramesComeWithOneRead) {
  std::string bytes;
  for (int i = 0; i < 500; ++i) bytes += frame("frame " + std::to_string(i), {});
  FrameReceiver receiver({});
  Sink sink;
  EXPECT_EQ(feed(receiver, sink, bytes), 1u);
  ASSERT_EQ(sink.frames.size(), 500u);
  EXPECT_EQ(sink.frames[499].header, "frame 499");
}

TEST(FrameReceiver, TheLargestFrameIsTaken) {
  const std::string header(kFrameHeaderBytesMax, 'h');
  const Payload payload = pattern(kFramePayloadBytesMax);
  FrameReceiver receiver({});
  Sink sink;
  feed(receiver, sink, frame("before", pattern(5)) + frame(header, payload), 16384);
  ASSERT_EQ(sink.frames.size(), 2u);
  EXPECT_EQ(sink.frames[1].header, header);
  EXPECT_TRUE(same_bytes(sink.frames[1].payload, payload));
}

TEST(FrameReceiver, WhatIsTooLargeStopsItBeforeItTakesMemory) {
  FrameReceiver receiver({.header_bytes_max = 10, .payload_bytes_max = 0});
  Sink sink;
  feed(receiver, sink, frame("short", {}) + frame("eleven byte", {}) + frame("short", {}));
  EXPECT_EQ(sink.frames.size(), 1u);
  ASSERT_EQ(sink.errors.size(), 1u);
  EXPECT_EQ(sink.errors[0].code, ErrorCode::kProtocol);
  EXPECT_TRUE(receiver.stopped());
  EXPECT_TRUE(receiver.prepare().empty());
}

TEST(FrameReceiver, NewBoundsHoldFromTheNextFrameOn) {
  FrameReceiver receiver({.header_bytes_max = 4, .payload_bytes_max = 0});
  class Widening final : public FrameSink {
   public:
    explicit Widening(FrameReceiver& to_widen) : receiver(to_widen) {}
    bool on_frame(std::string_view, Payload payload) override {
      receiver.set_bounds({});
      bytes += payload.size();
      ++frames;
      return true;
    }
    void on_bad_frame(Error) override { ADD_FAILURE(); }
    FrameReceiver& receiver;
    std::size_t bytes = 0;
    int frames = 0;
  } sink(receiver);
  const std::string bytes = frame("hi", {}) + frame("longer", pattern(9));
  const auto place = receiver.prepare();
  std::memcpy(place.data(), bytes.data(), bytes.size());
  receiver.received(bytes.size(), sink);
  EXPECT_EQ(sink.frames, 2);
  EXPECT_EQ(sink.bytes, 9u);
}

TEST(FrameReceiver, ASinkStopsIt) {
  FrameReceiver receiver({});
  Sink sink;
  sink.stop_at = 2;
  feed(receiver, sink, frame("a", {}) + frame("b", {}) + frame("c", {}));
  EXPECT_EQ(sink.frames.size(), 2u);
  EXPECT_TRUE(receiver.stopped());
  EXPECT_TRUE(sink.errors.empty());
}

}  // namespace
}  // namespace mariner::peer

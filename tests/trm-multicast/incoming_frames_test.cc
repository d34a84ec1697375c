#include "trm-multicast/incoming_frames.h"

#include <gtest/gtest.h>

#include <string>

#include "proto/payload_crc.h"

namespace mariner::trm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class IncomingFramesTest : public ::testing::Test {
 protected:
  static OpenStream open(std::uint32_t stream) {
    return {.stream = {stream}, .group = "239.1.1.1", .port = 1, .window_bytes = 1u << 20};
  }
  void begin(std::uint32_t stream) {
    ASSERT_TRUE(frames_.told(FromSender(open(stream))).has_value());
    ASSERT_TRUE(frames_.told(FromSender(Admit{{stream}, {0}})).has_value());
  }
  // The next payload of the stream, as a reference and as one datagram.
  Reference reference() {
    const Reference made{{1}, next_, 4096, payload_crc32c({payload_, 0, 4096})};
    next_ = made.end();
    return made;
  }
  void arrives(const Reference& reference) {
    std::vector<std::byte> bytes(4096 + kDatagramOverheadBytes);
    sealer_.seal({{1}, DatagramKind::kPayload, reference.start, 4096, 0}, payload_.bytes(), bytes);
    EXPECT_EQ(frames_.datagram(parse(bytes).value(), now_), StreamReceiver::Taken::kNew);
  }
  std::string taken() {
    std::string all;
    for (;;) {
      const auto frame = frames_.take();
      EXPECT_TRUE(frame.has_value());
      if (!frame || !*frame) return all;
      all += (*frame)->header + std::to_string((*frame)->payload.size()) + " ";
    }
  }

  IncomingFrames frames_{{}};
  Sealer sealer_{open(1).key, false};
  const Payload payload_ = Payload::zeroed(4096);
  Position next_{0};
  std::chrono::nanoseconds now_ = seconds(1);
};

TEST_F(IncomingFramesTest, FramesStayInOrder) {
  begin(1);
  const Reference a = reference();
  const Reference b = reference();
  ASSERT_TRUE(frames_.frame("a", a, now_).has_value());
  ASSERT_TRUE(frames_.frame("x", Payload::zeroed(10)).has_value());
  ASSERT_TRUE(frames_.frame("b", b, now_).has_value());
  arrives(b);
  EXPECT_EQ(taken(), "");
  EXPECT_EQ(frames_.held(), 3u);
  arrives(a);
  EXPECT_EQ(taken(), "a4096 x10 b4096 ");
  EXPECT_EQ(frames_.held(), 0u);
}

TEST_F(IncomingFramesTest, WhatIsMissingIsAskedForAndReported) {
  begin(1);
  (void)frames_.take_answers(now_);
  const Reference a = reference();
  ASSERT_TRUE(frames_.frame("a", a, now_).has_value());
  ASSERT_TRUE(frames_.deadline().has_value());
  now_ = *frames_.deadline();
  auto answers = frames_.take_answers(now_);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(std::get<Missing>(answers[0]).parts, (std::vector<Part>{{a.start, 0, 4096}}));
  ASSERT_TRUE(
      frames_.told(FromSender(Repair{{1}, {a.start, 0, 4096}, {payload_, 0, 4096}})).has_value());
  EXPECT_EQ(taken(), "a4096 ");
  EXPECT_EQ(frames_.repaired_bytes(), 4096u);
  now_ += milliseconds(20);
  answers = frames_.take_answers(now_);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(std::get<Report>(answers[0]).through, a.end());
  EXPECT_TRUE(frames_.take_answers(now_ + seconds(1)).empty());
}

TEST_F(IncomingFramesTest, StreamsThatWereNotOpenedAreRefused) {
  EXPECT_FALSE(frames_.frame("a", reference(), now_).has_value());
  EXPECT_FALSE(frames_.told(FromSender(Admit{{1}, {0}})).has_value());
  EXPECT_FALSE(frames_.told(FromSender(CloseStream{{1}})).has_value());
  begin(1);
  EXPECT_FALSE(frames_.told(FromSender(open(1))).has_value());
  EXPECT_TRUE(frames_.told(FromSender(CloseStream{{1}})).has_value());
  EXPECT_FALSE(frames_.listens_to({1}));
}

TEST_F(IncomingFramesTest, AStreamIsNotClosedWhileAFrameWaitsForIt) {
  begin(1);
  ASSERT_TRUE(frames_.frame("a", reference(), now_).has_value());
  EXPECT_FALSE(frames_.told(FromSender(CloseStream{{1}})).has_value());
}

TEST_F(IncomingFramesTest, BoundsHold) {
  IncomingFrames frames({.streams_max = 2, .held_bytes_max = 100'000, .held_frames_max = 10});
  for (const std::uint32_t stream : {1, 2}) {
    EXPECT_TRUE(frames.told(FromSender(open(stream))).has_value());
  }
  EXPECT_EQ(frames.told(FromSender(open(3))).error().code, ErrorCode::kLimit);
  ASSERT_TRUE(frames.told(FromSender(Admit{{1}, {0}})).has_value());
  ASSERT_TRUE(frames.frame("a", reference(), now_).has_value());
  int held = 0;
  while (frames.frame("x", {}).has_value()) ++held;
  EXPECT_EQ(held, 9);
  IncomingFrames others({.held_bytes_max = 100'000});
  held = 0;
  while (others.frame("x", Payload::zeroed(40'000)).has_value()) ++held;
  EXPECT_EQ(held, 3);
  IncomingFrames long_ones({.held_bytes_max = 100'000});
  held = 0;
  while (long_ones.frame(std::string(40'000, 'x'), {}).has_value()) ++held;
  EXPECT_EQ(held, 3) << "headers are memory, too";
  // What was handed on is held no more.
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(long_ones.take().value().has_value());
  held = 0;
  while (long_ones.frame(std::string(40'000, 'x'), Payload::zeroed(10)).has_value()) ++held;
  EXPECT_EQ(held, 3);
}

TEST_F(IncomingFramesTest, DatagramsOfOtherStreamsAreNobodys) {
  begin(1);
  std::vector<std::byte> bytes(100 + kDatagramOverheadBytes);
  sealer_.seal({{9}, DatagramKind::kPayload, {0}, 100, 0}, payload_.bytes().first(100), bytes);
  EXPECT_EQ(frames_.datagram(parse(bytes).value(), now_), std::nullopt);
}

}  // namespace
}  // namespace mariner::trm

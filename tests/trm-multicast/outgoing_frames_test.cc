#include "trm-multicast/outgoing_frames.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace mariner::trm {
namespace {

using std::chrono::milliseconds;
constexpr std::array<ReceiverIndex, 2> kTwo{0, 1};

class OutgoingFramesTest : public ::testing::Test {
 protected:
  OutgoingFramesTest() {
    Report report{};
    for (const ReceiverIndex i : kTwo) sender_.connected(i);
    while (sender_.admitted() != 3) {
      now_ += milliseconds(50);
      sender_.tick(now_);
      while (const auto batch = sender_.next(now_)) {
        ++report.probes;
        report.bytes += batch->bytes.length;
      }
      for (const ReceiverIndex i : kTwo) EXPECT_TRUE(sender_.received(i, report, now_));
    }
  }
  void push(const std::string& name, bool multicast) {
    const PayloadSlice payload{Payload::zeroed(8192), 0, 8192};
    const auto reference = multicast ? sender_.offer(3, payload) : std::nullopt;
    EXPECT_EQ(reference.has_value(), multicast);
    frames_.push({name, payload, reference}, multicast ? &sender_ : nullptr, 0);
  }
  std::string flush() {
    std::string sent;
    frames_.flush([&](const OutgoingFrames::Frame& frame) {
      sent += frame.header + (frame.reference ? "@ " : " ");
    });
    return sent;
  }

  StreamSender sender_{OpenStream{.stream = {1}, .window_bytes = 8u << 20}, {}};
  OutgoingFrames frames_;
  std::chrono::nanoseconds now_ = std::chrono::seconds(3);
};

TEST_F(OutgoingFramesTest, WhatCarriesItsPayloadGoesAtOnce) {
  push("a", false);
  EXPECT_EQ(flush(), "a ");
  EXPECT_TRUE(frames_.empty());
}

TEST_F(OutgoingFramesTest, WhatRefersWaitsUntilItsPayloadIsSentAndHoldsUpTheOthers) {
  push("a", false);
  push("b", true);
  push("c", false);
  EXPECT_EQ(flush(), "a ");
  EXPECT_EQ(frames_.waiting_bytes(), 2 * 8192u);
  while (sender_.next(now_)) {
  }
  EXPECT_EQ(flush(), "b@ c ");
  EXPECT_EQ(frames_.waiting_bytes(), 0u);
}

TEST_F(OutgoingFramesTest, WhoDoesNotGetItByMulticastGetsItInTheFrame) {
  push("a", true);
  sender_.disconnected(0);
  EXPECT_EQ(flush(), "a ");
}

TEST_F(OutgoingFramesTest, WithoutTheStreamFramesCarryTheirPayloads) {
  push("a", true);
  push("b", true);
  frames_.stream_gone(&sender_);
  EXPECT_EQ(flush(), "a b ");
}

}  // namespace
}  // namespace mariner::trm

#include "server/peer/frame_sender.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "proto/bytes.h"
#include "tests/server/peer/peer_rig.h"

namespace mariner::peer {
namespace {

using test::pattern;
using test::slice_of;

// Everything that it has to send, in writes of at most `write_max` bytes; the pieces' lengths.
std::string drain(FrameSender& sender, std::vector<std::size_t>* pieces = nullptr,
                  std::size_t write_max = SIZE_MAX) {
  std::string all;
  while (!sender.empty()) {
    const auto piece = sender.pending();
    const std::size_t bytes = std::min(piece.size(), write_max);
    if (pieces != nullptr) pieces->push_back(bytes);
    all.append(reinterpret_cast<const char*>(piece.data()), bytes);
    sender.sent(bytes);
  }
  return all;
}

std::string expected(const std::string& header, const Payload& payload) {
  const FramePrefix prefix = pack_prefix(
      {static_cast<std::uint32_t>(header.size()), static_cast<std::uint32_t>(payload.size())});
  std::string bytes(reinterpret_cast<const char*>(prefix.data()), prefix.size());
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(payload.data()), payload.size());
  return bytes;
}

TEST(FrameSender, AFrameIsGolden) {
  FrameSender sender;
  sender.push("hd", slice_of(Payload::copy_of(as_byte_span("pay"))));
  sender.push_heartbeat();
  EXPECT_EQ(sender.queued_bytes(), 21u);
  EXPECT_EQ(drain(sender), std::string("\2\0\0\0\3\0\0\0hdpay\0\0\0\0\0\0\0\0", 21));
  EXPECT_EQ(sender.queued_bytes(), 0u);
  EXPECT_TRUE(sender.pending().empty());
}

TEST(FrameSender, SmallFramesShareARecord) {
  FrameSender sender;
  std::string all;
  for (int i = 0; i < 1000; ++i) {
    sender.push("frame " + std::to_string(i), {});
    all += expected("frame " + std::to_string(i), {});
  }
  std::vector<std::size_t> pieces;
  EXPECT_EQ(drain(sender, &pieces), all);
  EXPECT_EQ(pieces.size(),
            (all.size() + FrameSender::kRecordBytes - 1) / FrameSender::kRecordBytes);
}

TEST(FrameSender, ALargePayloadIsSentFromWhereItLies) {
  FrameSender sender;
  const Payload payload = pattern(100'000);
  sender.push("small", {});
  sender.push("large", slice_of(payload));
  sender.push("after", {});
  const auto first = sender.pending();
  EXPECT_EQ(first.size(), 2 * kFramePrefixBytes + 10);  // up to the payload, which begins a record
  sender.sent(first.size());
  EXPECT_EQ(sender.pending().data(), payload.data());
  EXPECT_EQ(sender.pending().size(), payload.size());
  sender.sent(60'000);
  EXPECT_EQ(sender.pending().data(), payload.data() + 60'000);
  sender.sent(40'000);
  EXPECT_EQ(drain(sender), expected("after", {}));
}

TEST(FrameSender, WritesOfAnyLengthSendTheSame) {
  std::string all;
  std::vector<Payload> payloads;
  for (const std::size_t size : {1u, 100u, 16383u, 16384u, 16385u, 50'000u, 7u}) {
    payloads.push_back(pattern(size, static_cast<unsigned>(size)));
    all += expected(std::string(size % 70 + 1, 'h'), payloads.back());
  }
  for (const std::size_t write_max : {1u, 2u, 13u, 4096u, 16384u, 1'000'000u}) {
    FrameSender sender;
    for (const Payload& payload : payloads) {
      sender.push(std::string(payload.size() % 70 + 1, 'h'), slice_of(payload));
    }
    EXPECT_EQ(sender.queued_bytes(), all.size());
    EXPECT_TRUE(drain(sender, nullptr, write_max) == all) << write_max;
  }
}

TEST(FrameSender, WhatIsPendingStaysAsItIsWhenMoreIsPushed) {
  FrameSender sender;
  sender.push("first", {});
  const auto before = sender.pending();
  sender.push("second", {});
  const auto after = sender.pending();
  EXPECT_EQ(before.data(), after.data());
  EXPECT_EQ(before.size(), after.size());
}

TEST(FrameSender, PayloadsAreLetGoWhenTheyAreSent) {
  FrameSender sender;
  const std::uint64_t before = Payload::total_bytes();
  sender.push("a", slice_of(pattern(100'000)));
  sender.push("b", slice_of(pattern(100)));
  EXPECT_GT(Payload::total_bytes(), before);
  drain(sender);
  EXPECT_EQ(Payload::total_bytes(), before);
}

}  // namespace
}  // namespace mariner::peer

#include "trm-multicast/control.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/trm-multicast/hex.h"

namespace mariner::trm {
namespace {

constexpr StreamId kStream{0xc0ffee42};

OpenStream open_message() {
  return {.stream = kStream,
          .group = "239.192.7.1",
          .port = 6003,
          .key = StreamKey::generate().value(),
          .encrypted = true,
          .window_bytes = 8u << 20};
}

template <typename Message>
Message again(const Message& message, const Payload& payload = {}) {
  std::string bytes;
  if constexpr (std::is_constructible_v<FromSender, Message>) {
    bytes = encode(FromSender(message));
  } else {
    bytes = encode(FromReceiver(message));
  }
  const Result<Control> heard = decode(bytes, payload);
  EXPECT_TRUE(heard.has_value());
  EXPECT_EQ(std::visit([](const auto& side) { return stream_of(side); }, *heard), kStream);
  if constexpr (std::is_constructible_v<FromSender, Message>) {
    return std::get<Message>(std::get<FromSender>(*heard));
  } else {
    return std::get<Message>(std::get<FromReceiver>(*heard));
  }
}

std::string complaint(const FromSender& message, const Payload& payload = {}) {
  const Result<Control> heard = decode(encode(message), payload);
  return heard ? "none" : heard.error().message;
}

TEST(Control, MessagesComeBackAsTheyWere) {
  const OpenStream open = open_message();
  const OpenStream opened = again(open);
  EXPECT_EQ(opened.group, open.group);
  EXPECT_EQ(opened.port, open.port);
  EXPECT_EQ(opened.key, open.key);
  EXPECT_EQ(opened.encrypted, open.encrypted);
  EXPECT_EQ(opened.window_bytes, open.window_bytes);
  EXPECT_EQ(again(Admit{kStream, {77}}).begin, Position{77});
  again(Dismiss{kStream});
  again(CloseStream{kStream});
  EXPECT_EQ(again(CannotListen{kStream, "no such interface"}).reason, "no such interface");
  const std::vector<Part> parts{{{5}, 1, 2}, {{UINT64_MAX}, 3, 4}};
  EXPECT_EQ(again(Missing{kStream, parts}).parts, parts);
  const Report report{.stream = kStream,
                      .through = {1},
                      .highest = {2},
                      .bytes = 3,
                      .clock = std::chrono::nanoseconds(4),
                      .probes = 5,
                      .largest_probe = 6,
                      .unsealed = 7,
                      .frames = 8};
  EXPECT_EQ(again(report), report);
}

TEST(Control, RepairHasItsBytesBehindIt) {
  const Payload payload = Payload::copy_of(std::as_bytes(std::span("repaired", 8)));
  const Repair repair{kStream, {{9}, 100, 8}, {payload, 0, 8}};
  EXPECT_EQ(payload_of(FromSender(repair)).length, 8u);
  const Repair heard = again(repair, payload);
  EXPECT_EQ(heard.part, repair.part);
  EXPECT_EQ(heard.bytes.bytes().data(), payload.data());
}

TEST(Control, WhatIsBeyondItsBoundsIsRefused) {
  OpenStream open = open_message();
  open.port = 0;
  EXPECT_NE(complaint(open).find("port 0"), std::string::npos);
  open = open_message();
  open.window_bytes = kWindowBytesMax + 1;
  EXPECT_NE(complaint(open).find("window"), std::string::npos);
  open.window_bytes = 0;
  EXPECT_NE(complaint(open).find("window"), std::string::npos);
  open = open_message();
  open.group.clear();
  EXPECT_NE(complaint(open).find("group"), std::string::npos);
  EXPECT_NE(complaint(Repair{kStream, {{1}, 0, 0}, {}}).find("repairs 0 bytes"), std::string::npos);
  const Payload payload = Payload::zeroed(10);
  EXPECT_NE(complaint(Repair{kStream, {{1}, kPayloadBytesMax - 9, 10}, {payload, 0, 10}}, payload)
                .find("repairs 10 bytes"),
            std::string::npos);
  EXPECT_NE(complaint(Dismiss{kStream}, payload).find("comes with 10 bytes"), std::string::npos);
  EXPECT_FALSE(decode(encode(FromReceiver(Missing{kStream, {}})), {}).has_value());
  EXPECT_FALSE(decode(encode(FromReceiver(Missing{kStream, std::vector<Part>(kPartsMax + 1)})), {})
                   .has_value());
  EXPECT_TRUE(
      decode(encode(FromReceiver(Missing{kStream, std::vector<Part>(kPartsMax)})), {}).has_value());
}

TEST(Control, WhatIsNoMessageIsRefused) {
  EXPECT_FALSE(decode("", {}).has_value());
  EXPECT_FALSE(decode("\xff\xff\xff", {}).has_value());
  EXPECT_FALSE(decode("nonsense", {}).has_value());
}

TEST(Reference, HasTheseBytes) {
  std::string bytes;
  ReferenceCoder coder;
  const Reference first{kStream, {0x0102030405}, 8192, 0xe3069283};
  append(bytes, first, coder);
  append(bytes, {kStream, first.end(), 8192, 1}, coder);
  EXPECT_EQ(to_hex(std::as_bytes(std::span(bytes))),
            "03"
            "42eeffc0"
            "85888c9010"
            "8040"
            "839206e3"
            "00"
            "8040"
            "01000000");
}

TEST(Reference, ComesBackInAnySequence) {
  std::mt19937_64 random(3);
  ReferenceCoder said;
  ReferenceCoder heard;
  std::string bytes;
  std::vector<Reference> all;
  for (int i = 0; i < 1000; ++i) {
    Reference one{{static_cast<std::uint32_t>(random() % 3)},
                  {random() >> (random() % 60 + 2)},
                  static_cast<std::uint32_t>(random() % kPayloadBytesMax + 1),
                  static_cast<std::uint32_t>(random())};
    if (random() % 2 == 0) one.start = said.before.end();
    const std::size_t before = bytes.size();
    append(bytes, one, said);
    EXPECT_LE(bytes.size() - before, kReferenceBytesMax);
    all.push_back(one);
  }
  std::string_view left = bytes;
  for (const Reference& one : all) {
    const auto taken = take_reference(left, heard);
    ASSERT_TRUE(taken.has_value());
    EXPECT_EQ(*taken, one);
  }
  EXPECT_TRUE(left.empty());
}

TEST(Reference, ThatIsCutOffOrNonsenseIsRefused) {
  std::string good;
  ReferenceCoder coder;
  append(good, {kStream, {1000}, 8192, 5}, coder);
  for (std::size_t size = 0; size < good.size(); ++size) {
    std::string_view cut = std::string_view(good).substr(0, size);
    ReferenceCoder fresh;
    EXPECT_FALSE(take_reference(cut, fresh).has_value()) << size;
  }
  for (const char* bad : {"\x04",
                          "\x01"
                          "abcd\x00"
                          "1234",
                          "\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"
                          "a1234"}) {
    std::string_view text(bad, 10);
    ReferenceCoder fresh;
    EXPECT_FALSE(take_reference(text, fresh).has_value());
  }
}

TEST(Control, WhatAReceiverAsksForAtOnceFitsIntoAHeader) {
  constexpr std::uint64_t kFar = UINT64_MAX / 2;
  Missing missing{kStream, {}};
  for (std::uint32_t i = 0; i < 2048; ++i)
    missing.parts.push_back({{kFar}, UINT32_MAX / 2, UINT32_MAX / 2});
  EXPECT_LT(encode(FromReceiver(missing)).size(), 60'000u);  // of 64 KiB
}

}  // namespace
}  // namespace mariner::trm

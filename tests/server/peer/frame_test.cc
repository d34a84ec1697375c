#include "server/peer/frame.h"

#include <gtest/gtest.h>

#include <string>

#include "proto/bytes.h"

namespace mariner::peer {
namespace {

FramePrefix bytes_of(std::initializer_list<int> values) {
  FramePrefix prefix{};
  std::size_t at = 0;
  for (const int value : values) prefix[at++] = static_cast<std::byte>(value);
  return prefix;
}

TEST(Frame, PrefixIsGolden) {
  EXPECT_EQ(pack_prefix({.header_bytes = 0x0000'1234, .payload_bytes = 0x0100'0000}),
            bytes_of({0x34, 0x12, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(pack_prefix({}), FramePrefix{});
}

TEST(Frame, PrefixIsReadAsItWasWritten) {
  for (const FrameLengths lengths : {FrameLengths{0, 0}, FrameLengths{1, 0}, FrameLengths{7, 4096},
                                     FrameLengths{kFrameHeaderBytesMax, kFramePayloadBytesMax}}) {
    const auto read = parse_prefix(pack_prefix(lengths), {});
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, lengths);
    EXPECT_EQ(read->heartbeat(), lengths.header_bytes == 0);
  }
}

TEST(Frame, BeyondTheBoundsIsAnErrorThatNamesBoth) {
  const auto header = parse_prefix(pack_prefix({kFrameHeaderBytesMax + 1, 0}), {});
  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().code, ErrorCode::kProtocol);
  EXPECT_NE(header.error().message.find("65536"), std::string::npos);
  EXPECT_NE(header.error().message.find("65537"), std::string::npos);

  const auto payload = parse_prefix(pack_prefix({1, kFramePayloadBytesMax + 1}), {});
  ASSERT_FALSE(payload);
  EXPECT_NE(payload.error().message.find("16842752"), std::string::npos);
  EXPECT_NE(payload.error().message.find("16842753"), std::string::npos);

  EXPECT_FALSE(parse_prefix(pack_prefix({11, 0}), {.header_bytes_max = 10}));
  EXPECT_FALSE(parse_prefix(pack_prefix({1, 1}), {.payload_bytes_max = 0}));
}

TEST(Frame, PayloadWithoutHeaderIsAnError) { EXPECT_FALSE(parse_prefix(pack_prefix({0, 1}), {})); }

}  // namespace
}  // namespace mariner::peer

#include "server/peer/invitation.h"

#include <gtest/gtest.h>

namespace mariner::peer {
namespace {

Invitation example() {
  std::string secret;
  for (int i = 0; i < 16; ++i) secret += static_cast<char>(i * 17);
  return {.address = {.address = "192.0.2.1", .port = 9862},
          .fingerprint = std::string(32, 'a') + std::string(32, '0'),
          .secret = secret};
}

constexpr const char* kToken =
    "mariner-join/1/192.0.2.1:9862/"
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa00000000000000000000000000000000/"
    "00112233445566778899aabbccddeeff";

TEST(Invitation, TokenIsGolden) {
  EXPECT_EQ(to_token(example()), kToken);
  EXPECT_EQ(parse_token(kToken).value(), example());
}

TEST(Invitation, BlanksAroundAreNoMatter) {
  EXPECT_EQ(parse_token(std::string(" \t") + kToken + "\r\n").value(), example());
}

TEST(Invitation, Ipv6) {
  Invitation invitation = example();
  invitation.address = {.address = "2001:db8::1", .port = 9862, .v6 = true};
  EXPECT_EQ(parse_token(to_token(invitation)).value(), invitation);
}

TEST(Invitation, APartOfATokenIsNone) {
  const std::string token = kToken;
  for (std::size_t length = 0; length < token.size(); ++length) {
    EXPECT_FALSE(parse_token(token.substr(0, length))) << length;
  }
  for (std::size_t length = 1; length < token.size(); ++length) {
    EXPECT_FALSE(parse_token(token.substr(length))) << length;
  }
  EXPECT_FALSE(parse_token(token + "0"));
  EXPECT_FALSE(parse_token(token + "/0"));
}

TEST(Invitation, WhatIsWrongIsSaidWithoutTheSecret) {
  const std::string token = kToken;
  for (const auto& [wrong, words] : {
           std::pair{std::string(), std::string("empty")},
           std::pair{"k" + token, std::string("beginning")},
           std::pair{token.substr(0, token.size() - 1) + "G", std::string("secret")},
           std::pair{"mariner-join/1/192.0.2.1:0" + token.substr(token.find("/aaaa")),
                     std::string("no port")},
           std::pair{"mariner-join/1/host:9862" + token.substr(token.find("/aaaa")),
                     std::string("not an address")},
       }) {
    const auto parsed = parse_token(wrong);
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(parsed.error().message.find(words), std::string::npos) << parsed.error().message;
    EXPECT_EQ(parsed.error().message.find("ccddee"), std::string::npos);
  }
}

}  // namespace
}  // namespace mariner::peer

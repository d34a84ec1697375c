#include "proto/endpoint.h"

#include <gtest/gtest.h>

namespace mariner {
namespace {

TEST(Endpoint, BothFamilies) {
  const auto v4 = parse_endpoint("192.0.2.7:3260");
  ASSERT_TRUE(v4);
  EXPECT_EQ(*v4, (Endpoint{"192.0.2.7", 3260, false}));
  const auto v6 = parse_endpoint("[2001:DB8:0::1]:9860");
  ASSERT_TRUE(v6);
  EXPECT_EQ(*v6, (Endpoint{"2001:db8::1", 9860, true}));
}

TEST(Endpoint, IsWrittenAsItIsRead) {
  for (const auto* text : {"0.0.0.0:3260", "[::]:3260", "127.0.0.1:0", "[fe80::1]:65535"}) {
    const auto endpoint = parse_endpoint(text);
    ASSERT_TRUE(endpoint) << text;
    EXPECT_EQ(to_string(*endpoint), text);
  }
}

TEST(Endpoint, WrongOnesAreRefused) {
  for (const auto& text :
       {std::string(""), std::string("3260"), std::string("localhost:3260"),
        std::string("::1:3260"), std::string("[::1]"), std::string("1.2.3.4"),
        std::string("1.2.3.4:"), std::string("1.2.3.4:65536"), std::string("1.2.3.4:-1"),
        std::string("1.2.3.4:80x"), std::string("1.2.3:80"), std::string("[1.2.3.4]:80"),
        std::string("[::1:80"), std::string(":80"), std::string("[]:80"),
        std::string("1.2.3.4\0x:80", 12)}) {
    const auto endpoint = parse_endpoint(text);
    ASSERT_FALSE(endpoint) << text;
    EXPECT_EQ(endpoint.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(Endpoint, KnowsLoopback) {
  EXPECT_TRUE(parse_endpoint("127.0.0.1:1")->loopback());
  EXPECT_TRUE(parse_endpoint("127.8.0.1:1")->loopback());
  EXPECT_TRUE(parse_endpoint("[::1]:1")->loopback());
  EXPECT_FALSE(parse_endpoint("0.0.0.0:1")->loopback());
  EXPECT_FALSE(parse_endpoint("[::]:1")->loopback());
}

TEST(Endpoint, KnowsPrivateNetworks) {
  for (const char* text :
       {"127.1.2.3:1", "10.0.0.1:1", "10.255.255.255:1", "172.16.0.1:1", "172.31.255.255:1",
        "192.168.7.1:1", "169.254.0.1:1", "100.64.0.1:1", "100.127.255.255:1", "[::1]:1",
        "[fd00::1]:1", "[fc00::1]:1", "[fe80::1]:1", "[febf::1]:1"}) {
    EXPECT_TRUE(parse_endpoint(text)->on_private_network()) << text;
  }
  for (const char* text :
       {"0.0.0.0:1", "9.255.255.255:1", "11.0.0.0:1", "172.15.255.255:1", "172.32.0.0:1",
        "192.167.255.255:1", "192.169.0.0:1", "169.253.255.255:1", "100.63.255.255:1",
        "100.128.0.0:1", "8.8.8.8:1", "[::]:1", "[2001:db8::1]:1", "[fe00::1]:1", "[fec0::1]:1",
        "[a00::1]:1"}) {
    EXPECT_FALSE(parse_endpoint(text)->on_private_network()) << text;
  }
  EXPECT_FALSE((Endpoint{.address = "name", .port = 1, .v6 = false}).on_private_network());
}

TEST(TargetAddress, IsOnePlaceWithoutAPortalGroup) {
  EXPECT_EQ(to_string(*parse_target_address("192.0.2.1:3260")), "192.0.2.1:3260");
  EXPECT_EQ(to_string(*parse_target_address("192.0.2.1:3260,65535")), "192.0.2.1:3260");
  EXPECT_EQ(to_string(*parse_target_address("[2001:DB8:0::1]:3261,2")), "[2001:db8::1]:3261");
  for (const char* wrong :
       {"", "192.0.2.1", "0.0.0.0:3260", "[::]:3260", "192.0.2.1:0", "host:3260", "192.0.2.1:3260,",
        "192.0.2.1:3260,x", "192.0.2.1:3260,65536", "192.0.2.1:3260,1,2"}) {
    EXPECT_FALSE(parse_target_address(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace mariner

#include "server/node/config_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mariner::config {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

TEST(ConfigValues, PathsAreAbsolute) {
  EXPECT_EQ(absolute_path("/x/y").value(), "/x/y");
  EXPECT_EQ(absolute_path("x").error().message, "\"x\" is not an absolute path");
  EXPECT_FALSE(absolute_path(""));
  EXPECT_FALSE(absolute_path(std::string_view("/x\0y", 4)));
}

TEST(ConfigValues, SizesAreWithinBothEnds) {
  const auto parse = size_between(ByteSize{1024}, ByteSize{4096});
  EXPECT_EQ(parse("1K").value(), ByteSize{1024});
  EXPECT_EQ(parse("4K").value(), ByteSize{4096});
  EXPECT_EQ(parse("1023").error().message, "expected 1 KiB to 4 KiB, found 1023 B");
  EXPECT_FALSE(parse("4097"));
  EXPECT_THAT(parse("x").error().message, HasSubstr("is not a size"));
}

TEST(ConfigValues, SecondsAreWholeAndWithinBothEnds) {
  const auto parse = seconds_between(seconds(2), seconds(60));
  EXPECT_EQ(parse("2s").value(), seconds(2));
  EXPECT_EQ(parse("2000ms").value(), seconds(2));
  EXPECT_EQ(parse("1m").value(), seconds(60));
  EXPECT_EQ(parse("2500ms").error().message,
            "expected whole seconds, from 2s to 1m, found 2s500ms");
  EXPECT_FALSE(parse("1s"));
  EXPECT_FALSE(parse("61s"));
  EXPECT_THAT(parse("3").error().message, HasSubstr("is not a duration"));
}

TEST(ConfigValues, OneAddressThatOthersCanConnectTo) {
  EXPECT_EQ(to_string(reachable_endpoint("[fd00::1]:9861", "e").value()), "[fd00::1]:9861");
  for (const char* text : {"0.0.0.0:9861", "[::]:9861", "192.0.2.1:0"}) {
    EXPECT_THAT(reachable_endpoint(text, "192.0.2.1:1").error().message,
                HasSubstr("is not where other nodes can connect to: expected one address and a "
                          "port, as in \"192.0.2.1:1\""))
        << text;
  }
  EXPECT_THAT(reachable_endpoint("host", "e").error().message, HasSubstr("there is no port"));
}

TEST(ConfigValues, BitRatesWithAnyCaseOfTheirUnit) {
  const auto parse = bit_rate_between(1'000'000, 100'000'000'000);
  EXPECT_EQ(parse("800Mbit").value(), 800'000'000u);
  EXPECT_EQ(parse("800mbit").value(), 800'000'000u);
  EXPECT_EQ(parse("1000KBIT").value(), 1'000'000u);
  EXPECT_EQ(parse("2.5Gbit").value(), 2'500'000'000u);
  EXPECT_EQ(parse("100gbit").value(), 100'000'000'000u);
  for (const char* text : {"", "Mbit", "800", "800M", "800MB", "-5Mbit", "+5Mbit", "1e3Mbit",
                           "nanMbit", "8 Mbit", "999kbit", "101Gbit", "99999999999999999999Gbit"}) {
    EXPECT_EQ(parse(text).error().message,
              "expected 1mbit to 100gbit (bits a second), such as \"800Mbit\"; found \"" +
                  std::string(text) + "\"");
  }
}

TEST(ConfigValues, AnAddressThatAnInterfaceMayHave) {
  EXPECT_EQ(interface_address("192.0.2.1").value(), "192.0.2.1");
  EXPECT_EQ(interface_address("5.1.1.1").value(), "5.1.1.1");
  EXPECT_EQ(interface_address("127.0.0.1").value(), "127.0.0.1");
  for (const char* text : {"", "eth0", "192.0.2.1:6003", "192.0.2", "0.0.0.0", "239.1.1.1",
                           "255.255.255.255", "::1"}) {
    EXPECT_THAT(interface_address(text).error().message,
                HasSubstr("is no IPv4 address that an interface of this node may have"))
        << text;
  }
}

TEST(ConfigValues, SharesAreOfAHundredPercent) {
  const auto parse = share_from(0.01);
  EXPECT_EQ(parse("1%").value(), 0.01);
  EXPECT_EQ(parse("12.5%").value(), 0.125);
  EXPECT_EQ(parse("100%").value(), 1);
  EXPECT_EQ(parse("0.9%").error().message,
            "expected a share from 1% to 100%, such as \"2.5%\"; found \"0.9%\"");
  for (const char* text : {"", "%", "5", "101%", "-1%", "x%", "5 %", "nan%", "5%%"}) {
    EXPECT_FALSE(parse(text)) << text;
  }
}

}  // namespace
}  // namespace mariner::config

#include "server/iscsi/text_exchange.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/server/iscsi/iscsi_testing.h"

namespace mariner::iscsi {
namespace {

class TextExchangeTest : public testing::Test {
 protected:
  TextExchange exchange(bool discovery) {
    return TextExchange({.limits = limits,
                         .directory = directory,
                         .initiator = "iqn.2026-11.test:host",
                         .target = discovery ? "" : std::string(TestDirectory::kName),
                         .discovery = discovery,
                         .account = "host1",
                         .addresses = {{"192.0.2.1:3260", 1}, {"[2001:db8::1]:3260", 2}}});
  }
  Result<TextExchange::Reply> ask(TextExchange& text, std::string_view pairs,
                                  std::uint32_t ttt = kReservedTag, bool final = true) {
    return text.step({.final = final, .itt = 1, .ttt = ttt}, bytes_of(pairs), parameters);
  }

  const std::string disk =
      keys({"TargetName=iqn.2026-11.org.mariner:disk", "TargetAddress=192.0.2.1:3260,1",
            "TargetAddress=[2001:db8::1]:3260,2"});
  NegotiationLimits limits;
  TestDirectory directory;
  SessionParameters parameters;
};

TEST_F(TextExchangeTest, DiscoveryTellsAll) {
  auto text = exchange(true);
  const auto reply = ask(text, keys({"SendTargets=All"}));
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->text, disk);
  EXPECT_TRUE(reply->header.final);
  EXPECT_EQ(reply->header.ttt, kReservedTag);
  EXPECT_EQ(directory.discovered_by, "host1");
}

TEST_F(TextExchangeTest, ANormalSessionTellsItsOwnTarget) {
  auto text = exchange(false);
  EXPECT_EQ(ask(text, keys({"SendTargets="}))->text, disk);
  EXPECT_EQ(ask(text, keys({"SendTargets=All"}))->text, keys({"SendTargets=Reject"}));
}

TEST_F(TextExchangeTest, ANormalSessionTellsOfNoOtherTarget) {
  directory.names.push_back("iqn.2026-11.org.mariner:other");
  auto text = exchange(false);
  EXPECT_EQ(ask(text, keys({"SendTargets=iqn.2026-11.org.mariner:other"}))->text, "");
  EXPECT_EQ(ask(text, keys({"SendTargets=iqn.2026-11.org.mariner:disk"}))->text, disk);
}

TEST_F(TextExchangeTest, OneTargetByName) {
  auto text = exchange(true);
  EXPECT_EQ(ask(text, keys({"SendTargets=iqn.2026-11.org.mariner:disk"}))->text, disk);
  EXPECT_EQ(ask(text, keys({"SendTargets=iqn.other"}))->text, "");
  EXPECT_EQ(ask(text, keys({"SendTargets="}))->text, keys({"SendTargets=Reject"}));
}

TEST_F(TextExchangeTest, ALongAnswerComesInParts) {
  directory.names.clear();
  for (int i = 0; i < 200; ++i) directory.names.push_back("iqn.x:" + std::to_string(i));
  auto text = exchange(true);
  parameters.send_segment_bytes_max = 512;
  auto reply = ask(text, keys({"SendTargets=All"}));
  std::string whole;
  int parts = 1;
  while (reply->header.continues) {
    EXPECT_FALSE(reply->header.final);
    EXPECT_NE(reply->header.ttt, kReservedTag);
    EXPECT_EQ(reply->text.size(), 512u);
    whole += reply->text;
    reply = ask(text, "", reply->header.ttt);
    ASSERT_TRUE(reply);
    ++parts;
  }
  whole += reply->text;
  EXPECT_TRUE(reply->header.final);
  EXPECT_GT(parts, 20);
  const auto pairs = parse_text(whole);
  EXPECT_FALSE(pairs) << "more pairs than we would take ourselves";
  EXPECT_EQ(static_cast<std::size_t>(std::count(whole.begin(), whole.end(), '\0')), 600u);
}

TEST_F(TextExchangeTest, ANewRequestDropsTheOldAnswer) {
  auto text = exchange(true);
  parameters.send_segment_bytes_max = 10;
  const auto old = ask(text, keys({"SendTargets=All"}));
  ASSERT_TRUE(old->header.continues);
  const auto other = ask(text, keys({"X-a=1"}));
  ASSERT_TRUE(other);
  EXPECT_EQ(other->text, keys({"X-a=NotUnderstood"}).substr(0, 10));
}

TEST_F(TextExchangeTest, AContinuedRequestIsAnsweredAtItsEnd) {
  auto text = exchange(true);
  auto reply = text.step({.continues = true, .itt = 1, .ttt = kReservedTag}, bytes_of("SendTar"),
                         parameters);
  ASSERT_TRUE(reply);
  EXPECT_TRUE(reply->text.empty());
  EXPECT_FALSE(reply->header.final);
  reply = ask(text, keys({"gets=All"}), reply->header.ttt);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->text, disk);
}

TEST_F(TextExchangeTest, RulesAreKept) {
  auto text = exchange(true);
  EXPECT_FALSE(ask(text, "SendTargets=All")) << "no final zero byte";
  EXPECT_FALSE(ask(text, keys({"SendTargets=All", "SendTargets=All"})));
  EXPECT_FALSE(ask(text, "", 77)) << "no such exchange";
}

TEST_F(TextExchangeTest, TheSegmentLengthMayChange) {
  auto text = exchange(false);
  EXPECT_EQ(ask(text, keys({"MaxRecvDataSegmentLength=4096"}))->text, "");
  EXPECT_EQ(parameters.send_segment_bytes_max, 4096u);
}

}  // namespace
}  // namespace mariner::iscsi

#include "server/peer/invitation_book.h"

#include <gtest/gtest.h>

#include <set>

#include "server/peer/invitation.h"

namespace mariner::peer {
namespace {

using namespace std::chrono_literals;

constexpr const char* kFrom = "192.0.2.7:5000";

std::string fault(InvitationBook& book, const std::string& secret, std::chrono::nanoseconds now) {
  const auto redeemed = book.redeem(secret, kFrom, now);
  if (redeemed) return "";
  EXPECT_EQ(redeemed.error().code, ErrorCode::kNotFound);
  return redeemed.error().message;
}

TEST(InvitationBook, ASecretIsGoodOnce) {
  InvitationBook book;
  const std::string secret = book.invite("n2", 0s).value();
  EXPECT_EQ(secret.size(), kSecretBytes);
  EXPECT_EQ(book.open(1s), 1u);
  EXPECT_EQ(book.redeem(secret, kFrom, 1s).value(), "n2");
  EXPECT_EQ(book.open(1s), 0u);
  EXPECT_NE(fault(book, secret, 2s).find("the invitation of n2 was used already"),
            std::string::npos);
}

TEST(InvitationBook, ItEndsAfterAnHour) {
  InvitationBook book;
  const std::string first = book.invite("n2", 10s).value();
  const std::string second = book.invite("n3", 10s).value();
  EXPECT_EQ(book.redeem(first, kFrom, 10s + 1h - 1ns).value(), "n2");
  EXPECT_NE(fault(book, second, 10s + 1h).find("has ended"), std::string::npos);
  EXPECT_EQ(book.open(10s + 1h), 0u);
}

TEST(InvitationBook, OfOneNodeOnlyTheLastIsGood) {
  InvitationBook book;
  const std::string first = book.invite("n2", 0s).value();
  const std::string second = book.invite("n2", 1s).value();
  EXPECT_NE(fault(book, first, 2s).find("invited again"), std::string::npos);
  EXPECT_EQ(book.redeem(second, kFrom, 2s).value(), "n2");
}

TEST(InvitationBook, AWrongSecretIsUnknown) {
  InvitationBook book;
  std::string secret = book.invite("n2", 0s).value();
  secret[3] = static_cast<char>(secret[3] ^ 1);
  EXPECT_NE(fault(book, secret, 1s).find("there is no such invitation"), std::string::npos);
  EXPECT_NE(fault(book, "", 1s).find("there is no such invitation"), std::string::npos);
  EXPECT_EQ(book.open(1s), 1u);
}

TEST(InvitationBook, WhoGuessesIsRefusedWithoutALook) {
  InvitationBook book({.throttle = {.failures_max = 3, .failures_per_s = 1}});
  const std::string secret = book.invite("n2", 0s).value();
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(book.redeem("guess", kFrom, 100s));
  const auto refused = book.redeem(secret, kFrom, 100s);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kBusy);
  // Others are not held up by it, nor is he later.
  EXPECT_EQ(book.open(100s), 1u);
  EXPECT_EQ(book.redeem(secret, kFrom, 102s).value(), "n2");
  const std::string other = book.invite("n3", 102s).value();
  for (int i = 0; i < 6; ++i) EXPECT_FALSE(book.redeem("guess", kFrom, 102s));
  EXPECT_EQ(book.redeem(other, "192.0.2.8:5000", 102s).value(), "n3");
}

TEST(InvitationBook, SoManyAndNoMore) {
  InvitationBook book({.open_max = 3});
  for (const auto* node : {"a", "b", "c"}) EXPECT_TRUE(book.invite(node, 0s));
  const auto refused = book.invite("d", 0s);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kLimit);
  EXPECT_TRUE(book.invite("b", 0s));  // in the place of the one before
  EXPECT_TRUE(book.invite("d", 1h));  // the others have ended
}

TEST(InvitationBook, WhatIsOverIsForgottenWhatWaitsIsNot) {
  InvitationBook book;
  const std::string waits = book.invite("waits", 0s).value();
  std::set<std::string> secrets{waits};
  for (int i = 0; i < 3000; ++i) secrets.insert(book.invite("again", 1s).value());
  EXPECT_EQ(secrets.size(), 3001u);
  EXPECT_EQ(book.open(2s), 2u);
  EXPECT_EQ(book.redeem(waits, kFrom, 2s).value(), "waits");
}

}  // namespace
}  // namespace mariner::peer

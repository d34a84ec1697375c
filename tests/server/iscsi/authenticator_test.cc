#include "server/iscsi/authenticator.h"

#include <gtest/gtest.h>

#include <array>

namespace mariner::iscsi {
namespace {

Result<void> step(std::string_view offered, TextWriter& answers) {
  NoAuthentication none;
  const std::array pairs{TextPair{.key = "AuthMethod", .value = offered}};
  return none.step(pairs, answers);
}

TEST(AuthenticatorTest, NoneIsChosenWhereItIsOffered) {
  TextWriter answers;
  EXPECT_TRUE(step("CHAP,None", answers));
  EXPECT_EQ(answers.text(), std::string("AuthMethod=None\0", 16));
}

TEST(AuthenticatorTest, TheRefusalNamesOfferAndRequirement) {
  TextWriter answers;
  const auto done = step("CHAP", answers);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "AuthMethod: offered CHAP, required None");
}

TEST(AuthenticatorTest, NothingNeedsToBeOffered) {
  NoAuthentication none;
  TextWriter answers;
  EXPECT_TRUE(none.step({}, answers));
  EXPECT_TRUE(none.satisfied());
  EXPECT_TRUE(none.handles("AuthMethod"));
  EXPECT_FALSE(none.handles("HeaderDigest"));
}

}  // namespace
}  // namespace mariner::iscsi

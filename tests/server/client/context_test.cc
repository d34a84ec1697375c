#include "server/client/context.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/server/client/zones.h"

namespace mariner::client {
namespace {

class ContextTest : public testing::Test {
 protected:
  std::istringstream in_;
  std::ostringstream out_;
  Console console_{.in = in_, .out = out_, .err = out_};
  ZoneOf zone_{"America/New_York"};
  Context context_{console_, zone_, [] { return VersionTime{1'000'000'000'000}; }, {}, {}};
};

TEST_F(ContextTest, AMomentHasSequenceLocalTimeAndUtc) {
  api::Moment moment;
  EXPECT_EQ(context_.moment(moment), "#0  before the first write");
  moment.set_sequence(7);
  moment.set_time_ns(1'795'181'525'000'000'001);
  moment.set_mark("pre");
  EXPECT_EQ(context_.moment(moment),
            "#7  2026-11-20T08:32:05.000000001-05:00  (2026-11-20T13:32:05.000000001Z)  mark pre");
  EXPECT_EQ(context_.short_time(0), "-");
  EXPECT_EQ(context_.short_time(moment.time_ns()), "2026-11-20 08:32:05");
}

TEST_F(ContextTest, TargetsWithAndWithoutATime) {
  const auto plain = context_.target("db1");
  ASSERT_TRUE(plain);
  EXPECT_FALSE(plain->has_time);
  EXPECT_TRUE(plain->at.now());
  const auto timed = context_.target("db1@-10s");
  ASSERT_TRUE(timed);
  EXPECT_TRUE(timed->has_time);
  EXPECT_EQ(timed->at.time_ns(), 990'000'000'000u);
  for (const auto* wrong : {"", "@now", "db1@", "db1@soon"})
    EXPECT_FALSE(context_.target(wrong)) << wrong;
}

TEST_F(ContextTest, JsonIsPrintedOnlyWithTheFlag) {
  EXPECT_FALSE(context_.print_json(api::MomentSpec{}));
  EXPECT_EQ(out_.str(), "");
  context_.flags.json = true;
  EXPECT_TRUE(context_.print_json(api::MomentSpec{}));
  EXPECT_EQ(out_.str(), "{\"schema\":1}\n");
}

TEST_F(ContextTest, ConfirmedByFlagOrByName) {
  EXPECT_FALSE(context_.confirmed("db1"));
  context_.flags.yes = true;
  EXPECT_TRUE(context_.confirmed("db1"));
  context_.flags.yes = false;
  console_.in_is_terminal = true;
  in_.str("db1\n");
  EXPECT_TRUE(context_.confirmed("db1"));
  EXPECT_FALSE(context_.confirmed("db1")) << "the input has ended";
}

TEST_F(ContextTest, GivesUpWhatTheProgramCan) {
  EXPECT_TRUE(context_.give_up({}));
  int folder = -1;
  context_.confine = [&](const SandboxRules& rules) -> Result<void> {
    folder = rules.folder;
    return Error{ErrorCode::kIo, "refused"};
  };
  EXPECT_EQ(context_.give_up({.folder = 7}).error().message, "refused");
  EXPECT_EQ(folder, 7);
}

}  // namespace
}  // namespace mariner::client

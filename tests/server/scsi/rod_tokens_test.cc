#include "server/scsi/rod_tokens.h"

#include <algorithm>

#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using std::chrono::seconds;
using testing::example_identity;

class RodTokensTest : public ::testing::Test {
 protected:
  Rod rod(std::uint8_t unit = 0) {
    Rod rod;
    rod.unit = {.type = 3, .designator = {0x30, unit}};
    rod.moment = moment_;
    rod.ranges = {{0, 512}};
    rod.bytes = 512;
    return rod;
  }
  RodTokenBytes make(std::uint8_t unit = 0, seconds inactivity = seconds(60)) {
    auto made = tokens_.create(rod(unit), example_identity(), 512, inactivity);
    EXPECT_TRUE(std::holds_alternative<RodTokenBytes>(made));
    return std::get<RodTokenBytes>(made);
  }
  // 0000: it is valid.
  std::uint16_t verdict(const RodTokenBytes& token) {
    const auto used = tokens_.use(token);
    const auto* wrong = std::get_if<Sense>(&used);
    if (wrong == nullptr) return 0;
    EXPECT_EQ(wrong->key, SenseKey::kIllegalRequest);
    return static_cast<std::uint16_t>(wrong->code);
  }

  std::chrono::nanoseconds now_{1};
  RodTokens tokens_{[this] { return now_; }};
  const std::shared_ptr<volume::Layer> moment_ =
      std::make_shared<test::RamLayer>(test::RamLayer::Options{.size_bytes = 4096});
};

TEST_F(RodTokensTest, StandsForWhatItWasMadeOf) {
  const RodTokenBytes token = make();
  const auto used = tokens_.use(token);
  const auto& use = std::get<std::shared_ptr<RodTokens::Use>>(used);
  EXPECT_EQ(use->rod().bytes, 512u);
  EXPECT_EQ(use->rod().moment, moment_);
}

TEST_F(RodTokensTest, SaysWhatIsWrong) {
  const RodTokenBytes token = make();
  const auto changed = [&](std::size_t byte) {
    RodTokenBytes other = token;
    other[byte] ^= 0x10;
    return verdict(other);
  };
  EXPECT_EQ(verdict(token), 0);
  EXPECT_EQ(changed(7), 0x230A);
  EXPECT_EQ(changed(16), 0x2305);
  EXPECT_EQ(changed(1), 0x2301);
  EXPECT_EQ(changed(15), 0x2304) << "no such identifier";
  for (std::size_t byte = 256; byte < 512; ++byte) EXPECT_EQ(changed(byte), 0x2304) << byte;
}

TEST_F(RodTokensTest, EndsWhenItIsNotUsedForSoLong) {
  const RodTokenBytes token = make(0, seconds(10));
  for (int i = 0; i < 3; ++i) {
    now_ += seconds(9);
    EXPECT_EQ(verdict(token), 0) << "a use begins its time anew";
  }
  now_ += seconds(10);
  tokens_.expire();
  EXPECT_EQ(tokens_.size(), 0u);
  EXPECT_EQ(moment_.use_count(), 1) << "its moment is let go";
  EXPECT_EQ(verdict(token), 0x2307);
}

TEST_F(RodTokensTest, DoesNotEndWhileItIsUsed) {
  const RodTokenBytes token = make(0, seconds(10));
  {
    const auto used = tokens_.use(token);
    now_ += seconds(100);
    tokens_.expire();
    EXPECT_EQ(tokens_.size(), 1u);
  }
  now_ += seconds(9);
  EXPECT_EQ(verdict(token), 0);
}

TEST_F(RodTokensTest, NoneLivesLongerThanAnHour) {
  const RodTokenBytes token = make(0, seconds(600));
  for (int i = 0; i < 11; ++i) {
    now_ += seconds(320);
    EXPECT_EQ(verdict(token), 0);
  }
  now_ += seconds(80);
  EXPECT_EQ(verdict(token), 0x2307);
}

TEST_F(RodTokensTest, IsDeletedOrCancelledWithAUse) {
  const RodTokenBytes first = make();
  const RodTokenBytes second = make();
  std::get<1>(tokens_.use(first))->delete_token();
  EXPECT_EQ(verdict(first), 0x2309);
  std::get<1>(tokens_.use(second))->cancel_token();
  EXPECT_EQ(verdict(second), 0x2308);
}

TEST_F(RodTokensTest, AUnitHasSoManyAndLosesTheOneThatWasNotUsedForLongest) {
  std::vector<RodTokenBytes> made;
  for (std::size_t i = 0; i < RodTokens::kOfUnitMax; ++i) {
    made.push_back(make());
    now_ += std::chrono::milliseconds(1);
  }
  EXPECT_EQ(verdict(made[0]), 0);
  const RodTokenBytes other = make(1);
  make();
  EXPECT_EQ(verdict(made[0]), 0);
  EXPECT_EQ(verdict(made[1]), 0x2308);
  EXPECT_EQ(verdict(other), 0) << "those of other units are left alone";
  EXPECT_EQ(tokens_.size(), RodTokens::kOfUnitMax + 1);
}

TEST_F(RodTokensTest, ThereIsABoundForAllUnits) {
  for (std::size_t i = 0; i < RodTokens::kMax; ++i) {
    make(static_cast<std::uint8_t>(i / RodTokens::kOfUnitMax));
  }
  const auto refused = tokens_.create(rod(200), example_identity(), 512, seconds(60));
  EXPECT_EQ(std::get<Sense>(refused).code, AdditionalSense{0x550D});
  now_ += seconds(60);
  EXPECT_EQ(verdict(make(200)), 0);
}

TEST_F(RodTokensTest, AreReportedWithoutTheirSecrets) {
  const RodTokenBytes token = make();
  make(1);
  const auto report = tokens_.report({0x30, 0});
  ASSERT_EQ(report.size(), 8 + kRodManagementBytes);
  EXPECT_EQ(testing::hex(std::span(report).first(8)), "00 00 00 64 00 00 00 00");
  EXPECT_TRUE(std::equal(report.begin() + 8, report.end(), token.begin()));
  EXPECT_EQ(tokens_.report({9}).size(), 8u);
}

TEST_F(RodTokensTest, AUseMayOutliveThem) {
  std::shared_ptr<RodTokens::Use> use;
  {
    RodTokens others([this] { return now_; });
    auto made = others.create(rod(), example_identity(), 512, seconds(60));
    use = std::get<1>(others.use(std::get<1>(made)));
  }
  EXPECT_EQ(use->rod().bytes, 512u);
}

}  // namespace
}  // namespace mariner::scsi

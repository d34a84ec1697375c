#include "server/scsi/self_test.h"

#include <gmock/gmock.h>

#include "tests/support/ram_layer.h"

namespace mariner::scsi {
namespace {

using ::testing::ElementsAre;
using Kind = SelfTest::Kind;
using Outcome = SelfTest::Outcome;

struct Tested {
  explicit Tested(std::uint64_t size_bytes = 1 << 20, bool shared = false)
      : layer(std::make_shared<test::RamLayer>(test::RamLayer::Options{.size_bytes = size_bytes})),
        test(std::make_shared<SelfTest>(
            SelfTest::Options{.layer = layer, .clock = [this] { return now; }, .shared = shared})) {
    layer->record_calls();
  }
  // Begins a test; the report is there when it has ended.
  std::shared_ptr<std::optional<SelfTest::Report>> begin(Kind kind) const {
    auto ended = std::make_shared<std::optional<SelfTest::Report>>();
    test->begin(kind, [ended](const SelfTest::Report& report) {
      EXPECT_FALSE(ended->has_value()) << "ended twice";
      *ended = report;
    });
    return ended;
  }

  std::chrono::nanoseconds now{0};
  std::shared_ptr<test::RamLayer> layer;
  std::shared_ptr<SelfTest> test;
};

TEST(SelfTest, AShortOneReadsTheFirstAndTheLastBlockAndSomeBetweenAndFlushes) {
  Tested tested;
  const auto ended = tested.begin(Kind::kBackgroundShort);
  ASSERT_TRUE(ended->has_value());
  EXPECT_EQ((*ended)->outcome, Outcome::kPassed);
  EXPECT_THAT(tested.layer->calls(),
              ElementsAre("read 0+4096", "read 348160+4096", "read 696320+4096",
                          "read 1044480+4096", "flush 0+0"));
}
TEST(SelfTest, AnExtendedOneReadsManyPlacesOnceEach) {
  Tested tested(8 << 20);
  EXPECT_EQ((*tested.begin(Kind::kForegroundExtended))->outcome, Outcome::kPassed);
  EXPECT_EQ(tested.layer->calls().size(), SelfTest::kExtendedPlaces + 1);
  EXPECT_EQ(tested.layer->calls()[1023], "read 8384512+4096");
}
TEST(SelfTest, ASmallMediumIsReadWhole) {
  Tested tested(8192);
  EXPECT_EQ((*tested.begin(Kind::kForegroundExtended))->outcome, Outcome::kPassed);
  EXPECT_THAT(tested.layer->calls(), ElementsAre("read 0+4096", "read 4096+4096", "flush 0+0"));
}
TEST(SelfTest, AMediumOfLessThanABlockIsReadAsFarAsItGoes) {
  Tested tested(1536);
  EXPECT_EQ((*tested.begin(Kind::kDefault))->outcome, Outcome::kPassed);
  EXPECT_THAT(tested.layer->calls(), ElementsAre("read 0+1536", "flush 0+0"));
}
TEST(SelfTest, PlacesOfAHugeMediumDoNotOverflow) {
  constexpr std::uint64_t kSize = 1ull << 62;
  Tested tested(kSize);
  EXPECT_EQ((*tested.begin(Kind::kForegroundExtended))->outcome, Outcome::kPassed);
  EXPECT_EQ(tested.layer->calls()[1023], "read " + std::to_string(kSize - 4096) + "+4096");
}
TEST(SelfTest, SaysWhereReadingFailed) {
  Tested tested;
  tested.layer->hold();
  const auto ended = tested.begin(Kind::kBackgroundShort);
  tested.layer->fail_next({ErrorCode::kCorrupt, "checksum"});
  tested.layer->release();
  ASSERT_TRUE(ended->has_value());
  EXPECT_EQ((*ended)->outcome, Outcome::kReadingFailed);
  EXPECT_EQ((*ended)->first_failure, 348160u / 512);
  EXPECT_EQ((*ended)->sense.key, SenseKey::kMediumError);
}
TEST(SelfTest, ABusyLayerIsNoFault) {
  Tested tested;
  tested.layer->fail_next({ErrorCode::kLimit, "busy"});
  EXPECT_EQ((*tested.begin(Kind::kBackgroundShort))->outcome, Outcome::kNotCompleted);
}
TEST(SelfTest, AnotherErrorIsOneOfTheHardware) {
  Tested tested;
  tested.layer->fail_next({ErrorCode::kUnavailable, "gone"});
  const auto ended = tested.begin(Kind::kBackgroundShort);
  EXPECT_EQ((*ended)->outcome, Outcome::kReadingFailed);
  EXPECT_EQ((*ended)->sense.key, SenseKey::kHardwareError);
}
TEST(SelfTest, AUnitThatWasLostToAnotherNodeIsNoFault) {
  for (const auto code : {ErrorCode::kUnavailable, ErrorCode::kStaleEpoch}) {
    Tested tested(1 << 20, true);
    tested.layer->fail_next({code, "gone"});
    const auto ended = tested.begin(Kind::kBackgroundShort);
    EXPECT_EQ((*ended)->outcome, Outcome::kNotCompleted);
    ASSERT_TRUE((*ended)->lost);
    EXPECT_EQ((*ended)->lost->code, code);
  }
}
TEST(SelfTest, OfASharedUnitFailsOfAnythingElse) {
  Tested tested(1 << 20, true);
  tested.layer->fail_next({ErrorCode::kIo, "bad"});
  const auto ended = tested.begin(Kind::kBackgroundShort);
  EXPECT_EQ((*ended)->outcome, Outcome::kReadingFailed);
  EXPECT_FALSE((*ended)->lost);
}
TEST(SelfTest, IsUnderWayUntilTheLayerHasAnswered) {
  Tested tested;
  tested.layer->hold();
  const auto ended = tested.begin(Kind::kForegroundShort);
  EXPECT_TRUE(tested.test->running());
  EXPECT_TRUE(tested.test->in_foreground());
  EXPECT_EQ(tested.test->progress(), 0u);
  EXPECT_EQ(tested.test->reports().front().outcome, Outcome::kRunning);
  EXPECT_EQ(tested.layer->held(), 1u) << "one operation at a time";
  tested.layer->release();
  EXPECT_FALSE(tested.test->running());
  EXPECT_TRUE(ended->has_value());
}
TEST(SelfTest, OneInTheBackgroundIsNotInTheForeground) {
  Tested tested;
  tested.layer->hold();
  const auto ended = tested.begin(Kind::kBackgroundExtended);
  EXPECT_TRUE(tested.test->running());
  EXPECT_FALSE(tested.test->in_foreground());
  tested.layer->release();
}
TEST(SelfTest, AnAbortedOneEndsAtOnceAndItsLastReadIsDropped) {
  Tested tested;
  tested.layer->hold();
  const auto ended = tested.begin(Kind::kBackgroundShort);
  tested.test->abort(Outcome::kAbortedByCommand);
  ASSERT_TRUE(ended->has_value());
  EXPECT_EQ((*ended)->outcome, Outcome::kAbortedByCommand);
  const auto next = tested.begin(Kind::kForegroundShort);
  tested.layer->release();
  EXPECT_EQ((*next)->outcome, Outcome::kPassed);
  EXPECT_EQ(tested.test->reports().size(), 2u);
}
TEST(SelfTest, AbortingNothingDoesNothing) {
  Tested tested;
  tested.test->abort(Outcome::kAbortedOtherwise);
  EXPECT_TRUE(tested.test->reports().empty());
}
TEST(SelfTest, ReportsAreTheTwentyYoungest) {
  Tested tested;
  for (int i = 0; i < 20; ++i) tested.begin(Kind::kBackgroundShort);
  tested.now = std::chrono::hours(3);
  tested.begin(Kind::kForegroundShort);
  const auto reports = tested.test->reports();
  ASSERT_EQ(reports.size(), SelfTest::kReportsMax);
  EXPECT_EQ(reports[0].kind, Kind::kForegroundShort);
  EXPECT_EQ(reports[0].hours, 3u);
  EXPECT_EQ(reports[19].kind, Kind::kBackgroundShort);
  tested.layer->hold();
  tested.begin(Kind::kBackgroundExtended);
  EXPECT_EQ(tested.test->reports().size(), SelfTest::kReportsMax);
  tested.layer->release();
  tested.test->clear();
  EXPECT_TRUE(tested.test->reports().empty());
}
TEST(SelfTest, TheDefaultOneIsNotReported) {
  Tested tested;
  EXPECT_EQ((*tested.begin(Kind::kDefault))->outcome, Outcome::kPassed);
  EXPECT_TRUE(tested.test->reports().empty());
}
TEST(SelfTest, HoursStopAtTheirLargestValue) {
  Tested tested;
  tested.now = std::chrono::hours(70'000);
  EXPECT_EQ((*tested.begin(Kind::kBackgroundShort))->hours, 0xFFFF);
}
TEST(SelfTest, OutlivesItsOwnerWhileItIsUnderWay) {
  Tested tested;
  tested.layer->hold();
  const auto ended = tested.begin(Kind::kBackgroundShort);
  tested.test.reset();
  tested.layer->release();
  EXPECT_TRUE(ended->has_value());
}

}  // namespace
}  // namespace mariner::scsi

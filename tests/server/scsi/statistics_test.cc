#include "server/scsi/statistics.h"

#include <gtest/gtest.h>

namespace mariner::scsi {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

struct Counted {
  nanoseconds now{0};
  Statistics statistics{[this] { return now; }};
  // One command of that length that takes one second.
  void command(Traffic traffic, bool succeeded = true, bool counted = true) {
    const auto work =
        statistics.begin({.counted = counted, .traffic = traffic, .blocks = 8, .bytes = 4096});
    now += seconds(1);
    statistics.end(work, succeeded);
  }
};

TEST(Statistics, CountCommandsBlocksAndTimes) {
  Counted counted;
  counted.command(Traffic::kRead);
  counted.command(Traffic::kRead);
  counted.command(Traffic::kWrite);
  EXPECT_EQ(counted.statistics.read_commands(),
            (Statistics::Commands{.count = 2, .blocks = 16, .time = seconds(2)}));
  EXPECT_EQ(counted.statistics.write_commands(),
            (Statistics::Commands{.count = 1, .blocks = 8, .time = seconds(1)}));
}
TEST(Statistics, ACommandThatFailsIsOneButMovesNothing) {
  Counted counted;
  counted.command(Traffic::kWrite, false);
  EXPECT_EQ(counted.statistics.write_commands(),
            (Statistics::Commands{.count = 1, .blocks = 0, .time = seconds(1)}));
  EXPECT_EQ(counted.statistics.writes().bytes, 0u);
}
TEST(Statistics, BytesAreCountedOfOtherCommandsToo) {
  Counted counted;
  counted.command(Traffic::kWrite, true, false);
  counted.command(Traffic::kVerify, true, false);
  EXPECT_EQ(counted.statistics.write_commands(), Statistics::Commands{});
  EXPECT_EQ(counted.statistics.writes().bytes, 4096u);
  EXPECT_EQ(counted.statistics.verifications().bytes, 4096u);
}
TEST(Statistics, IdleIsWhenNothingIsUnderWay) {
  Counted counted;
  counted.now += seconds(10);
  EXPECT_EQ(counted.statistics.idle_time(), seconds(10));
  const auto first = counted.statistics.begin({.traffic = Traffic::kRead});
  const auto second = counted.statistics.begin({.traffic = Traffic::kNone});
  counted.now += seconds(1);
  counted.statistics.end(first, true);
  counted.now += seconds(1);
  EXPECT_EQ(counted.statistics.idle_time(), seconds(10));
  counted.statistics.end(second, true);
  counted.now += seconds(5);
  EXPECT_EQ(counted.statistics.idle_time(), seconds(15));
}
TEST(Statistics, WorkThatWasNotBegunIsNotEnded) {
  Counted counted;
  counted.statistics.end({.counted = true, .traffic = Traffic::kRead, .bytes = 1}, true);
  EXPECT_EQ(counted.statistics.read_commands(), Statistics::Commands{});
  EXPECT_EQ(counted.statistics.reads(), Statistics::Medium{});
}
TEST(Statistics, ErrorsOfTheMediumAndOthers) {
  Counted counted;
  counted.statistics.failed(Traffic::kRead, {ErrorCode::kCorrupt, ""});
  counted.statistics.failed(Traffic::kWrite, {ErrorCode::kIo, ""});
  counted.statistics.failed(Traffic::kNone, {ErrorCode::kIo, ""});
  counted.statistics.failed(Traffic::kWrite, {ErrorCode::kUnavailable, ""});
  for (const auto code : {ErrorCode::kBusy, ErrorCode::kLimit, ErrorCode::kAborted,
                          ErrorCode::kNoSpace, ErrorCode::kReadOnly}) {
    counted.statistics.failed(Traffic::kWrite, {code, ""});
  }
  EXPECT_EQ(counted.statistics.reads().uncorrected_errors, 1u);
  EXPECT_EQ(counted.statistics.writes().uncorrected_errors, 1u);
  EXPECT_EQ(counted.statistics.other_errors(), 2u);
}
TEST(Statistics, AResetForgetsAllButWhatIsUnderWay) {
  Counted counted;
  counted.command(Traffic::kRead);
  counted.command(Traffic::kWrite);
  counted.command(Traffic::kVerify);
  counted.statistics.failed(Traffic::kNone, {ErrorCode::kUnavailable, ""});
  const auto work =
      counted.statistics.begin({.counted = true, .traffic = Traffic::kRead, .bytes = 512});
  counted.now += seconds(1);
  counted.statistics.reset();
  counted.now += seconds(1);
  counted.statistics.end(work, true);
  counted.now += seconds(1);
  EXPECT_EQ(counted.statistics.reads().bytes, 512u);
  EXPECT_EQ(counted.statistics.writes(), Statistics::Medium{});
  EXPECT_EQ(counted.statistics.verifications(), Statistics::Medium{});
  EXPECT_EQ(counted.statistics.other_errors(), 0u);
  EXPECT_EQ(counted.statistics.read_commands().count, 1u);
  EXPECT_EQ(counted.statistics.idle_time(), seconds(1));
}
TEST(Statistics, WithoutAClockThereAreNoTimes) {
  Statistics statistics(nullptr);
  EXPECT_FALSE(statistics.knows_times());
  statistics.end(statistics.begin({.counted = true, .traffic = Traffic::kRead, .bytes = 1}), true);
  EXPECT_EQ(statistics.reads().bytes, 1u);
  EXPECT_EQ(statistics.idle_time(), seconds(0));
}

}  // namespace
}  // namespace mariner::scsi

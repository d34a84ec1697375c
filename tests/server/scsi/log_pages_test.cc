#include "server/scsi/log_pages.h"

#include "proto/bytes.h"
#include "server/scsi/reply.h"
#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using std::chrono::nanoseconds;
using Control = LogSense::Control;

struct Logged {
  nanoseconds now{0};
  Statistics statistics{[this] { return now; }};
  std::shared_ptr<test::RamLayer> layer =
      std::make_shared<test::RamLayer>(test::RamLayer::Options{.size_bytes = 1 << 20});
  std::shared_ptr<SelfTest> self_test = std::make_shared<SelfTest>(
      SelfTest::Options{.layer = layer, .clock = [this] { return now; }});
  AdditionalSense exception = asc::kNone;

  void command(Traffic traffic, std::uint64_t blocks) {
    const auto work = statistics.begin({.counted = traffic != Traffic::kVerify,
                                        .traffic = traffic,
                                        .blocks = blocks,
                                        .bytes = blocks * 512});
    now += std::chrono::microseconds(7);
    statistics.end(work, true);
  }
  std::string sense(const LogSense& command) const {
    const auto result = log_sense(command, {statistics, *self_test, exception});
    if (const auto* wrong = std::get_if<Sense>(&result)) {
      return testing::outcome_of(check_condition(*wrong, SenseFormat::kFixed)).verdict();
    }
    const auto& data = std::get<std::vector<std::uint8_t>>(result);
    EXPECT_EQ(load_be<std::uint16_t>(&data[2]) + 4u, data.size());
    return testing::hex(data);
  }
  std::string select(const LogSelect& command) {
    const auto result = log_select(command, statistics);
    if (const auto* wrong = std::get_if<Sense>(&result)) {
      return testing::outcome_of(check_condition(*wrong, SenseFormat::kFixed)).verdict();
    }
    apply(std::get<LogReset>(result), statistics, *self_test);
    return "good";
  }
};

TEST(LogSense, SupportedPages) {
  EXPECT_EQ(Logged().sense({.page = 0x00}), "00 00 00 08 00 02 03 05 06 10 19 2f");
}
TEST(LogSense, SupportedPagesAndSubpages) {
  EXPECT_EQ(Logged().sense({.page = 0x00, .subpage = 0xFF}),
            "40 ff 00 12 00 00 00 ff 02 00 03 00 05 00 06 00 10 00 19 00 2f 00");
}
TEST(LogSense, EachSupportedPageExists) {
  const Logged logged;
  const auto list = testing::bytes(logged.sense({.page = 0x00}));
  for (std::size_t i = 5; i < list.size(); ++i) {
    const auto page = testing::bytes(logged.sense({.page = list[i]}));
    EXPECT_EQ(page[0], 0x80 | list[i]) << "DS: nothing is saved";
  }
}
TEST(LogSense, WithoutAClockThereIsNoPerformancePage) {
  const Statistics timeless(nullptr);
  const Logged logged;
  const LogState state{timeless, *logged.self_test};
  EXPECT_TRUE(std::holds_alternative<Sense>(log_sense({.page = 0x19}, state)));
  const auto list = log_sense({.page = 0x00}, state);
  EXPECT_EQ(testing::hex(std::get<1>(list)), "00 00 00 07 00 02 03 05 06 10 2f");
}

TEST(LogSense, ErrorCountersAreBytesAndUncorrectedErrors) {
  Logged logged;
  logged.command(Traffic::kWrite, 8);
  logged.statistics.failed(Traffic::kWrite, {ErrorCode::kIo, ""});
  EXPECT_EQ(logged.sense({.page = 0x02}),
            "82 00 00 18 00 05 20 08 00 00 00 00 00 00 10 00 00 06 20 08 00 00 00 00 00 00 00 01");
  logged.command(Traffic::kRead, 1);
  EXPECT_EQ(logged.sense({.page = 0x03}),
            "83 00 00 18 00 05 20 08 00 00 00 00 00 00 02 00 00 06 20 08 00 00 00 00 00 00 00 00");
  logged.command(Traffic::kVerify, 2);
  EXPECT_EQ(logged.sense({.page = 0x05}),
            "85 00 00 18 00 05 20 08 00 00 00 00 00 00 04 00 00 06 20 08 00 00 00 00 00 00 00 00");
}
TEST(LogSense, NonMediumErrors) {
  Logged logged;
  logged.statistics.failed(Traffic::kWrite, {ErrorCode::kUnavailable, ""});
  EXPECT_EQ(logged.sense({.page = 0x06}), "86 00 00 0c 00 00 20 08 00 00 00 00 00 00 00 01");
}
TEST(LogSense, GeneralStatisticsAndPerformance) {
  Logged logged;
  logged.now += std::chrono::microseconds(16);
  logged.command(Traffic::kRead, 5);
  logged.command(Traffic::kRead, 6);
  logged.command(Traffic::kWrite, 3);
  EXPECT_EQ(logged.sense({.page = 0x19}),
            "99 00 00 5c "
            "00 01 22 40 "
            "00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 01 "  // read and write commands
            "00 00 00 00 00 00 00 03 00 00 00 00 00 00 00 0b "  // blocks received, transmitted
            "00 00 00 00 00 00 00 0e 00 00 00 00 00 00 00 07 "  // intervals reading, writing
            "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "  // no priorities, no weights
            "00 02 22 08 00 00 00 00 00 00 00 10 "              // idle
            "00 03 23 08 00 00 00 06 00 00 00 01");             // an interval is 1 x 10^-6 s
}
TEST(LogSense, SelfTestResults) {
  Logged logged;
  logged.now = std::chrono::hours(2);
  logged.layer->fail_next({ErrorCode::kCorrupt, "checksum"});
  logged.self_test->begin(SelfTest::Kind::kBackgroundExtended, [](const auto&) {});
  logged.self_test->begin(SelfTest::Kind::kForegroundShort, [](const auto&) {});
  const std::string page = logged.sense({.page = 0x10});
  EXPECT_EQ(page.substr(0, 12), "90 00 01 90 ");
  EXPECT_EQ(page.substr(12, 60), "00 01 23 10 a0 00 00 02 ff ff ff ff ff ff ff ff 00 00 00 00 ");
  EXPECT_EQ(page.substr(72, 60), "00 02 23 10 45 00 00 02 00 00 00 00 00 00 00 00 03 11 00 00 ");
  EXPECT_EQ(page.substr(132, 60), "00 03 23 10 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 ");
}
TEST(LogSense, InformationalExceptions) {
  Logged logged;
  EXPECT_EQ(logged.sense({.page = 0x2F}), "af 00 00 08 00 00 23 04 00 00 ff 00");
  logged.exception = asc::kFailurePredictedInTest;
  EXPECT_EQ(logged.sense({.page = 0x2F}), "af 00 00 08 00 00 23 04 5d ff ff 00");
}

TEST(LogSense, OtherPagesAndSubpagesDoNotExist) {
  const Logged logged;
  EXPECT_EQ(logged.sense({.page = 0x0D}), "5/24/00@2.5");
  EXPECT_EQ(logged.sense({.page = 0x0C}), "5/24/00@2.5");
  EXPECT_EQ(logged.sense({.page = 0x3F}), "5/24/00@2.5");
  EXPECT_EQ(logged.sense({.page = 0x02, .subpage = 1}), "5/24/00@3");
  EXPECT_EQ(logged.sense({.page = 0x02, .subpage = 0xFF}), "5/24/00@3");
  EXPECT_EQ(logged.sense({.page = 0x00, .subpage = 1}), "5/24/00@3");
}
TEST(LogSense, DefaultValuesAreZero) {
  Logged logged;
  logged.command(Traffic::kWrite, 8);
  EXPECT_EQ(logged.sense({.control = Control::kDefaultCumulative, .page = 0x02}),
            "82 00 00 18 00 05 20 08 00 00 00 00 00 00 00 00 00 06 20 08 00 00 00 00 00 00 00 00");
}
TEST(LogSense, ThereAreNoThresholds) {
  const Logged logged;
  for (const auto control : {Control::kThresholds, Control::kDefaultThresholds}) {
    EXPECT_EQ(logged.sense({.control = control, .page = 0x02}), "5/24/00@2.7");
    EXPECT_EQ(logged.sense({.control = control, .page = 0x19}), "5/24/00@2.7");
    EXPECT_EQ(logged.sense({.control = control, .page = 0x2F}).substr(0, 2), "af")
        << "of a list the field is ignored";
    EXPECT_EQ(logged.sense({.control = control, .page = 0x00}).substr(0, 2), "00");
  }
}
TEST(LogSense, TheParameterPointerSaysWhereToBegin) {
  const Logged logged;
  EXPECT_EQ(logged.sense({.page = 0x02, .parameter_pointer = 6}),
            "82 00 00 0c 00 06 20 08 00 00 00 00 00 00 00 00");
  EXPECT_EQ(logged.sense({.page = 0x02, .parameter_pointer = 1}), logged.sense({.page = 0x02}));
  EXPECT_EQ(logged.sense({.page = 0x19, .parameter_pointer = 3}).substr(0, 11), "99 00 00 0c");
  EXPECT_EQ(logged.sense({.page = 0x02, .parameter_pointer = 7}), "5/24/00@5");
  EXPECT_EQ(logged.sense({.page = 0x10, .parameter_pointer = 0x15}), "5/24/00@5");
  EXPECT_EQ(logged.sense({.page = 0x00, .parameter_pointer = 1}), "5/24/00@5");
}

constexpr std::uint8_t kCounterPages[] = {0x02, 0x03, 0x05, 0x06, 0x19};

// Which pages are as they were at first.
std::string untouched(const Logged& logged) {
  std::string pages;
  for (const std::uint8_t page : kCounterPages) {
    if (logged.sense({.page = page}) ==
        logged.sense({.control = Control::kDefaultCumulative, .page = page})) {
      pages += testing::hex(std::array{page}) + " ";
    }
  }
  return pages + (logged.self_test->reports().empty() ? "10" : "");
}
void use(Logged& logged) {
  logged.command(Traffic::kRead, 1);
  logged.command(Traffic::kWrite, 1);
  logged.command(Traffic::kVerify, 1);
  logged.statistics.failed(Traffic::kWrite, {ErrorCode::kUnavailable, ""});
  logged.self_test->begin(SelfTest::Kind::kBackgroundShort, [](const auto&) {});
}

TEST(LogSelect, ResetsAllPages) {
  Logged logged;
  use(logged);
  EXPECT_EQ(untouched(logged), "");
  EXPECT_EQ(logged.select({.reset = true}), "good");
  EXPECT_EQ(untouched(logged), "02 03 05 06 19 10");
}
TEST(LogSelect, ResetsOnePage) {
  for (const std::uint8_t page : kCounterPages) {
    Logged logged;
    use(logged);
    EXPECT_EQ(logged.select({.reset = true, .page = page}), "good");
    EXPECT_EQ(untouched(logged), testing::hex(std::array{page}) + " ");
  }
  Logged logged;
  use(logged);
  EXPECT_EQ(logged.select({.reset = true, .page = 0x10}), "good");
  EXPECT_EQ(untouched(logged), "10");
}
TEST(LogSelect, DefaultCumulativeValuesAreForCountersOnly) {
  Logged logged;
  use(logged);
  EXPECT_EQ(logged.select({.control = Control::kDefaultCumulative}), "good");
  EXPECT_EQ(untouched(logged), "02 03 05 06 19 ");
}
TEST(LogSelect, WithoutResetNothingChanges) {
  Logged logged;
  use(logged);
  for (const auto control :
       {Control::kThresholds, Control::kCumulative, Control::kDefaultThresholds}) {
    EXPECT_EQ(logged.select({.control = control}), "good");
  }
  EXPECT_EQ(untouched(logged), "");
}
TEST(LogSelect, TheListsOfPagesHaveNothingToReset) {
  Logged logged;
  use(logged);
  EXPECT_EQ(logged.select({.reset = true, .subpage = 0xFF}), "good");
  EXPECT_EQ(untouched(logged), "");
}
TEST(LogSelect, OfAPageThatDoesNotExist) {
  Logged logged;
  EXPECT_EQ(logged.select({.reset = true, .page = 0x0D}), "5/24/00@2.5");
  EXPECT_EQ(logged.select({.reset = true, .page = 0x02, .subpage = 1}), "5/24/00@3");
}

}  // namespace
}  // namespace mariner::scsi

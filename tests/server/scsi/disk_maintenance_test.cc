// Starting and stopping, self-tests, logs and informational exceptions, as an initiator sees them.
#include <gmock/gmock.h>

#include "proto/bytes.h"
#include "server/scsi/disk.h"
#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using ::testing::ElementsAre;
using testing::Rig;

constexpr auto kStop = "1b 00 00 00 00 00";
constexpr auto kStart = "1b 00 00 00 01 00";
constexpr auto kRead = "28 00 00 00 00 00 00 00 01 00";
constexpr auto kRequestSense = "03 01 00 00 ff 00";
constexpr auto kSelfTestResults = "4d 00 50 00 00 00 00 00 18 00";

std::string block(char c, std::size_t count = 1) { return std::string(512 * count, c); }
std::string text_of(std::string_view hex) {
  const auto raw = testing::bytes(hex);
  return {raw.begin(), raw.end()};
}
// MODE SELECT of the informational exceptions page with this byte of flags and this method.
std::string set_exceptions(Rig& rig, std::string_view flags, std::string_view method) {
  const std::string list = "00 00 00 00 1c 0a " + std::string(flags) + " " + std::string(method) +
                           " 00 00 00 00 00 00 00 01";
  return rig.send("15 10 00 00 10 00", text_of(list)).verdict();
}
// The byte of the youngest self-test result with its code and its outcome.
std::string youngest_result(Rig& rig) {
  const auto data = rig.send(kSelfTestResults).data;
  return testing::hex(std::span(data).subspan(8, 1));
}

TEST(StartStopUnit, AStoppedUnitRefusesWhatNeedsTheMedium) {
  Rig rig;
  rig.layer->record_calls();
  EXPECT_EQ(rig.send(kStop).verdict(), "good");
  EXPECT_THAT(rig.layer->calls(), ElementsAre("flush 0+0"));
  for (const auto* cdb :
       {"00", kRead, "2a 00 00 00 00 00 00 00 00 00", "2f 00 00 00 00 00 00 00 01 00", "35", "34",
        "42 00 00 00 00 00 00 00 00 00", "9e 12", "83 00", "1d 04 00 00 00 00"}) {
    EXPECT_EQ(rig.send(cdb).verdict(), "2/04/02") << cdb;
  }
  EXPECT_THAT(rig.layer->calls(), ElementsAre("flush 0+0"));
}
TEST(StartStopUnit, AStoppedUnitAnswersTheRest) {
  Rig rig;
  rig.send(kStop);
  for (const auto* cdb : {"12 00 00 00 ff 00", "25", "1a 00 3f 00 ff 00", "5e 00", kStop,
                          "a3 0c 00 00 00 00 00 00 00 ff", "4d 00 40 00 00 00 00 00 ff"}) {
    EXPECT_EQ(rig.send(cdb).verdict(), "good") << cdb;
  }
}
TEST(StartStopUnit, AWrongCdbIsStillWrong) {
  Rig rig;
  rig.send(kStop);
  EXPECT_EQ(rig.send("28 00 00 00 ff ff 00 00 01 00").verdict(), "5/21/00i65535");
  EXPECT_EQ(rig.send("c0").verdict(), "5/20/00");
}
TEST(StartStopUnit, RequestSenseSaysThatItIsStopped) {
  Rig rig;
  rig.send(kStop);
  EXPECT_EQ(rig.send(kRequestSense).hex_data(), "72 02 04 02 00 00 00 00");
  rig.send(kStart);
  EXPECT_EQ(rig.send(kRequestSense).hex_data(), "72 00 00 00 00 00 00 00");
}
TEST(StartStopUnit, StartingMakesItReady) {
  Rig rig;
  rig.send(kStop);
  EXPECT_EQ(rig.send(kStart).verdict(), "good");
  EXPECT_EQ(rig.send(kRead).verdict(), "good");
  EXPECT_EQ(rig.send(kStart).verdict(), "good") << "twice";
}
TEST(StartStopUnit, IsForEveryInitiator) {
  Rig rig;
  const auto other = rig.attach("iqn.2026-11.org.example:other");
  rig.send(kStop);
  EXPECT_EQ(rig.send_from(other, kRead).verdict(), "2/04/02");
  rig.send_from(other, kStart);
  EXPECT_EQ(rig.send(kRead).verdict(), "good");
}
TEST(StartStopUnit, AResetStartsIt) {
  Rig rig;
  rig.send(kStop);
  rig.device->manage(TaskManagementFunction::kLogicalUnitReset, 0, rig.nexus, [] {});
  EXPECT_EQ(rig.send("00").verdict(), "6/29/03");
  EXPECT_EQ(rig.send("00").verdict(), "good");
}
TEST(StartStopUnit, WithoutFlush) {
  Rig rig;
  rig.layer->record_calls();
  EXPECT_EQ(rig.send("1b 00 00 00 04 00").verdict(), "good");
  EXPECT_TRUE(rig.layer->calls().empty());
  EXPECT_EQ(rig.send("00").verdict(), "2/04/02");
}
TEST(StartStopUnit, StopsWhenAllIsOnStableStorage) {
  Rig rig;
  rig.layer->hold();
  const auto stop = rig.start(kStop);
  EXPECT_FALSE(stop->has_value());
  EXPECT_EQ(rig.send("00").verdict(), "good");
  rig.layer->release();
  EXPECT_EQ(stop->value().verdict(), "good");
  EXPECT_EQ(rig.send("00").verdict(), "2/04/02");
}
TEST(StartStopUnit, ImmediatelyAnswersBefore) {
  Rig rig;
  rig.layer->hold();
  const auto stop = rig.start("1b 01 00 00 00 00");
  ASSERT_TRUE(stop->has_value());
  EXPECT_EQ(stop->value().verdict(), "good");
  rig.layer->release();
  EXPECT_EQ(rig.send("00").verdict(), "2/04/02");
}
TEST(StartStopUnit, ImmediatelyAnswersBehindItsFlush) {
  Rig rig;
  rig.layer->record_calls();
  std::vector<std::string> given;
  std::string next;
  rig.device->execute(rig.command("1b 01 00 00 00 00"), [&](const Response&) {
    given = rig.layer->calls();
    next = rig.send("00").verdict();
  });
  EXPECT_THAT(given, ElementsAre("flush 0+0"));
  EXPECT_EQ(next, "2/04/02");
}
TEST(StartStopUnit, AStopThatStillFlushesDoesNotUndoWhatStartsTheUnitAfterIt) {
  for (const bool by_reset : {false, true}) {
    Rig rig;
    rig.layer->hold();
    EXPECT_EQ(rig.send("1b 01 00 00 00 00").verdict(), "good");
    if (by_reset) {
      rig.device->manage(TaskManagementFunction::kLogicalUnitReset, 0, rig.nexus, [] {});
      EXPECT_EQ(rig.send("00").verdict(), "6/29/03");
    } else {
      EXPECT_EQ(rig.send(kStart).verdict(), "good");
    }
    rig.layer->release();
    EXPECT_EQ(rig.send("00").verdict(), "good");
  }
}
TEST(StartStopUnit, ThatCannotFlushDoesNotStop) {
  Rig rig;
  rig.layer->fail_next({ErrorCode::kIo, "bad"});
  EXPECT_EQ(rig.send(kStop).verdict(), "3/0C/00i0");
  EXPECT_EQ(rig.send("00").verdict(), "good");
}

TEST(SendDiagnostic, TheDefaultTestReadsAndFlushes) {
  Rig rig;
  rig.layer->record_calls();
  EXPECT_EQ(rig.send("1d 04").verdict(), "good");
  EXPECT_EQ(rig.layer->calls().size(), SelfTest::kShortPlaces + 1);
}
TEST(SendDiagnostic, ATestInTheForegroundThatFailsSaysSo) {
  Rig rig;
  rig.layer->fail_next({ErrorCode::kIo, "bad"});
  EXPECT_EQ(rig.send("1d 04").verdict(), "4/3E/03");
  rig.layer->fail_next({ErrorCode::kIo, "bad"});
  EXPECT_EQ(rig.send("1d a0").verdict(), "4/3E/03");
  EXPECT_EQ(youngest_result(rig), "a5");
  EXPECT_EQ(rig.send("1d c0").verdict(), "good");
  EXPECT_EQ(youngest_result(rig), "c0");
}
TEST(SendDiagnostic, ALayerThatIsTooBusyEndsIt) {
  Rig rig;
  rig.layer->fail_next({ErrorCode::kLimit, "busy"});
  EXPECT_EQ(rig.send("1d a0").verdict(), "B/00/00");
  EXPECT_EQ(youngest_result(rig), "a3");
}
TEST(SendDiagnostic, InTheForegroundItKeepsOthersOut) {
  Rig rig;
  const auto other = rig.attach("iqn.2026-11.org.example:other");
  rig.layer->hold();
  const auto test = rig.start("1d c0");
  EXPECT_FALSE(test->has_value());
  for (const auto* cdb : {"00", kRead, "1a 00 3f 00 ff 00", kStop, "5e 00", "1d 80", "83 00"}) {
    EXPECT_EQ(rig.send_from(other, cdb).verdict(), "2/04/09") << cdb;
  }
  EXPECT_EQ(rig.send_from(other, "12 00 00 00 ff 00").verdict(), "good");
  EXPECT_EQ(rig.send_from(other, "a0 00 00 00 00 00 00 00 00 10").verdict(), "good");
  EXPECT_EQ(rig.send_from(other, kRequestSense).hex_data(),
            "72 02 04 09 00 00 00 08 02 06 00 00 80 00 00 00");
  rig.layer->release();
  EXPECT_EQ(test->value().verdict(), "good");
  EXPECT_EQ(rig.send_from(other, kRead).verdict(), "good");
}
TEST(SendDiagnostic, InTheBackgroundOthersGoOn) {
  Rig rig;
  rig.layer->hold();
  EXPECT_EQ(rig.send("1d 40").verdict(), "good");
  EXPECT_EQ(rig.send("00").verdict(), "good");
  EXPECT_EQ(rig.send(kRequestSense).hex_data().substr(0, 11), "72 02 04 09");
  EXPECT_EQ(rig.send("1d 04").verdict(), "2/04/09");
  EXPECT_EQ(rig.send("1d 20").verdict(), "2/04/09");
  EXPECT_EQ(rig.send("1d 00").verdict(), "good");
  EXPECT_EQ(youngest_result(rig), "4f") << "in progress";
  rig.layer->release();
  EXPECT_EQ(youngest_result(rig), "40");
}
// As a session does with what waited for the answer.
TEST(SendDiagnostic, OneInTheBackgroundRunsWhenItIsAnswered) {
  Rig rig;
  rig.layer->hold();
  std::string next;
  rig.device->execute(rig.command("1d 40"), [&](const Response& response) {
    EXPECT_EQ(testing::outcome_of(response).verdict(), "good");
    next = rig.send("1d 20").verdict();
  });
  EXPECT_EQ(next, "2/04/09");
  EXPECT_EQ(youngest_result(rig), "4f");
  rig.layer->release();
  EXPECT_EQ(youngest_result(rig), "40");
}
TEST(SendDiagnostic, OneInTheBackgroundCanBeAborted) {
  Rig rig;
  EXPECT_EQ(rig.send("1d 80").verdict(), "5/24/00@1.7") << "there is none";
  rig.layer->hold();
  rig.send("1d 20");
  EXPECT_EQ(rig.send("1d 80").verdict(), "good");
  EXPECT_EQ(youngest_result(rig), "21");
  EXPECT_EQ(rig.send(kRequestSense).hex_data(), "72 00 00 00 00 00 00 00");
  rig.layer->release();
}
TEST(SendDiagnostic, StartStopUnitAbortsOneInTheBackground) {
  Rig rig;
  rig.layer->hold();
  rig.send("1d 20");
  EXPECT_EQ(rig.send(kStart).verdict(), "good");
  EXPECT_EQ(youngest_result(rig), "22");
  rig.layer->release();
}
TEST(SendDiagnostic, AResetAbortsEither) {
  for (const auto* cdb : {"1d 40", "1d c0"}) {
    Rig rig;
    rig.layer->hold();
    const auto test = rig.start(cdb);
    rig.device->manage(TaskManagementFunction::kLogicalUnitReset, 0, rig.nexus, [] {});
    EXPECT_TRUE(test->has_value());
    EXPECT_EQ(rig.send("00").verdict(), "6/29/03");
    EXPECT_EQ(youngest_result(rig).substr(1), "2");
    rig.layer->release();
  }
}
TEST(SendDiagnostic, AnAbortEndsOneInTheForegroundOfTheSameInitiator) {
  using enum TaskManagementFunction;
  for (const auto function : {kAbortTask, kAbortTaskSet, kClearTaskSet}) {
    Rig rig;
    const auto other = rig.attach("iqn.2026-11.org.example:other");
    rig.layer->hold();
    const auto test = rig.start("1d c0");
    rig.device->manage(kAbortTaskSet, 0, other, [] {});
    EXPECT_FALSE(test->has_value()) << "it is not the other's";
    rig.device->manage(function, 0, rig.nexus, [] {});
    ASSERT_TRUE(test->has_value());
    EXPECT_EQ(test->value().verdict(), "B/00/00");
    EXPECT_EQ(youngest_result(rig), "c2");
    rig.layer->release();
  }
}
TEST(SendDiagnostic, AnAbortOfATaskEndsOneInTheForegroundOfThatTaskOnly) {
  Rig rig;
  rig.layer->hold();
  rig.tag = TaskTag{7};
  const auto test = rig.start("1d c0");
  rig.device->abort_task(0, TaskTag{8}, rig.nexus, [] {});
  EXPECT_FALSE(test->has_value());
  rig.device->abort_task(0, TaskTag{7}, rig.nexus, [] {});
  ASSERT_TRUE(test->has_value());
  EXPECT_EQ(test->value().verdict(), "B/00/00");
  rig.tag.reset();
  const auto another = rig.start("1d c0");
  rig.device->abort_task(0, TaskTag{8}, rig.nexus, [] {});
  EXPECT_TRUE(another->has_value()) << "it may be the one";
  rig.layer->release();
}
// Whoever waits for it may send the next command from within.
TEST(SendDiagnostic, WhoHearsThatATestWasEndedFindsThatDone) {
  using enum TaskManagementFunction;
  for (const auto& [function, verdict] : {std::pair{kLogicalUnitReset, "6/29/03"},
                                          {kTargetReset, "6/29/02"},
                                          {kClearTaskSet, "6/2F/00"}}) {
    Rig rig;
    const auto other = rig.attach("iqn.2026-11.org.example:other");
    rig.layer->hold();
    std::string next;
    rig.device->execute(rig.command("1d c0"),
                        [&](const Response&) { next = rig.send("00").verdict(); });
    rig.device->manage(function, 0, other, [] {});
    EXPECT_EQ(next, verdict);
    rig.layer->release();
  }
}
TEST(SendDiagnostic, AnAbortLeavesOneInTheBackgroundAlone) {
  Rig rig;
  rig.layer->hold();
  rig.send("1d 40");
  rig.device->manage(TaskManagementFunction::kAbortTaskSet, 0, rig.nexus, [] {});
  EXPECT_EQ(youngest_result(rig), "4f");
  rig.layer->release();
}
TEST(SendDiagnostic, OnlyTheListOfPagesCanBeAskedFor) {
  Rig rig;
  EXPECT_EQ(rig.send("1d 10 00 00 04 00", text_of("00 00 00 00")).verdict(), "good");
  EXPECT_EQ(rig.send("1c 00 00 00 ff 00").hex_data(), "00 00 00 01 00");
  EXPECT_EQ(rig.send("1c 01 00 00 04 00").hex_data(), "00 00 00 01");
  EXPECT_EQ(rig.send("1d 10 00 00 04 00", text_of("40 00 00 00")).verdict(), "5/26/00@p0");
  EXPECT_EQ(rig.send("1d 10 00 00 04 00", text_of("00 00")).verdict(), "5/1A/00");
  EXPECT_EQ(rig.send("1d 10 00 00 06 00", text_of("00 00 00 02 00 00")).verdict(), "5/1A/00");
}

// "reads writes | blocks transmitted, received" of the General Statistics and Performance page.
std::string commands_of(Rig& rig) {
  const auto data = rig.send("4d 00 59 00 00 00 00 00 ff 00").data;
  const auto field = [&](std::size_t i) {
    return std::to_string(load_be<std::uint64_t>(&data[8 + 8 * i]));
  };
  return field(0) + " " + field(1) + " | " + field(3) + " " + field(2);
}
// "bytes errors" of an error counter page.
std::string errors_of(Rig& rig, std::string_view page) {
  const auto data = rig.send("4d 00 4" + std::string(page) + " 00 00 00 00 00 ff 00").data;
  return std::to_string(load_be<std::uint64_t>(&data[8])) + " " +
         std::to_string(load_be<std::uint64_t>(&data[20]));
}

TEST(Counting, CommandsAreThoseOfTheStandardsTable) {
  Rig rig;
  const std::string one = block('a');
  rig.send("28 00 00 00 00 00 00 00 02 00");
  rig.send("a8 00 00 00 00 00 00 00 00 03");
  rig.send("88 00 00 00 00 00 00 00 00 00 00 00 00 01");
  EXPECT_EQ(commands_of(rig), "3 0 | 6 0");
  rig.send("2a 00 00 00 00 00 00 00 02 00", block('a', 2));
  rig.send("2e 00 00 00 00 00 00 00 01 00", one);
  rig.send("8a 00 00 00 00 00 00 00 00 00 00 00 00 01", one);
  rig.send("42 00 00 00 00 00 00 00 18 00", std::string("\0\x16\0\x10", 4) + std::string(20, '\0'));
  EXPECT_EQ(commands_of(rig), "3 4 | 6 4");
  rig.send("08 00 00 00 01 00");
  rig.send("0a 00 00 00 01 00", one);
  rig.send("89 00 00 00 00 00 00 00 00 00 00 00 00 01", one + one);
  rig.send("8b 00 00 00 00 00 00 00 00 00 00 00 00 01", one);
  rig.send("41 00 00 00 00 00 00 00 01 00", one);
  rig.send("2f 00 00 00 00 00 00 00 01 00");
  EXPECT_EQ(commands_of(rig), "3 4 | 6 4") << "the others are not of the table";
}
TEST(Counting, BytesAndMediumErrorsStandByWhatWasDone) {
  Rig rig;
  rig.send("28 00 00 00 00 00 00 00 02 00");
  rig.send("2a 00 00 00 00 00 00 00 03 00", block('a', 3));
  rig.send("2f 00 00 00 00 00 00 00 04 00");
  for (const auto* cdb : {"28 00 00 00 00 00 00 00 01 00", "2f 00 00 00 00 00 00 00 01 00", "35"}) {
    rig.layer->fail_next({ErrorCode::kIo, "bad"});
    rig.send(cdb);
  }
  EXPECT_EQ(errors_of(rig, "3"), "1024 1");
  EXPECT_EQ(errors_of(rig, "2"), "1536 1");
  EXPECT_EQ(errors_of(rig, "5"), "2048 1");
}
TEST(Counting, AFailureThatIsNotOfTheMediumStandsApart) {
  Rig rig;
  for (const auto code : {ErrorCode::kUnavailable, ErrorCode::kLimit, ErrorCode::kNoSpace}) {
    rig.layer->fail_next({code, "no"});
    rig.send("2a 00 00 00 00 00 00 00 01 00", block('a'));
  }
  EXPECT_EQ(errors_of(rig, "2"), "0 0");
  EXPECT_EQ(rig.send("4d 00 46 00 00 00 00 00 ff 00").hex_data(),
            "86 00 00 0c 00 00 20 08 00 00 00 00 00 00 00 01");
}
TEST(Counting, OfAnUnmapThatFailsInOneDescriptor) {
  Rig rig;
  rig.layer->fail_next({ErrorCode::kIo, "bad"});
  std::string list = std::string("\0\x26\0\x20", 4) + std::string(36, '\0');
  list[8 + 11] = 1;
  list[24 + 11] = 1;
  EXPECT_EQ(rig.send("42 00 00 00 00 00 00 00 28 00", list).verdict(), "3/0C/00i0");
  EXPECT_EQ(commands_of(rig), "0 1 | 0 0");
  EXPECT_EQ(errors_of(rig, "2"), "0 1");
}

TEST(LogSelectCommand, IsToldToTheOthers) {
  Rig rig;
  const auto other = rig.attach("iqn.2026-11.org.example:other");
  rig.send(kRead);
  EXPECT_EQ(rig.send("4c 00 40 00 00 00 00 00 00").verdict(), "good");
  EXPECT_EQ(rig.send_from(other, "00").verdict(), "good") << "nothing has changed";
  EXPECT_EQ(rig.send("4c 02 c0 00 00 00 00 00 00").verdict(), "good");
  EXPECT_EQ(rig.send("00").verdict(), "good");
  EXPECT_EQ(rig.send_from(other, "00").verdict(), "6/2A/02");
  EXPECT_EQ(load_be<std::uint64_t>(&rig.send("4d 00 43 00 00 00 00 00 ff 00").data[8]), 0u);
}
TEST(LogSelectCommand, OfAPageThatDoesNotExistTellsNobody) {
  Rig rig;
  const auto other = rig.attach("iqn.2026-11.org.example:other");
  EXPECT_EQ(rig.send("4c 02 cd 00 00 00 00 00 00").verdict(), "5/24/00@2.5");
  EXPECT_EQ(rig.send_from(other, "00").verdict(), "good");
}
TEST(LogSenseCommand, IsCutToTheAllocationLength) {
  Rig rig;
  EXPECT_EQ(rig.send("4d 00 40 00 00 00 00 00 04").hex_data(), "00 00 00 08");
  EXPECT_EQ(rig.send("4d 00 40 00 00 00 00 00 00").hex_data(), "");
  EXPECT_EQ(rig.send("4d 00 4d 00 00 00 00 00 04").verdict(), "5/24/00@2.5");
}
TEST(LogSenseCommand, AResetReturnsCountersToTheirDefaults) {
  Rig rig;
  rig.send(kRead);
  rig.device->manage(TaskManagementFunction::kLogicalUnitReset, 0, rig.nexus, [] {});
  EXPECT_EQ(rig.send("00").verdict(), "6/29/03");
  EXPECT_EQ(load_be<std::uint64_t>(&rig.send("4d 00 43 00 00 00 00 00 ff 00").data[8]), 0u);
}

TEST(InformationalExceptions, ATestIsToldOnRequest) {
  Rig rig;
  EXPECT_EQ(set_exceptions(rig, "04", "06"), "good");
  EXPECT_EQ(rig.send("00").verdict(), "good");
  EXPECT_EQ(rig.send(kRequestSense).hex_data(), "72 00 5d ff 00 00 00 00");
  EXPECT_EQ(rig.send("4d 00 6f 00 00 00 00 00 ff 00").hex_data(),
            "af 00 00 08 00 00 23 04 5d ff ff 00");
  EXPECT_EQ(set_exceptions(rig, "00", "06"), "good");
  EXPECT_EQ(rig.send(kRequestSense).hex_data(), "72 00 00 00 00 00 00 00");
}
TEST(InformationalExceptions, ATestIsToldAsAnAttentionOfEverybodyOnce) {
  Rig rig;
  const auto other = rig.attach("iqn.2026-11.org.example:other");
  EXPECT_EQ(set_exceptions(rig, "04", "02"), "good");
  EXPECT_EQ(rig.send("00").verdict(), "6/5D/FF");
  EXPECT_EQ(rig.send("00").verdict(), "good");
  EXPECT_EQ(rig.send_from(other, "00").verdict(), "6/2A/01");
  EXPECT_EQ(rig.send_from(other, "00").verdict(), "6/5D/FF");
  EXPECT_EQ(set_exceptions(rig, "04", "02"), "good");
  EXPECT_EQ(rig.send("00").verdict(), "good");
  EXPECT_EQ(rig.send(kRequestSense).hex_data(), "72 00 00 00 00 00 00 00");
}
TEST(InformationalExceptions, ATestThatIsNotReportedStandsInTheLog) {
  Rig rig;
  EXPECT_EQ(set_exceptions(rig, "04", "00"), "good");
  EXPECT_EQ(rig.send("00").verdict(), "good");
  EXPECT_EQ(rig.send(kRequestSense).hex_data(), "72 00 00 00 00 00 00 00");
  EXPECT_EQ(rig.send("4d 00 6f 00 00 00 00 00 ff 00").hex_data().substr(24, 5), "5d ff");
}
TEST(InformationalExceptions, AFailedTestInTheBackgroundIsToldIfThatIsWanted) {
  Rig rig;
  rig.layer->fail_next({ErrorCode::kIo, "bad"});
  EXPECT_EQ(rig.send("1d 20").verdict(), "good");
  EXPECT_EQ(rig.send(kRequestSense).hex_data(), "72 00 00 00 00 00 00 00") << "EBACKERR is 0";
  EXPECT_EQ(set_exceptions(rig, "02", "06"), "good");
  EXPECT_EQ(rig.send(kRequestSense).hex_data(), "72 00 0b 04 00 00 00 00");
  EXPECT_EQ(set_exceptions(rig, "02", "02"), "good");
  EXPECT_EQ(rig.send("00").verdict(), "6/0B/04");
  EXPECT_EQ(rig.send("1d 20").verdict(), "good");
  EXPECT_EQ(rig.send("00").verdict(), "good") << "the last one passed";
  rig.layer->fail_next({ErrorCode::kIo, "bad"});
  EXPECT_EQ(rig.send("1d 20").verdict(), "good");
  EXPECT_EQ(rig.send("00").verdict(), "6/0B/04");
}

}  // namespace
}  // namespace mariner::scsi

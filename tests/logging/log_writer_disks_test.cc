// What becomes of the log writer's disks that fail, hang, come and go, and of what was on its way
// to them.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "logging/log_writer.h"
#include "tests/logging/array_rig.h"

namespace mariner::logging {
namespace {

using namespace std::chrono_literals;
using test::ArrayRig;
using test::FaultyDisk;
using test::record_of;
using test::Removal;
using Remains = FaultyDisk::Remains;
using State = LogWriter::DiskState;

// ---- a disk that fails --------------------------------------------------------------------------

TEST(LogWriterArray, ADiskThatFailsTwiceIsTakenOutAndItsRecordsAreDurableElsewhere) {
  for (const Remains remains : {Remains::kNothing, Remains::kSomeSectors, Remains::kEverything}) {
    ArrayRig rig({.delay_max = 200us});
    ASSERT_TRUE(rig.open());
    rig.append_now(record_of(1, 1));
    rig.executor.run_until_idle();
    rig.disks[0]->fail_writes(SIZE_MAX, remains);
    for (std::uint64_t i = 2; i <= 40; ++i) {
      rig.append(record_of(1, i));
      rig.executor.advance(30us);
    }
    rig.executor.run_until_idle();
    EXPECT_EQ(rig.outcomes.size(), 40u);
    std::uint64_t last = 0;
    for (std::size_t i = 1; i < rig.outcomes.size(); ++i) {
      const auto& outcome = rig.outcomes[i];
      ASSERT_TRUE(outcome.result.has_value());
      EXPECT_EQ(outcome.result->disk, 1);
      // The stragglers of disk 0 go before what waits, so that order is kept but for those.
      last = std::max(last, outcome.record.sequence.value);
    }
    EXPECT_EQ(last, 40u);
    EXPECT_EQ(rig.reports_text(), "0:failed");
    EXPECT_EQ(rig.reports[0].error.code, ErrorCode::kIo);
    EXPECT_EQ(rig.writer().state_of(0), State::kFailed);
    EXPECT_EQ(rig.writer().state_of(1), State::kGood);
    EXPECT_FALSE(rig.writer().failed());
    EXPECT_EQ(rig.writer().ordinal_frontier(), 41u);
    rig.disks[0]->fail_writes(0, remains);
    rig.reopened();
    ASSERT_EQ(rig.visited.size(), 40u) << "each once";
    for (std::size_t i = 0; i < 40; ++i) {
      EXPECT_EQ(rig.visited[i].record.sequence.value, i + 1);
      EXPECT_EQ(rig.visited[i].record.ordinal, i + 1) << "under the ordinals of the first try";
    }
    EXPECT_EQ(rig.recovered.next_ordinal, 41u);
    EXPECT_TRUE(rig.recovered.damage.empty());
  }
}

TEST(LogWriterArray, OneFailureSparesTheDisk) {
  ArrayRig rig;
  ASSERT_TRUE(rig.open());
  rig.disks[0]->fail_writes(1, Remains::kEverything);
  rig.append_now(record_of(1, 1));
  EXPECT_EQ(rig.outcomes.size(), 1u);
  EXPECT_EQ(rig.reports_text(), "");
  rig.disks[1]->hold();
  rig.append_now(record_of(1, 2));
  rig.append_now(record_of(1, 3));
  rig.disks[1]->release();
  EXPECT_EQ(rig.outcomes.size(), 3u);
  EXPECT_EQ(rig.reopened(), "|1 2 3");
}

TEST(LogWriterArray, TheArrayHasFailedWhenItsLastDiskHas) {
  ArrayRig rig({.disks = 3});
  ASSERT_TRUE(rig.open());
  rig.append_now(record_of(1, 1));
  for (const auto& disk : rig.disks) disk->fail_writes(SIZE_MAX, Remains::kNothing);
  rig.append(record_of(1, 2));
  rig.append(record_of(1, 3), Urgency::kEssential);
  rig.executor.run_until_idle();
  EXPECT_EQ(rig.outcomes_text(), "1:ok@0 2:io 3:io");
  EXPECT_TRUE(rig.writer().failed());
  EXPECT_TRUE(rig.writer().idle());
  EXPECT_EQ(rig.reports.size(), 3u);
  EXPECT_EQ(rig.writer().ordinal_frontier(), 2u) << "what became of them, recovery finds out";
  rig.append_now(record_of(1, 4));
  EXPECT_EQ(rig.outcomes_text(), "1:ok@0 2:io 3:io 4:io");
  for (const auto& disk : rig.disks) disk->fail_writes(0, Remains::kNothing);
  EXPECT_EQ(rig.reopened(), "|1");
}

// ---- a disk that hangs --------------------------------------------------------------------------

class HangingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(rig_.open());
    rig_.append_now(record_of(1, 1));
    rig_.disks[0]->hold();
    rig_.append(record_of(1, 2));
    rig_.append(record_of(2, 1));
    rig_.executor.run_ready();
    ASSERT_EQ(rig_.outcomes_text(), "1:ok@0");
  }
  ArrayRig rig_{{.writer = {.t_fail = 1s}}};
};

TEST_F(HangingTest, ItsRecordsAreWrittenElsewhere) {
  rig_.executor.advance(900ms);
  EXPECT_EQ(rig_.outcomes_text(), "1:ok@0") << "not before t_fail";
  EXPECT_EQ(rig_.reports_text(), "");
  rig_.executor.advance(600ms);
  EXPECT_EQ(rig_.outcomes_text(), "1:ok@0 2:ok@1 1:ok@1");
  EXPECT_EQ(rig_.reports_text(), "0:hanging");
  EXPECT_EQ(rig_.writer().state_of(0), State::kHanging);
  EXPECT_EQ(rig_.writer().ordinal_frontier(), 4u);
  EXPECT_FALSE(rig_.writer().idle()) << "its batch is still on its way";
  EXPECT_TRUE(rig_.readable(record_of(1, 2), *rig_.outcomes[1].result));
  // More goes to the other disk alone, and the clock may turn for long.
  rig_.append_now(record_of(1, 3));
  rig_.executor.advance(1h);
  EXPECT_EQ(rig_.outcomes_text(), "1:ok@0 2:ok@1 1:ok@1 3:ok@1");
}

TEST_F(HangingTest, WhenItComesBackItIsUsedAgainAndNothingIsSaidTwice) {
  rig_.executor.advance(2s);
  rig_.disks[0]->release();
  rig_.executor.run_ready();
  EXPECT_EQ(rig_.reports_text(), "0:hanging 0:good");
  EXPECT_EQ(rig_.outcomes.size(), 3u);
  EXPECT_TRUE(rig_.writer().idle());
  const Removal removal(rig_, 1);
  rig_.append_now(record_of(1, 3));
  EXPECT_EQ(rig_.outcomes_text(), "1:ok@0 2:ok@1 1:ok@1 3:ok@0");
  EXPECT_EQ(rig_.reopened(), "|1 2 1 3") << "each once, although 2 and 1 stand there twice";
  EXPECT_EQ(rig_.recovered.batches, 4u);
}

TEST_F(HangingTest, APowerCutMayLeaveBothCopiesOrOne) {
  rig_.executor.advance(2s);
  ASSERT_EQ(rig_.outcomes.size(), 3u);
  rig_.crash();
  EXPECT_EQ(rig_.reopened(), "|1 2 1");
}

TEST_F(HangingTest, WhatFailsInTheEndIsTakenBackAndTheDiskGoesOn) {
  rig_.executor.advance(2s);
  rig_.disks[0]->fail_writes(1, Remains::kEverything);
  rig_.disks[0]->release();
  rig_.executor.run_ready();
  EXPECT_EQ(rig_.reports_text(), "0:hanging 0:good");
  const Removal removal(rig_, 1);
  rig_.append_now(record_of(1, 3));
  EXPECT_EQ(rig_.outcomes_text(), "1:ok@0 2:ok@1 1:ok@1 3:ok@0");
  EXPECT_EQ(rig_.reopened(), "|1 2 1 3");
}

TEST_F(HangingTest, WhenTheOtherFailsMeanwhileRecordsWaitForIt) {
  rig_.executor.advance(2s);
  rig_.disks[1]->fail_writes(SIZE_MAX, Remains::kNothing);
  rig_.append_now(record_of(1, 3));
  EXPECT_EQ(rig_.outcomes.size(), 3u);
  EXPECT_FALSE(rig_.writer().failed());
  rig_.disks[0]->release();
  rig_.executor.run_ready();
  EXPECT_EQ(rig_.outcomes_text(), "1:ok@0 2:ok@1 1:ok@1 3:ok@0");
  EXPECT_EQ(rig_.reports_text(), "0:hanging 1:failed 0:good");
  rig_.disks[1]->fail_writes(0, Remains::kNothing);
  EXPECT_EQ(rig_.reopened(), "|1 2 1 3");
}

TEST_F(HangingTest, ADiskThatIsBeingRemovedIsNotWaitedForEither) {
  const Removal removal(rig_, 0);
  rig_.executor.advance(2s);
  EXPECT_EQ(rig_.outcomes_text(), "1:ok@0 2:ok@1 1:ok@1");
  EXPECT_EQ(removal.text(), "") << "its batch is still on its way";
  rig_.disks[0]->release();
  rig_.executor.run_ready();
  EXPECT_EQ(removal.text(), "ok");
  EXPECT_EQ(rig_.reopened(), "|1 2 1");
}

TEST_F(HangingTest, AHangingDiskCanBeRemoved) {
  rig_.executor.advance(2s);
  const Removal removal(rig_, 0);
  rig_.append_now(record_of(1, 3));
  EXPECT_EQ(removal.text(), "");
  rig_.disks[0]->release();
  rig_.executor.run_ready();
  EXPECT_EQ(removal.text(), "ok");
  rig_.disks[1]->hold();
  rig_.append_now(record_of(1, 4));
  rig_.append_now(record_of(1, 5));
  EXPECT_EQ(rig_.disks[0]->in_flight(), 0u);
  rig_.disks[1]->release();
  EXPECT_EQ(rig_.reopened(), "|1 2 1 3 4 5");
}

TEST(LogWriterArray, ADiskAloneIsWaitedFor) {
  ArrayRig rig({.disks = 1, .writer = {.t_fail = 1s}});
  ASSERT_TRUE(rig.open());
  rig.disks[0]->hold();
  rig.append_now(record_of(1, 1));
  rig.executor.advance(1h);
  EXPECT_EQ(rig.outcomes_text(), "");
  EXPECT_EQ(rig.reports_text(), "");
  rig.disks[0]->release();
  EXPECT_EQ(rig.outcomes_text(), "1:ok@0");
}

TEST(LogWriterArray, OfTwoDisksThatHangOneIsKept) {
  ArrayRig rig({.writer = {.t_fail = 1s}});
  ASSERT_TRUE(rig.open());
  for (const auto& disk : rig.disks) disk->hold();
  rig.append_now(record_of(1, 1));
  rig.append_now(record_of(1, 2));
  rig.executor.advance(10s);
  EXPECT_EQ(rig.reports.size(), 1u);
  EXPECT_EQ(rig.outcomes_text(), "");
  for (const auto& disk : rig.disks) disk->release();
  rig.executor.run_until_idle();
  EXPECT_EQ(rig.outcomes.size(), 2u);
  EXPECT_EQ(rig.reopened(), "|1 2");
}

// ---- removal ------------------------------------------------------------------------------------

TEST(LogWriterArray, TheLastDiskThatWorksIsNotRemoved) {
  ArrayRig rig;
  ASSERT_TRUE(rig.open());
  const Removal unknown(rig, 9);
  EXPECT_EQ(unknown.text(), "not-found");
  const Removal first(rig, 0);
  const Removal last(rig, 1);
  EXPECT_EQ(last.text(), "busy");
  rig.executor.run_ready();
  EXPECT_EQ(first.text(), "ok");
  const Removal again(rig, 0);
  EXPECT_EQ(again.text(), "not-found");
  const Removal still(rig, 1);
  EXPECT_EQ(still.text(), "busy");
  rig.append_now(record_of(1, 1));
  EXPECT_EQ(rig.outcomes_text(), "1:ok@1");
}

TEST(LogWriterArray, TheLastDiskThatWorksIsNotRemovedBesideAFailedOne) {
  ArrayRig rig;
  ASSERT_TRUE(rig.open());
  rig.disks[0]->fail_writes(SIZE_MAX, Remains::kNothing);
  rig.append_now(record_of(1, 1));
  rig.append_now(record_of(1, 2));
  rig.disks[1]->hold();
  rig.append_now(record_of(1, 3));
  rig.append_now(record_of(1, 4));
  rig.disks[1]->release();
  rig.executor.run_ready();
  ASSERT_EQ(rig.reports_text(), "0:failed");
  EXPECT_EQ(Removal(rig, 1).text(), "busy");
  const Removal failed(rig, 0);
  rig.executor.run_ready();
  EXPECT_EQ(failed.text(), "ok");
}

TEST(LogWriterArray, ARemovedDiskFinishesWhatItHasAndStaysReadable) {
  ArrayRig rig;
  ASSERT_TRUE(rig.open());
  rig.append_now(record_of(1, 1));
  for (const auto& disk : rig.disks) disk->hold();
  rig.append_now(record_of(1, 2));
  rig.append_now(record_of(1, 3));
  for (std::uint64_t i = 4; i <= 6; ++i) rig.append_now(record_of(1, i));  // queued on one of them
  const Removal removal(rig, 0);
  rig.executor.advance(1ms);
  EXPECT_EQ(removal.text(), "");
  for (const auto& disk : rig.disks) disk->release();
  rig.executor.run_until_idle();
  EXPECT_EQ(removal.text(), "ok");
  ASSERT_EQ(rig.outcomes.size(), 6u);
  const std::size_t writes = rig.disks[0]->writes().size();
  for (std::uint64_t i = 7; i <= 20; ++i) rig.append(record_of(1, i));
  rig.executor.run_until_idle();
  ASSERT_EQ(rig.outcomes.size(), 20u);
  EXPECT_EQ(rig.disks[0]->writes().size(), writes);
  for (const auto& outcome : rig.outcomes) {
    ASSERT_TRUE(outcome.result.has_value());
    EXPECT_TRUE(rig.readable(outcome.record, *outcome.result));
  }
  rig.reopened();
  EXPECT_EQ(rig.visited.size(), 20u);
}

TEST(LogWriterArray, TheArrayHasFailedWhenTheOnlyDiskThatWorkedIsGone) {
  ArrayRig rig;
  ASSERT_TRUE(rig.open());
  rig.disks[0]->hold();
  rig.append_now(record_of(1, 1));
  const Removal removal(rig, 0);
  rig.disks[1]->fail_writes(SIZE_MAX, Remains::kNothing);
  rig.append_now(record_of(1, 2));
  EXPECT_EQ(rig.reports_text(), "1:failed");
  rig.disks[0]->release();
  rig.executor.run_ready();
  EXPECT_EQ(removal.text(), "ok");
  EXPECT_TRUE(rig.writer().failed());
  EXPECT_EQ(rig.outcomes_text(), "1:ok@0 2:io");
}

TEST(LogWriterArray, ADiskThatFailsWhileItIsRemovedIsGone) {
  ArrayRig rig;
  ASSERT_TRUE(rig.open());
  rig.disks[0]->hold();
  rig.append_now(record_of(1, 1));
  const Removal removal(rig, 0);
  rig.disks[0]->fail_writes(SIZE_MAX, Remains::kNothing);
  rig.disks[0]->release();
  rig.executor.run_ready();
  EXPECT_EQ(removal.text(), "ok");
  EXPECT_EQ(rig.outcomes_text(), "1:ok@1");
  EXPECT_FALSE(rig.writer().failed());
}

// What an owner may do when it hears of a disk.
TEST(LogWriterArray, ADiskCanBeRemovedBecauseOfWhatIsReportedOfIt) {
  for (const State when : {State::kHanging, State::kGood, State::kFailed}) {
    ArrayRig rig({.writer = {.t_fail = 1s}});
    ASSERT_TRUE(rig.open());
    std::optional<Removal> removal;
    rig.writer().set_disk_observer([&](const LogWriter::DiskReport& report) {
      if (report.state == when && !removal) removal.emplace(rig, report.disk);
    });
    if (when == State::kFailed) {
      rig.disks[0]->fail_writes(2, Remains::kNothing);
    } else {
      rig.disks[0]->hold();
    }
    rig.append_now(record_of(1, 1));
    rig.executor.advance(2s);
    rig.disks[0]->release();
    rig.executor.run_ready();
    rig.disks[1]->hold();
    rig.append_now(record_of(1, 2));
    rig.append_now(record_of(1, 3));
    rig.disks[1]->release();
    rig.executor.run_until_idle();
    EXPECT_EQ(rig.outcomes.size(), 3u);
    ASSERT_TRUE(removal.has_value());
    EXPECT_EQ(removal->text(), "ok");
    EXPECT_EQ(rig.reopened(), "|1 2 3");
  }
}

}  // namespace
}  // namespace mariner::logging

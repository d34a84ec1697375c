#include "ifsck/program/fsck_report.h"

#include <gtest/gtest.h>

#include "tests/ifsck/program/made_console.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;

CheckedMoment some() {
  CheckedMoment checked{
      .name = "db1", .path = {}, .report = {}, .took = std::chrono::milliseconds(7)};
  MomentReport& report = checked.report;
  report.verdict = Verdict::kDamaged;
  report.at = SequenceNumber{12};
  report.time = VersionTime{1'795'181'525'000'000'000};
  report.replay = {.needed = true,
                   .transactions = 3,
                   .blocks = 40,
                   .revoked = 2,
                   .fast_commits = 1,
                   .fast_operations = 9,
                   .cut = true};
  report.since = SequenceNumber{4};
  report.changed_blocks = 77;
  report.findings = {{.code = Code::kLinks, .inode = 20, .expected = 1, .found = 2},
                     {.code = Code::kRoot}};
  report.findings_all = 5;
  report.repairs = {{report.findings[0], Repair::Done::kCountSet},
                    {{.code = Code::kUnattached, .inode = 21}, Repair::Done::kAttached}};
  report.left = {{.code = Code::kRoot}};
  report.completed = {{CompletedOperation::Kind::kCreated, 22, "new"}};
  report.completed_as_of = SequenceNumber{15};
  report.undone_because = "nothing was written afterwards";
  report.blocks_mended = 6;
  report.read = {.blocks_read = 100, .questions = 8};
  return checked;
}

class FsckReportTest : public ::testing::Test {
 protected:
  MadeConsole made_;
  client::Console console_ = made_.console();
  Utc zone_;
  client::Context context_{console_, zone_, [] { return VersionTime{}; }, {}, {}};
};

TEST_F(FsckReportTest, TellsProgramsEverything) {
  const api::FsckReport report = to_message(context_, some());
  EXPECT_EQ(report.volume(), "db1");
  EXPECT_EQ(report.at().sequence(), 12u);
  EXPECT_EQ(report.at().utc().substr(0, 10), "2026-11-20");
  EXPECT_EQ(report.verdict(), "damaged");
  EXPECT_EQ(report.journal().transactions(), 3u);
  EXPECT_TRUE(report.journal().cut());
  EXPECT_EQ(report.since(), 4u);
  ASSERT_EQ(report.findings_size(), 3);
  EXPECT_EQ(report.findings(0).code(), "links");
  EXPECT_EQ(report.findings(0).repair(), "counted anew");
  EXPECT_EQ(report.findings(1).repair(), "");
  EXPECT_EQ(report.findings(2).code(), "unattached");
  ASSERT_EQ(report.left_size(), 1);
  EXPECT_EQ(report.left(0).code(), "root");
  ASSERT_EQ(report.completed_size(), 1);
  EXPECT_EQ(report.completed(0), "inode 22, \"new\", is created");
  EXPECT_EQ(report.completed_as_of(), 15u);
  EXPECT_EQ(report.undone_because(), "nothing was written afterwards");
  EXPECT_EQ(report.duration_ns(), 7'000'000u);
}

TEST_F(FsckReportTest, TellsPeopleEachFindingAndWhatWasDone) {
  const std::string text = to_text(context_, some());
  for (const char* each :
       {"db1  #12  ", "replayed: 3 transactions, 40 blocks, 2 revoked, 1 fast commits of 9",
        "it ends within a transaction", "what changed from #4 on: 77 blocks; 100 read", "7ms",
        "links  inode 20: names: 1 are expected, 2 are said: counted anew", "and 3 more",
        "unattached  inode 21 is in use and has no name: is in lost+found now",
        "complete as of #15:\ninode 22, \"new\", is created",
        "What was under way was undone: nothing was written afterwards",
        "Cannot be mended:\nroot  there is no root directory",
        "damaged: 5 findings, 6 blocks mended"}) {
    EXPECT_NE(text.find(each), std::string::npos) << each << "\n" << text;
  }
  CheckedMoment given_up = some();
  given_up.report.journal_damage = "it is none";
  EXPECT_NE(to_text(context_, given_up).find("given up: it is none"), std::string::npos);
}

}  // namespace
}  // namespace mariner::ifsck

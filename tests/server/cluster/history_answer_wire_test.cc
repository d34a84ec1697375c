#include <gtest/gtest.h>

#include "proto/history.pb.h"
#include "server/cluster/history_wire.h"
#include "tests/server/cluster/history_link.h"
#include "tests/server/volume/logged_rig.h"

namespace mariner::cluster {
namespace {

using volume::History;
using volume::PastRun;
constexpr VolumeId kVolume{7};

Result<HistoryAnswer> answer_back(decltype(HistoryAnswer::what) what) {
  const HistoryFrame frame = encode(HistoryAnswer{kVolume, 12, std::move(what)});
  return decode_answer(frame.header, HistoryLink::whole(frame.payload));
}

TEST(HistoryAnswerWire, ComeAsTheyWereGiven) {
  LocatedAnswer located;
  located.newest = {77};
  located.runs.push_back(
      {{{1}, {2}}, PastRun::Source::kLog, false, {3}, test::LoggedRig::blocks_of('a', 2)});
  located.runs.push_back(
      {{{3}, {9}}, PastRun::Source::kLog, true, {4}, test::LoggedRig::blocks_of('b', 1)});
  located.runs.push_back({{{12}, {1}}, PastRun::Source::kBase, false, {}});
  const auto found = answer_back(located);
  ASSERT_TRUE(found.has_value());
  const auto& runs = std::get<LocatedAnswer>(found->what).runs;
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(test::LoggedRig::text_of(runs[0].bytes.bytes()), "aa");
  EXPECT_EQ(test::LoggedRig::text_of(runs[1].bytes.bytes()), "b");
  EXPECT_TRUE(runs[1].repeated);
  EXPECT_EQ(runs[2].source, PastRun::Source::kBase);
  EXPECT_EQ(runs[2].bytes.length, 0u);
  // What was read in one piece goes as it is.
  const PayloadSlice all = test::LoggedRig::blocks_of('c', 4);
  located.runs[0].bytes = {all.payload, kBlockBytes, 2 * kBlockBytes};
  located.runs[1].bytes = {all.payload, 3 * kBlockBytes, kBlockBytes};
  const HistoryFrame frame = encode(HistoryAnswer{kVolume, 1, located});
  EXPECT_EQ(frame.payload.payload.data(), all.payload.data());
  EXPECT_EQ(frame.payload.offset, kBlockBytes);
  EXPECT_EQ(frame.payload.length, 3 * kBlockBytes);
  const auto read = answer_back(ReadAnswer{{{{5}, {1}}}, test::LoggedRig::blocks_of('c', 2)});
  EXPECT_EQ(std::get<ReadAnswer>(read->what).bytes.length, 2 * kBlockBytes);
  EXPECT_TRUE(std::get<ChangedAnswer>(answer_back(ChangedAnswer{{{{1}, {1}}}, true})->what).more);
  EXPECT_EQ(std::get<FailureAnswer>(answer_back(FailureAnswer{{ErrorCode::kIo, "x"}})->what)
                .error.message,
            "x");
  EXPECT_TRUE(std::holds_alternative<DoneAnswer>(answer_back(DoneAnswer{})->what));
  const auto moment =
      answer_back(MomentAnswer{{{{1}, {2}}, {{3}, {4}}, {{5}, {6}}, SequenceNumber{7}}});
  const volume::History::Moment& at = std::get<MomentAnswer>(moment->what).moment;
  EXPECT_EQ(at.at.sequence, SequenceNumber{1});
  EXPECT_EQ(at.oldest.time, VersionTime{4});
  EXPECT_EQ(at.newest.sequence, SequenceNumber{5});
  EXPECT_EQ(at.last_rollback, SequenceNumber{7});
}

TEST(HistoryAnswerWire, ASummaryComesAsItWasMade) {
  volume::HistorySummary summary;
  summary.writes = 3;
  summary.bytes = 8192;
  summary.distinct_bytes = 4096;
  summary.columns = {{1, 4096}, {2, 4096}};
  summary.list = {{logging::RecordType::kWrite, {1}, {2}, {3}, {{4}, {5}}, {}}};
  summary.rollbacks = {{logging::RecordType::kRollback, {6}, {7}, {8}, {}, {9}}};
  summary.truncated = true;
  const auto back = answer_back(SummaryAnswer{summary});
  ASSERT_TRUE(back.has_value()) << to_string(back.error());
  const volume::HistorySummary& got = std::get<SummaryAnswer>(back->what).summary;
  EXPECT_EQ(got.writes, 3u);
  EXPECT_EQ(got.bytes, 8192u);
  EXPECT_EQ(got.distinct_bytes, 4096u);
  ASSERT_EQ(got.columns.size(), 2u);
  EXPECT_EQ(got.columns[1].writes, 2u);
  ASSERT_EQ(got.list.size(), 1u);
  EXPECT_EQ(got.list[0].extent, (BlockRange{{4}, {5}}));
  ASSERT_EQ(got.rollbacks.size(), 1u);
  EXPECT_EQ(got.rollbacks[0].target, SequenceNumber{9});
  EXPECT_TRUE(got.truncated);
  EXPECT_TRUE(answer_back(SummaryAnswer{}).has_value()) << "nothing happened";

  const HistoryFrame frame = encode(HistoryAnswer{kVolume, 1, SummaryAnswer{summary}});
  Payload damaged = HistoryLink::whole(frame.payload);
  std::memset(damaged.data(), 0xff, damaged.size());
  EXPECT_FALSE(decode_answer(frame.header, damaged).has_value());
}

TEST(HistoryAnswerWire, VersionsComeAsTheyWereListed) {
  const History::Versions versions{{{{4}, {{5}, {6}}}, {{7}, {{8}, {9}}}}, true};
  const auto back = answer_back(VersionsAnswer{versions});
  ASSERT_TRUE(back.has_value()) << to_string(back.error());
  const History::Versions& got = std::get<VersionsAnswer>(back->what).versions;
  ASSERT_EQ(got.list.size(), 2u);
  EXPECT_EQ(got.list[1].block, Lbn{7});
  EXPECT_EQ(got.list[1].at.sequence, SequenceNumber{8});
  EXPECT_EQ(got.list[1].at.time, VersionTime{9});
  EXPECT_TRUE(got.more);
  EXPECT_TRUE(answer_back(VersionsAnswer{}).has_value()) << "none";
  EXPECT_FALSE(answer_back(VersionsAnswer{{{}, true}}).has_value()) << "more behind nothing";
  EXPECT_FALSE(
      answer_back(VersionsAnswer{{std::vector<History::Version>(History::kVersionsMax + 1), false}})
          .has_value());
}

TEST(HistoryAnswerWire, WithoutSenseOrBoundAreRefused) {
  EXPECT_FALSE(answer_back(LocatedAnswer{}).has_value());
  wire::HistoryAnswer message;
  message.set_volume(7);
  const auto refused = [&](std::size_t blocks) {
    return !decode_answer(message.SerializeAsString(),
                          blocks == 0 ? Payload{} : Payload::allocate(blocks * kBlockBytes))
                .has_value();
  };
  EXPECT_TRUE(refused(0));
  auto& run = *message.mutable_located()->add_runs();
  run.mutable_range()->set_count(2);
  EXPECT_FALSE(refused(0));
  EXPECT_TRUE(refused(1)) << "bytes of nothing";
  run.set_has_bytes(true);
  EXPECT_TRUE(refused(2)) << "zeros have no bytes";
  run.set_source(wire::HistoryAnswer::Run::LOG);
  EXPECT_FALSE(refused(2));
  EXPECT_TRUE(refused(1));
  EXPECT_TRUE(refused(3));
  run.mutable_range()->set_count(UINT64_MAX);
  EXPECT_TRUE(refused(2));
  run.set_source(static_cast<wire::HistoryAnswer::Run::Source>(9));
  EXPECT_TRUE(refused(0));
  message.mutable_failure()->set_code(99);
  EXPECT_TRUE(refused(0));
  message.mutable_changed();
  for (std::size_t i = 0; i <= kAnswerRunsMax; ++i) {
    message.mutable_changed()->add_extents()->set_count(1);
  }
  EXPECT_TRUE(refused(0));
}

}  // namespace
}  // namespace mariner::cluster

#include <gtest/gtest.h>

#include "proto/history.pb.h"
#include "server/cluster/history_wire.h"
#include "tests/server/cluster/history_link.h"
#include "tests/server/volume/logged_rig.h"

namespace mariner::cluster {
namespace {

using volume::History;
constexpr VolumeId kVolume{7};

Result<HistoryQuestion> question_back(decltype(HistoryQuestion::what) what) {
  const HistoryFrame frame = encode(HistoryQuestion{kVolume, 12, std::move(what)});
  return decode_question(frame.header, HistoryLink::whole(frame.payload));
}

TEST(HistoryQuestionWire, ComeAsTheyWereAsked) {
  const auto locate = question_back(LocateQuestion{{{{{1}, {2}}, {3}, true}}});
  ASSERT_TRUE(locate.has_value());
  EXPECT_EQ(locate->volume, kVolume);
  EXPECT_EQ(locate->id, 12u);
  EXPECT_EQ(std::get<LocateQuestion>(locate->what).lookups[0].range, (BlockRange{{1}, {2}}));
  EXPECT_EQ(std::get<ReadQuestion>(question_back(ReadQuestion{{{4}, {5}}, {6}})->what).at,
            SequenceNumber{6});
  EXPECT_EQ(std::get<ChangedQuestion>(question_back(ChangedQuestion{{7}, {8}})->what).to,
            SequenceNumber{8});
  EXPECT_EQ(std::get<HoldQuestion>(question_back(HoldQuestion{{9}})->what).at, SequenceNumber{9});
  EXPECT_EQ(std::get<ReleaseQuestion>(question_back(ReleaseQuestion{10})->what).held, 10u);
  EXPECT_EQ(
      std::get<VersionTime>(
          std::get<MomentQuestion>(question_back(MomentQuestion{VersionTime{11}})->what).asked),
      VersionTime{11});
  EXPECT_EQ(
      std::get<SequenceNumber>(
          std::get<MomentQuestion>(question_back(MomentQuestion{SequenceNumber{12}})->what).asked),
      SequenceNumber{12});
  const auto summary = question_back(SummaryQuestion{{{1}, {2}, {3}, 4, 5, 6}});
  ASSERT_TRUE(summary.has_value());
  const volume::HistorySummary::Question& what = std::get<SummaryQuestion>(summary->what).what;
  EXPECT_EQ(what.from, SequenceNumber{1});
  EXPECT_EQ(what.to, SequenceNumber{2});
  EXPECT_EQ(what.start, VersionTime{3});
  EXPECT_EQ(what.width_ns, 4u);
  EXPECT_EQ(what.columns, 5u);
  EXPECT_EQ(what.writes_max, 6u);
  EXPECT_EQ(std::get<BaseQuestion>(question_back(BaseQuestion{{{4}, {5}}})->what).range,
            (BlockRange{{4}, {5}}));
  const auto current = question_back(CurrentQuestion{{{4}, {5}}, {6}, {7}});
  ASSERT_TRUE(current.has_value());
  EXPECT_EQ(std::get<CurrentQuestion>(current->what).range, (BlockRange{{4}, {5}}));
  EXPECT_EQ(std::get<CurrentQuestion>(current->what).at, SequenceNumber{6});
  EXPECT_EQ(std::get<CurrentQuestion>(current->what).epoch, Epoch{7});
  const auto versions = question_back(VersionsQuestion{{{{4}, {5}}, {{6}, {7}}}, {8}});
  ASSERT_TRUE(versions.has_value());
  EXPECT_EQ(std::get<VersionsQuestion>(versions->what).blocks[1].block, Lbn{6});
  EXPECT_EQ(std::get<VersionsQuestion>(versions->what).blocks[1].after, SequenceNumber{7});
  EXPECT_EQ(std::get<VersionsQuestion>(versions->what).to, SequenceNumber{8});
  const auto image =
      question_back(BeforeImageQuestion{{{1}, {2}}, test::LoggedRig::blocks_of('x', 2)});
  ASSERT_TRUE(image.has_value());
  EXPECT_EQ(test::LoggedRig::text_of(std::get<BeforeImageQuestion>(image->what).bytes.bytes()),
            "xx");
}

TEST(HistoryQuestionWire, WithoutSenseOrBoundAreRefused) {
  EXPECT_FALSE(question_back(LocateQuestion{}).has_value());
  EXPECT_FALSE(question_back(LocateQuestion{{{{{1}, {0}}, {3}, true}}}).has_value());
  EXPECT_FALSE(
      question_back(LocateQuestion{{{{{1}, {kQuestionBlocksMax + 1}}, {3}, true}}}).has_value());
  EXPECT_TRUE(
      question_back(LocateQuestion{{{{{1}, {kQuestionBlocksMax + 1}}, {3}, false}}}).has_value());
  EXPECT_FALSE(question_back(LocateQuestion{std::vector<volume::History::Lookup>(
                                 kQuestionLookupsMax + 1, {{{1}, {1}}, {3}, false})})
                   .has_value());
  EXPECT_FALSE(question_back(ReadQuestion{{{4}, {kQuestionBlocksMax + 1}}, {6}}).has_value());
  EXPECT_FALSE(question_back(BaseQuestion{{{4}, {kQuestionBlocksMax + 1}}}).has_value());
  EXPECT_FALSE(
      question_back(CurrentQuestion{{{4}, {kQuestionBlocksMax + 1}}, {6}, {7}}).has_value());
  EXPECT_FALSE(question_back(CurrentQuestion{{{4}, {0}}, {6}, {7}}).has_value());
  EXPECT_FALSE(question_back(ReadQuestion{{{UINT64_MAX}, {1}}, {6}}).has_value());
  EXPECT_FALSE(question_back(ChangedQuestion{{9}, {8}}).has_value());
  EXPECT_FALSE(question_back(BeforeImageQuestion{{{1}, {3}}, test::LoggedRig::blocks_of('x', 2)})
                   .has_value());
  EXPECT_FALSE(question_back(SummaryQuestion{{{9}, {8}, {}, 0, 0, 0}}).has_value());
  EXPECT_FALSE(question_back(SummaryQuestion{{{1}, {8}, {}, 0, 0, kSummaryWritesMax + 1}}));
  EXPECT_FALSE(question_back(
      SummaryQuestion{{{1}, {8}, {}, 1, volume::HistorySummary::kColumnsMax + 1, 0}}));
  EXPECT_FALSE(question_back(VersionsQuestion{}).has_value());
  EXPECT_FALSE(
      question_back(VersionsQuestion{std::vector<History::Since>(History::kSinceMax + 1), {8}})
          .has_value());
  wire::HistoryQuestion uneven;
  uneven.set_volume(7);
  uneven.mutable_versions()->add_blocks(1);
  EXPECT_FALSE(decode_question(uneven.SerializeAsString(), {}).has_value());
  EXPECT_FALSE(decode_question("\xff\xff", {}).has_value());
  EXPECT_FALSE(decode_question("", {}).has_value());
  const HistoryFrame hold = encode(HistoryQuestion{kVolume, 1, HoldQuestion{{9}}});
  EXPECT_FALSE(decode_question(hold.header, Payload::allocate(kBlockBytes)).has_value());
}

}  // namespace
}  // namespace mariner::cluster

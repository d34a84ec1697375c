#include "server/cluster/history_session.h"

#include <gtest/gtest.h>

#include "tests/server/volume/asked_history.h"
#include "tests/server/volume/inline_worker.h"
#include "tests/support/manual_executor.h"

namespace mariner::cluster {
namespace {

using test::AskedHistory;

class HistorySessionTest : public ::testing::Test {
 protected:
  Result<void> read(std::uint64_t blocks) {
    return session_.received({kVolume, ++id_, ReadQuestion{{{0}, {blocks}}, {5}}});
  }

  static constexpr VolumeId kVolume{7};
  AskedHistory far_;
  test::ManualExecutor executor_;
  std::vector<HistoryFrame> answers_;
  std::uint64_t id_ = 0;
  HistorySession session_{{[this](VolumeId volume) { return volume == kVolume ? &far_ : nullptr; },
                           [](VolumeId) { return nullptr; },
                           [this](const HistoryFrame& frame) {
                             answers_.push_back(frame);
                             return true;
                           },
                           nullptr}};
};

TEST_F(HistorySessionTest, AVolumeThatIsNotHereIsUnavailable) {
  ASSERT_TRUE(session_.received({{8}, 3, HoldQuestion{{1}}}).has_value());
  ASSERT_EQ(answers_.size(), 1u);
  const auto answer = decode_answer(answers_[0].header, {});
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->id, 3u);
  EXPECT_EQ(std::get<FailureAnswer>(answer->what).error.code, ErrorCode::kUnavailable);
}

TEST_F(HistorySessionTest, QuestionsBeyondTheBoundsWait) {
  for (std::size_t i = 0; i < HistorySession::kUnderWayMax + 5; ++i) ASSERT_TRUE(read(1));
  EXPECT_EQ(far_.reads.size(), HistorySession::kUnderWayMax);
  AskedHistory::next(far_.reads).done(std::vector<BlockRange>{});
  EXPECT_EQ(far_.reads.size(), HistorySession::kUnderWayMax);
  EXPECT_EQ(answers_.size(), 1u);
}

TEST_F(HistorySessionTest, MemoryIsBounded) {
  const std::uint64_t fit = HistorySession::kBytesUnderWayMax / (kQuestionBlocksMax * kBlockBytes);
  for (std::uint64_t i = 0; i < fit + 3; ++i) ASSERT_TRUE(read(kQuestionBlocksMax));
  EXPECT_EQ(far_.reads.size(), fit);
  AskedHistory::next(far_.reads).done(Error{ErrorCode::kIo, "broken"});
  EXPECT_EQ(far_.reads.size(), fit);
}

TEST_F(HistorySessionTest, WhoAsksTooMuchIsSentAway) {
  for (std::size_t i = 0; i < HistorySession::kUnderWayMax + HistorySession::kWaitingMax; ++i) {
    ASSERT_TRUE(read(1));
  }
  const Result<void> refused = read(1);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kLimit);
}

}  // namespace
}  // namespace mariner::cluster

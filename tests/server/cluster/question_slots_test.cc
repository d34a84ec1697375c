#include "server/cluster/question_slots.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "server/cluster/remote_history.h"

namespace mariner::cluster {
namespace {

// On one connection, which the other node ends when more wait there than it takes.
TEST(QuestionSlots, AllVolumesTogetherAskNoMoreThanTheOtherNodeTakes) {
  constexpr std::size_t kVolumes = 20;
  constexpr std::size_t kEach = 256;  // as an image's before-images
  std::vector<HistoryQuestion> asked;
  std::size_t done = 0;
  const auto slots = std::make_shared<QuestionSlots>();
  std::vector<std::unique_ptr<RemoteHistory>> volumes;
  for (std::uint32_t i = 0; i < kVolumes; ++i) {
    volumes.push_back(std::make_unique<RemoteHistory>(VolumeId{i + 1}));
    volumes.back()->up(
        [&asked](const HistoryFrame& frame) {
          asked.push_back(*decode_question(frame.header, {}));
          return true;
        },
        slots);
  }
  for (const auto& volume : volumes) {
    for (std::size_t i = 0; i < kEach; ++i) {
      volume->moment(SequenceNumber{i}, [&done](const auto& moment) { done += moment ? 1 : 0; });
    }
  }
  EXPECT_EQ(asked.size(), QuestionSlots::kMost);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    ASSERT_LE(asked.size() - i, QuestionSlots::kMost);
    const HistoryQuestion question = asked[i];
    ASSERT_TRUE(volumes[question.volume.value - 1]
                    ->received({question.volume, question.id, MomentAnswer{}})
                    .has_value());
  }
  EXPECT_EQ(done, kVolumes * kEach);
  EXPECT_EQ(slots->taken(), 0u);
  // Those that had to wait come in turn.
  EXPECT_NE(asked[QuestionSlots::kMost].volume, asked[QuestionSlots::kMost + 1].volume);
}

TEST(QuestionSlots, AConnectionThatEndsGivesThemBack) {
  const auto slots = std::make_shared<QuestionSlots>();
  std::size_t sent = 0;
  const auto send = [&sent](const HistoryFrame&) {
    ++sent;
    return true;
  };
  RemoteHistory one(VolumeId{1});
  RemoteHistory two(VolumeId{2});
  for (int connection = 0; connection < 2; ++connection) {
    one.up(send, slots);
    two.up(send, slots);
    for (std::size_t i = 0; i < QuestionSlots::kMost; ++i) {
      one.moment(SequenceNumber{i}, [](const auto&) {});
    }
    two.moment(SequenceNumber{1}, [](const auto&) {});
    EXPECT_EQ(slots->taken(), QuestionSlots::kMost);
    // What was not sent, nobody answers.
    EXPECT_FALSE(
        two.received({VolumeId{2}, static_cast<std::uint64_t>(connection) + 1, MomentAnswer{}})
            .has_value());
    one.down();
    two.down();
    EXPECT_EQ(slots->taken(), 0u);
  }
  EXPECT_EQ(sent, 2 * QuestionSlots::kMost);
}

}  // namespace
}  // namespace mariner::cluster

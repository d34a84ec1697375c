#include "server/node/gather.h"

#include <gtest/gtest.h>

namespace mariner::node {
namespace {

using Answer = UniqueFunction<void(Result<int>)>;

TEST(Gather, AnswersInTheOrderOfTheQuestions) {
  std::vector<Answer> asked;
  std::optional<std::vector<int>> all;
  gather<int>(
      3, [&](std::size_t, Answer answer) { asked.push_back(std::move(answer)); },
      [&](Result<std::vector<int>> answers) { all = *std::move(answers); });
  asked[2](30);
  asked[0](10);
  EXPECT_FALSE(all);
  asked[1](20);
  EXPECT_EQ(all, (std::vector<int>{10, 20, 30}));
}

TEST(Gather, WaitsForAllBeforeItTellsAnError) {
  std::vector<Answer> asked;
  std::optional<Error> error;
  gather<int>(
      3, [&](std::size_t, Answer answer) { asked.push_back(std::move(answer)); },
      [&](const Result<std::vector<int>>& answers) { error = answers.error(); });
  asked[2](Error{ErrorCode::kIo, "the last"});
  asked[1](Error{ErrorCode::kBusy, "the second"});
  EXPECT_FALSE(error);
  asked[0](1);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message, "the second") << "the first of the questions that failed";
}

TEST(Gather, AnswersThatComeAtOnce) {
  int sum = 0;
  gather<int>(
      4, [](std::size_t i, Answer answer) { answer(static_cast<int>(i)); },
      [&](const Result<std::vector<int>>& answers) {
        for (const int each : *answers) sum += each;
      });
  EXPECT_EQ(sum, 6);
  bool none = false;
  gather<int>(
      0, [](std::size_t, Answer) { FAIL(); },
      [&](const Result<std::vector<int>>& answers) { none = answers->empty(); });
  EXPECT_TRUE(none);
}

}  // namespace
}  // namespace mariner::node

#include "server/client/past_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/server/client/daemon.h"

namespace mariner::client {
namespace {

using admin::BlockQuestion;
using admin::BlockVersion;
using admin::VersionsRequest;
using testing::ElementsAre;

class PastClientTest : public DaemonTest {
 protected:
  PastClientTest() {
    fake().past.set_id("17");
    fake().past.set_volume_id(4);
    fake().past.set_size_bytes(1u << 20);
    fake().past.mutable_from()->set_sequence(3);
    fake().past.mutable_newest()->set_sequence(9);
  }
  static std::vector<BlockQuestion> some_questions(std::size_t count) {
    std::vector<BlockQuestion> questions;
    for (std::uint64_t i = 0; i < count; ++i) questions.push_back({{i}, {3}});
    return questions;
  }
  static void expect_right(PastClient& past, const std::vector<BlockQuestion>& questions) {
    std::vector<std::byte> to(questions.size() * kBlockBytes);
    ASSERT_TRUE(past.read(questions, to));
    for (std::size_t i = 0; i < questions.size(); ++i) {
      ASSERT_EQ(to[i * kBlockBytes], static_cast<std::byte>(i + 3));
      ASSERT_EQ(to[(i + 1) * kBlockBytes - 1], static_cast<std::byte>(i + 3));
    }
  }
  std::ptrdiff_t times_asked(const std::string& what) {
    return std::ranges::count(fake().asked, what);
  }
  static admin::StoredPart fake_part(std::vector<BlockRange> ranges, std::uint64_t next) {
    return {std::move(ranges), {next}};
  }
  admin::FakePast& fake() { return control.of_the_past; }
  Result<PastClient> open() { return PastClient::open({.socket = socket, .volume = "d b"}); }
};

TEST_F(PastClientTest, OpensLooksAndEnds) {
  {
    Result<PastClient> opened = open();
    ASSERT_TRUE(opened) << to_string(opened.error());
    PastClient past = *std::move(opened);
    EXPECT_EQ(past.past().size_bytes(), 1u << 20);
    fake().past.mutable_newest()->set_sequence(10);
    ASSERT_TRUE(past.look());
    EXPECT_EQ(past.past().newest().sequence(), 10u);
    api::MomentSpec at;
    at.set_sequence(0);
    fake().moment_answer.set_sequence(5);
    EXPECT_EQ(past.moment(at)->sequence(), 5u);
  }
  EXPECT_THAT(fake().asked, ElementsAre("open volume: \"d b\" from { }", "show 17",
                                        "moment id: \"17\" at { sequence: 0 }", "close 17"));
}

TEST_F(PastClientTest, ReadsAnyNumberOfBlocks) {
  PastClient past = *open();
  const auto questions = some_questions(admin::kBlockQuestionsMax + 3);
  expect_right(past, questions);
  EXPECT_GT(times_asked("blocks 17"), 1);
  std::vector<std::byte> to(questions.size() * kBlockBytes);
  fake().error = Error{ErrorCode::kOutsideWindow, "gone"};
  const Result<void> outside = past.read(questions, to);
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().code, ErrorCode::kOutsideWindow);
  EXPECT_EQ(outside.error().message, "gone");
}

TEST_F(PastClientTest, WhatIsExpectedIsAskedOnce) {
  PastClient past = *open();
  const auto questions = some_questions(1000);
  past.expect(questions);
  expect_right(past, questions);
  const auto once = times_asked("blocks 17");
  expect_right(past, questions);
  EXPECT_EQ(times_asked("blocks 17"), 2 * once);
}

TEST_F(PastClientTest, AnythingMayBeAskedInsteadOfWhatIsExpected) {
  PastClient past = *open();
  const auto questions = some_questions(1000);
  for (const std::size_t other : {1, 600, 999, 3000}) {
    past.expect(questions);
    expect_right(past, some_questions(other));
  }
  past.expect(questions);
  past.expect(some_questions(7));
  expect_right(past, some_questions(7));
  past.expect(questions);
  ASSERT_TRUE(past.look());
  expect_right(past, questions);
  past.expect({});
  expect_right(past, some_questions(2));
  past.expect(questions);  // and nothing more
}

TEST_F(PastClientTest, WhatIsExpectedOfAReadingThatHasEndedIsAskedAgain) {
  PastClient past = *open();
  fake().lost = {"17"};
  fake().past.set_id("18");
  const auto questions = some_questions(3000);
  past.expect(questions);
  expect_right(past, questions);
  fake().error = Error{ErrorCode::kOutsideWindow, "gone"};
  past.expect(questions);
  std::vector<std::byte> to(questions.size() * kBlockBytes);
  EXPECT_EQ(past.read(questions, to).error().code, ErrorCode::kOutsideWindow);
}

TEST_F(PastClientTest, PutsTogetherWhatChanged) {
  PastClient past = *open();
  fake().changed_answers = {{{{{1}, {2}}, {{5}, {1}}}, {6}}, {{{{6}, {1}}, {{8}, {1}}}, {}}};
  EXPECT_EQ(past.changed({3}, {9}).value(),
            (std::vector<BlockRange>{{{1}, {2}}, {{5}, {2}}, {{8}, {1}}}));
  EXPECT_EQ(fake().asked.back(), "changed id: \"17\" from: 3 to: 9 first_block: 6");
  fake().changed_answers = {{{}, {6}}, {{}, {6}}};
  EXPECT_EQ(past.changed({3}, {9}).error().code, ErrorCode::kProtocol) << "it does not get on";
}

TEST_F(PastClientTest, AsksWhatIsStoredPartByPart) {
  PastClient past = *open();
  fake().stored_answers = {{{{{1}, {2}}}, {6}}, {{}, {}}, {{{{5}, {1}}}, {}}, {{}, {6}}};
  EXPECT_EQ(past.stored({9}, {1}).value(), fake_part({{{1}, {2}}}, 6));
  EXPECT_EQ(fake().asked.back(), "stored id: \"17\" at: 9 first_block: 1");
  EXPECT_EQ(past.stored({9}, {6}).value(), fake_part({}, 0));
  EXPECT_EQ(past.stored({9}, {6}).error().code, ErrorCode::kProtocol) << "nobody asked there";
  EXPECT_EQ(past.stored({9}, {6}).error().code, ErrorCode::kProtocol) << "it does not get on";
}

TEST_F(PastClientTest, PutsTogetherVersions) {
  PastClient past = *open();
  fake().versions_answers = {{{{{1}, {4}, {40}}, {{5}, {6}, {60}}}, true},
                             {{{{5}, {7}, {70}}}, false}};
  const std::vector<Lbn> blocks{{1}, {5}, {8}};
  EXPECT_EQ(past.versions(blocks, {3}, {9}).value(),
            (std::vector<BlockVersion>{{{1}, {4}, {40}}, {{5}, {6}, {60}}, {{5}, {7}, {70}}}));
  EXPECT_THAT(fake().versions_requests,
              ElementsAre(VersionsRequest{{9}, {{{1}, {3}}, {{5}, {3}}, {{8}, {3}}}},
                          VersionsRequest{{9}, {{{5}, {6}}, {{8}, {3}}}}));
  fake().versions_requests.clear();
  std::vector<Lbn> many;
  for (std::uint64_t i = 0; i < admin::kVersionBlocksMax + 1; ++i) many.push_back({i});
  EXPECT_TRUE(past.versions(many, {3}, {9})->empty());
  EXPECT_EQ(fake().versions_requests.size(), 2u);
  fake().versions_answers = {{{{{4}, {4}, {40}}}, true}};
  EXPECT_EQ(past.versions(blocks, {3}, {9}).error().code, ErrorCode::kProtocol);
  fake().versions_answers = {{{{{1}, {3}, {40}}}, true}};
  EXPECT_EQ(past.versions(blocks, {3}, {9}).error().code, ErrorCode::kProtocol);
}

TEST_F(PastClientTest, AReadingThatHasEndedIsOpenedAgain) {
  PastClient past = *open();
  fake().asked.clear();
  fake().lost = {"17"};
  fake().past.set_id("18");
  const std::vector<BlockQuestion> questions{{{1}, {4}}};
  std::vector<std::byte> to(kBlockBytes);
  ASSERT_TRUE(past.read(questions, to));
  EXPECT_EQ(to[0], std::byte{5});
  EXPECT_THAT(fake().asked,
              ElementsAre("blocks 17", "open volume: \"d b\" from { sequence: 3 }", "blocks 18"));
  fake().lost = {"18"};
  fake().past.set_volume_id(5);
  const Result<void> another = past.read(questions, to);
  EXPECT_EQ(another.error().message, "d b is another volume by now");
}

TEST_F(PastClientTest, OnlyWhoMovesOnIsGivenALaterBeginning) {
  for (const bool moves_on : {false, true}) {
    fake().lost.clear();
    fake().past.set_id("17");
    fake().gone_to = 0;
    PastClient past = *PastClient::open({.socket = socket, .volume = "d b", .moves_on = moves_on});
    fake().asked.clear();
    fake().lost = {"17"};
    fake().past.set_id("18");
    fake().gone_to = 5;
    const Result<void> looked = past.look();
    EXPECT_EQ(looked.has_value(), moves_on);
    if (!moves_on) {
      EXPECT_EQ(looked.error().code, ErrorCode::kOutsideWindow);
    } else {
      EXPECT_THAT(fake().asked, ElementsAre("show 17", "open too early",
                                            "open volume: \"d b\" from { }", "show 18"));
    }
  }
}

TEST_F(PastClientTest, AnAnswerThatIsNone) {
  fake().past.clear_id();
  EXPECT_EQ(open().error().code, ErrorCode::kProtocol);
  fake().error = Error{ErrorCode::kNotFound, "no such volume"};
  EXPECT_EQ(open().error().message, "no such volume");
}

}  // namespace
}  // namespace mariner::client

#include "server/volume/backlog.h"

#include <gtest/gtest.h>

#include <string>

namespace mariner::volume {
namespace {

constexpr SequenceNumber kNothing{0};

class BacklogTest : public ::testing::Test {
 protected:
  void add(BlockRange range, std::uint64_t at) {
    PendingContent content;
    content.kind = PendingContent::Kind::kHistory;
    content.at = {at};
    backlog_.add(range, content);
  }
  // It is what is fetched now.
  void begin(BlockRange range, std::uint64_t at) {
    add(range, at);
    backlog_.added({});
    backlog_.advance({at});
  }
  void remove_first_before(std::uint64_t end) {
    backlog_.remove_first(BlockRange::between({0}, {end}));
  }
  // Of the first ten blocks: as of which moment each is to be had.
  template <typename Runs>
  static std::string text_of(const Runs& runs) {
    std::string out;
    runs.visit({{0}, {10}}, [&](BlockRange part, const PendingContent* content) {
      out += std::string(part.count.value,
                         content == nullptr ? '.' : static_cast<char>('0' + content->at.value));
    });
    return out;
  }
  std::string text() const { return text_of(backlog_); }
  std::string first() const { return text_of(*backlog_.first()); }

  Backlog backlog_;
};

TEST_F(BacklogTest, WhatComesWhileItIsFetchedIsFetchedNext) {
  EXPECT_EQ(backlog_.advance({3}), SequenceNumber{3}) << "nothing is lacking";
  add({{1}, {4}}, 4);
  backlog_.added({});
  EXPECT_EQ(backlog_.advance({4}), SequenceNumber{3});
  add({{7}, {2}}, 5);
  backlog_.added({});
  EXPECT_EQ(first(), ".4444.....");
  EXPECT_EQ(text(), ".4444..55.");
  EXPECT_EQ(backlog_.advance({6}), kNothing) << "of the first part something is lacking still";
  remove_first_before(3);
  EXPECT_EQ(first(), "...44.....");
  remove_first_before(UINT64_MAX);
  EXPECT_EQ(backlog_.advance({6}), SequenceNumber{4}) << "#5 is lacking";
  EXPECT_EQ(first(), ".......55.");
  remove_first_before(UINT64_MAX);
  EXPECT_TRUE(backlog_.empty());
  EXPECT_EQ(backlog_.advance({8}), SequenceNumber{8});
}

TEST_F(BacklogTest, WhatIsLackingOnceMoreDoesNotWaitForTheNextPart) {
  begin({{1}, {4}}, 1);
  add({{3}, {4}}, 2);
  backlog_.added({});
  EXPECT_EQ(first(), ".1122.....");
  EXPECT_EQ(text(), ".112222...");
}

TEST_F(BacklogTest, WhatTheImageHasOtherwiseIsNotFetched) {
  begin({{1}, {4}}, 1);
  add({{6}, {3}}, 2);
  backlog_.added({});
  backlog_.remove({{2}, {1}});
  backlog_.remove({{4}, {3}});
  EXPECT_EQ(first(), ".1.1......");
  EXPECT_EQ(text(), ".1.1...22.");
}

TEST_F(BacklogTest, ItIsBehindInProportionToWhatIsLeft) {
  add({{1}, {4}}, 1);
  backlog_.added({.bytes = 800});
  EXPECT_EQ(backlog_.bytes(), 800u);
  backlog_.advance({1});
  backlog_.remove({{2}, {1}});
  EXPECT_EQ(backlog_.bytes(), 600u);
  add({{6}, {2}}, 2);
  backlog_.added({.bytes = 100});
  EXPECT_EQ(backlog_.bytes(), 700u);
  backlog_.remove({{6}, {1}});
  add({{8}, {1}}, 2);
  backlog_.added({.bytes = 10});
  EXPECT_EQ(backlog_.bytes(), 660u);
  remove_first_before(UINT64_MAX);
  EXPECT_EQ(backlog_.bytes(), 60u);
}

TEST_F(BacklogTest, ItRemembersOfEachPartWhatIsSaidOfIt) {
  EXPECT_FALSE(backlog_.since());
  add({{1}, {4}}, 1);
  backlog_.added({.missed = true, .since = VersionTime{7}});
  EXPECT_TRUE(backlog_.missed());
  EXPECT_EQ(backlog_.missed_bytes(), 4 * kBlockBytes);
  backlog_.advance({1});
  EXPECT_TRUE(backlog_.first_was_missed());
  add({{6}, {2}}, 2);
  backlog_.added({.restores = true, .since = VersionTime{9}});
  EXPECT_EQ(backlog_.missed_bytes(), 4 * kBlockBytes);
  EXPECT_EQ(backlog_.since(), VersionTime{7});
  EXPECT_TRUE(backlog_.restores());
  remove_first_before(UINT64_MAX);
  backlog_.advance({2});
  EXPECT_FALSE(backlog_.missed());
  EXPECT_EQ(backlog_.since(), VersionTime{9});
  backlog_.remove({{6}, {2}});
  backlog_.advance({2});
  EXPECT_FALSE(backlog_.restores());
  EXPECT_FALSE(backlog_.since());
}

TEST_F(BacklogTest, ATableIsTakenAsAWhole) {
  auto table = std::make_shared<PendingTable>();
  PendingContent content;
  content.kind = PendingContent::Kind::kHistory;
  content.at = {4};
  table->put({{1}, {4}}, content);
  backlog_.add_all(std::move(table));
  backlog_.added({.restores = true});
  EXPECT_EQ(backlog_.restoring_bytes(), 4 * kBlockBytes);
  backlog_.advance({4});
  EXPECT_EQ(first(), ".4444.....");
  EXPECT_TRUE(backlog_.first_restores());
  for (const std::uint64_t block : {1, 3}) backlog_.remove_first({{block}, {1}});
  EXPECT_EQ(first(), "..4.4.....");
  EXPECT_EQ(backlog_.restoring_bytes(), 2 * kBlockBytes);
}

}  // namespace
}  // namespace mariner::volume

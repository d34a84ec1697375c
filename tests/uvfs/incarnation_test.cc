#include "uvfs/incarnation.h"

#include <gtest/gtest.h>

#include <vector>

namespace mariner::uvfs {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

struct Made {
  std::uint64_t from;
  std::uint64_t ms;
  std::uint64_t size;
  std::int64_t changed;
};

ObjectHistory history(const std::vector<Made>& states) {
  ObjectHistory all;
  for (const Made& each : states) {
    ObjectState object{.exists = true, .mode = 0100644, .size = each.size};
    object.modified.seconds = each.changed;
    object.changed.seconds = each.changed;
    all.states.push_back({{each.from}, {each.ms * kMs}, object, true});
  }
  return all;
}

std::vector<std::uint64_t> found(const ObjectHistory& all, VersionRule rule = {},
                                 SequenceNumber from = {1}, SequenceNumber end = kEndless) {
  std::vector<std::uint64_t> moments;
  for (const FileVersion& each : versions_of(all, {from, {}}, end, rule)) {
    moments.push_back(each.from.at.value);
  }
  return moments;
}
using Moments = std::vector<std::uint64_t>;

TEST(IncarnationTest, EachStateIsAVersion) {
  const auto all = history({{1, 0, 10, 1}, {5, 10, 20, 2}, {9, 20, 30, 3}});
  EXPECT_EQ(found(all), (Moments{1, 5, 9}));
  const auto versions = versions_of(all, {{1}, {}}, {12}, {});
  ASSERT_EQ(versions.size(), 3u);
  EXPECT_EQ(versions[0].end, SequenceNumber{5});
  EXPECT_EQ(versions[2].end, SequenceNumber{12});
  EXPECT_EQ(versions[1].object.size, 20u);
  EXPECT_EQ(versions[1].from.time.ns, 10 * kMs);
}

TEST(IncarnationTest, OnlyThoseWhileItHadThePath) {
  const auto all = history({{1, 0, 10, 1}, {5, 10, 20, 2}, {9, 20, 30, 3}});
  EXPECT_EQ(found(all, {}, {3}, {9}), (Moments{3, 5}));
  EXPECT_EQ(found(all, {}, {5}, {6}), Moments{5});
}

TEST(IncarnationTest, ContentsThatAreWrittenBeforeTheInodeAreNoVersion) {
  const auto all = history({{1, 0, 10, 1}, {5, 10, 10, 1}, {6, 11, 10, 1}, {9, 12, 10, 2}});
  EXPECT_EQ(found(all), (Moments{1, 9}));
  EXPECT_EQ(found(all, {.every_write = true}), (Moments{1, 5, 6, 9}));
}

TEST(IncarnationTest, ContentsThatAreWrittenAfterTheInodeCompleteIt) {
  // The host's clock is 100 s behind: it did what the inodes say at 5 s, at 17 s and at 20 s.
  const auto all = history({{1, 0, 10, -110},
                            {5, 5'100, 10, -95},
                            {6, 16'000, 10, -95},
                            {7, 17'500, 10, -83},
                            {8, 20'300, 10, -83},
                            {9, 20'500, 10, -80}});
  EXPECT_EQ(found(all), (Moments{1, 6, 7, 9}));
  // None comes behind them.
  EXPECT_EQ(found(history({{1, 0, 10, 0}, {5, 10'000, 10, 10}, {6, 30'000, 10, 10}})),
            (Moments{1, 6}));
}

// Two directories that are made in one, before the host's clock ticks, and a file a bit later: each
// time names come first, then the inode.
TEST(IncarnationTest, AnInodeWithTheSameTimeCompletesWhatCameBeforeIt) {
  auto all = history({{1, 0, 10, 1},
                      {4, 100, 10, 1},
                      {5, 110, 10, 2},
                      {6, 115, 10, 2},
                      {7, 120, 10, 2},
                      {8, 300, 10, 2},
                      {9, 310, 10, 3}});
  const auto links = [&](std::size_t from, std::uint32_t count) {
    for (std::size_t i = from; i < all.states.size(); ++i) all.states[i].object.links = count;
    all.states[from].contents_changed = false;
  };
  links(2, 3);
  links(4, 4);
  all.states[4].seen = false;
  EXPECT_EQ(found(all), (Moments{1, 7, 9}));
  EXPECT_EQ(found(all, {.every_write = true}), (Moments{1, 4, 5, 6, 8, 9}));
}

TEST(IncarnationTest, ContentsWithoutAnInodeAreAVersion) {
  // (The first one is what was there when the stretch began.)
  EXPECT_EQ(found(history({{1, 0, 10, 1}, {5, 10, 10, 1}})), (Moments{1, 5}));
  // So late that it was another operation.
  EXPECT_EQ(found(history({{1, 0, 10, 0}, {5, 1'000, 10, 1}, {9, 40'000, 10, 1}})),
            (Moments{1, 5, 9}));
}

TEST(IncarnationTest, AnInodeThatIsWrittenInPartsIsOneVersion) {
  EXPECT_EQ(found(history({{1, 0, 10, 1}, {5, 10, 20, 2}, {6, 11, 30, 2}, {7, 12, 40, 2}})),
            (Moments{1, 7}));
}

TEST(IncarnationTest, WhatIsNotSeenIsNoVersion) {
  auto all = history({{1, 0, 10, 1}, {5, 10, 10, 2}, {6, 15, 10, 2}, {9, 16, 10, 3}});
  all.states[1].seen = all.states[3].seen = false;
  // Contents, and then an inode that looks alike.
  EXPECT_EQ(found(all), (Moments{1, 9}));
  EXPECT_EQ(found(all, {.every_write = true}), (Moments{1, 6}));
  // It has the path since then.
  EXPECT_EQ(found(all, {}, {9}), Moments{9});
}

TEST(IncarnationTest, TheBoundIsAnOption) {
  const auto all = history({{1, 0, 10, 1}, {5, 10, 10, 1}, {9, 200, 10, 2}});
  EXPECT_EQ(found(all, {.under_way_max = std::chrono::milliseconds(190)}), (Moments{1, 9}));
  EXPECT_EQ(found(all, {.under_way_max = std::chrono::milliseconds(189)}), (Moments{1, 5, 9}));
}

ObjectHistory stamped(ObjectHistory::Stamp stamp, const std::vector<Made>& states) {
  ObjectHistory all = history(states);
  all.stamp = stamp;
  return all;
}
constexpr auto kLast = ObjectHistory::Stamp::kLast;
constexpr auto kNone = ObjectHistory::Stamp::kNone;

TEST(IncarnationTest, WithAStampThatComesLastWhatHasNoneIsUnderWay) {
  // A size, then contents, then the time of both; and so again.
  const auto all = stamped(kLast, {{1, 0, 0, 1},
                                   {5, 10, 20, 1},
                                   {6, 11, 20, 1},
                                   {7, 12, 20, 2},
                                   {9, 13, 30, 2},
                                   {10, 14, 30, 3}});
  EXPECT_EQ(found(all), (Moments{1, 7, 10}));
  // Until nothing follows.
  EXPECT_EQ(found(stamped(kLast, {{1, 0, 0, 1}, {5, 10, 20, 1}, {6, 36'000, 20, 2}})),
            (Moments{1, 5, 6}));
  EXPECT_EQ(found(stamped(kLast, {{1, 0, 0, 1}, {5, 10, 20, 1}})), (Moments{1, 5}));
}

TEST(IncarnationTest, WithAStampThatComesLastNothingIsUnderWayForLong) {
  const std::vector<Made> open_for_long{
      {1, 0, 9, 1}, {5, 20'000, 9, 1}, {6, 40'000, 9, 1}, {7, 60'000, 9, 1}, {8, 80'000, 9, 2}};
  EXPECT_EQ(found(stamped(kLast, open_for_long)), (Moments{1, 6, 8}));
}

TEST(IncarnationTest, WithoutATimeOfChangeEachEntryIsAVersion) {
  const auto all = stamped(kNone, {{1, 0, 0, 1}, {5, 10, 20, 1}, {6, 20, 30, 2}});
  EXPECT_EQ(found(all), (Moments{1, 5, 6}));
}

TEST(IncarnationTest, WithoutATimeOfChangeContentsBelongToTheNearestEntry) {
  // Before it, and behind it.
  EXPECT_EQ(found(stamped(kNone, {{1, 0, 9, 1}, {5, 500, 9, 1}, {6, 501, 9, 2}})), (Moments{1, 6}));
  const std::vector<Made> behind{{1, 0, 9, 1}, {5, 500, 9, 2}, {6, 501, 9, 2}, {7, 900, 9, 3}};
  EXPECT_EQ(found(stamped(kNone, behind)), (Moments{1, 6, 7}));
  // When the first one was written is not known.
  EXPECT_EQ(found(stamped(kNone, {{1, 0, 9, 1}, {5, 1, 9, 1}, {6, 900, 9, 2}})), (Moments{1, 6}));
  // It is so far away that it is another matter.
  EXPECT_EQ(found(stamped(kNone, {{1, 0, 9, 1}, {5, 1, 9, 1}, {6, 40'000, 9, 2}})),
            (Moments{1, 5, 6}));
}

TEST(IncarnationTest, WithoutATimeOfChangeNamesOfADirectoryAreVersions) {
  auto all = stamped(kNone, {{1, 0, 9, 1}, {5, 10, 9, 2}, {6, 20, 9, 2}, {7, 30, 9, 2}});
  EXPECT_EQ(found(all), (Moments{1, 7}));
  for (auto& each : all.states) each.object.mode = 040755;
  EXPECT_EQ(found(all), (Moments{1, 5, 6, 7}));
}

TEST(IncarnationTest, WhatIsTakenFromAFileThatIsBeingRemovedIsNoVersion) {
  auto all = stamped(kNone, {{1, 0, 9, 1}, {5, 10, 9, 2}, {6, 5000, 9, 2}, {7, 5001, 0, 0}});
  all.states.back().object = {};
  EXPECT_EQ(found(all, {}, {1}, {7}), (Moments{1, 5}));
  all.stamp = kLast;
  EXPECT_EQ(found(all, {}, {1}, {7}), (Moments{1, 5}));
}

}  // namespace
}  // namespace mariner::uvfs

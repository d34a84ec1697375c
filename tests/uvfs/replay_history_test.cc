#include "uvfs/replay_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>

namespace mariner::uvfs {
namespace {

using ifsck::FsBlock;
using Copy = ReplayHistory::Copy;

ReplayHistory::Moment moment(std::uint64_t at) {
  return {SequenceNumber{at}, VersionTime{10 * at}};
}
SequenceNumber at(std::uint64_t number) { return SequenceNumber{number}; }
std::vector<std::uint64_t> changes(const ReplayHistory& history, FsBlock block, std::uint64_t from,
                                   std::uint64_t to) {
  std::vector<std::uint64_t> out;
  for (const auto& each : history.changes_of(block, at(from), at(to))) {
    EXPECT_EQ(each.time.ns, 10 * each.at.value);
    out.push_back(each.at.value);
  }
  return out;
}
using Numbers = std::vector<std::uint64_t>;

TEST(ReplayHistoryTest, HasTheNewestCopyThatIsInTheLog) {
  ReplayHistory history;
  const LoggedTransaction one{.copies = {{7, 10}, {8, 11}}};
  const LoggedTransaction two{.copies = {{7, 20, true}}};
  history.move_to(moment(5));
  history.set_active(true);
  history.move_to(moment(6));
  history.push_back(one);
  history.move_to(moment(9));
  history.push_back(two);
  history.move_to(moment(12));
  history.pop_front(one);
  history.move_to(moment(15));
  history.pop_front(two);
  history.finish();
  EXPECT_EQ(history.copy_of(7, at(5)), std::nullopt);
  EXPECT_EQ(history.copy_of(7, at(6)), (Copy{10, false}));
  EXPECT_EQ(history.copy_of(7, at(8)), (Copy{10, false}));
  EXPECT_EQ(history.copy_of(7, at(9)), (Copy{20, true}));
  EXPECT_EQ(history.copy_of(7, at(14)), (Copy{20, true}));
  EXPECT_EQ(history.copy_of(7, at(15)), std::nullopt);
  EXPECT_EQ(history.copy_of(8, at(11)), (Copy{11, false}));
  EXPECT_EQ(history.copy_of(8, at(12)), std::nullopt);
  EXPECT_EQ(history.copy_of(9, at(12)), std::nullopt);
  EXPECT_EQ(changes(history, 7, 5, 100), (Numbers{6, 9, 15}));
  EXPECT_EQ(changes(history, 7, 6, 9), Numbers{9});
  EXPECT_EQ(changes(history, 8, 5, 100), (Numbers{6, 12}));
  EXPECT_EQ(history.changed(at(6), at(12)), (std::vector<FsBlock>{7, 8}));
}

TEST(ReplayHistoryTest, KnowsWhatIsRevoked) {
  ReplayHistory history;
  history.move_to(moment(1));
  history.set_active(true);
  const LoggedTransaction one{.copies = {{7, 10}, {8, 11}}, .revoked = {8}};
  const LoggedTransaction two{.revoked = {7, 9}};
  const LoggedTransaction three{.copies = {{7, 30}, {9, 31}}};
  const auto first = history.push_back(one);
  EXPECT_EQ(history.is_revoked(7, first), false);
  EXPECT_EQ(history.is_revoked(8, first), true);
  history.move_to(moment(2));
  history.push_back(two);
  EXPECT_EQ(history.is_revoked(7, first), true);
  history.move_to(moment(3));
  history.push_back(three);
  history.move_to(moment(4));
  history.pop_back(three);
  history.pop_back(two);
  history.finish();
  EXPECT_EQ(history.copy_of(7, at(1)), (Copy{10, false}));
  EXPECT_EQ(history.copy_of(8, at(1)), std::nullopt);
  EXPECT_EQ(history.copy_of(7, at(2)), std::nullopt);
  EXPECT_EQ(history.copy_of(7, at(3)), (Copy{30, false}));
  EXPECT_EQ(history.copy_of(9, at(3)), (Copy{31, false}));
  EXPECT_EQ(history.copy_of(7, at(4)), (Copy{10, false}));
  EXPECT_EQ(history.copy_of(9, at(4)), std::nullopt);
}

TEST(ReplayHistoryTest, ChangesWhatIsInTheLogWithASwitch) {
  ReplayHistory history;
  const LoggedTransaction one{.copies = {{7, 10}}};
  history.move_to(moment(0));
  history.push_back(one);
  history.move_to(moment(3));
  history.set_active(true);
  history.set_active(true);
  history.move_to(moment(5));
  history.touch_all();
  history.move_to(moment(6));
  history.set_active(false);
  history.pop_front(one);
  history.move_to(moment(8));
  history.set_active(true);
  history.finish();
  EXPECT_EQ(history.copy_of(7, at(2)), std::nullopt);
  EXPECT_EQ(history.copy_of(7, at(3)), (Copy{10, false}));
  EXPECT_EQ(history.copy_of(7, at(5)), (Copy{10, false}));
  EXPECT_EQ(history.copy_of(7, at(6)), std::nullopt);
  EXPECT_EQ(changes(history, 7, 0, 100), (Numbers{3, 5, 6}));
  EXPECT_EQ(history.changed(at(3), at(5)), std::vector<FsBlock>{7});
  EXPECT_EQ(history.changed(at(7), at(8)), std::vector<FsBlock>{});
}

// What it said then is kept where it was read again, as if it were another.
TEST(ReplayHistoryTest, HasAChangeWhereATransactionCameAgain) {
  ReplayHistory history;
  const LoggedTransaction one{.copies = {{7, 10}}};
  history.move_to(moment(1));
  history.set_active(true);
  history.push_back(one);
  history.move_to(moment(2));
  history.pop_back(one);
  history.push_back(one);
  history.finish();
  EXPECT_EQ(changes(history, 7, 1, 2), Numbers{2});
  EXPECT_EQ(history.copy_of(7, at(2)), (Copy{10, false}));
}

// Against a log that is looked through each time.
TEST(ReplayHistoryTest, IsWhatTheLogSaysAtEachMoment) {
  std::mt19937_64 random(3);
  ReplayHistory history;
  std::deque<LoggedTransaction> log;
  std::map<std::uint64_t, std::map<FsBlock, Copy>> expected;
  bool active = false;
  constexpr std::uint64_t kMoments = 3000;
  for (std::uint64_t number = 1; number <= kMoments; ++number) {
    history.move_to(moment(number));
    for (auto i = random() % 3; i > 0; --i) {
      LoggedTransaction one;
      for (auto j = random() % 5; j > 0; --j) {
        one.copies.push_back({random() % 12, 1 + static_cast<ifsck::JournalBlock>(random() % 99),
                              random() % 2 == 0});
      }
      if (random() % 3 == 0) one.revoked.push_back(random() % 12);
      history.push_back(one);
      log.push_back(one);
    }
    for (auto i = random() % 3; i > 0 && log.size() > 60; --i) {
      history.pop_front(log.front());
      log.pop_front();
    }
    if (random() % 10 == 0 && !log.empty()) {
      history.pop_back(log.back());
      log.pop_back();
    }
    if (random() % 20 == 0) history.set_active(active = !active);
    std::map<FsBlock, Copy>& now = expected[number];
    for (const LoggedTransaction& each : log) {
      for (const auto& copy : each.copies) now[copy.to] = {copy.from, copy.escaped};
      for (const FsBlock block : each.revoked) now.erase(block);
    }
    if (!active) now.clear();
  }
  history.finish();
  for (FsBlock block = 0; block < 12; ++block) {
    const Numbers all = changes(history, block, 1, kMoments);
    const std::set<std::uint64_t> changed(all.begin(), all.end());
    EXPECT_EQ(all.size(), changed.size());
    std::optional<Copy> last;
    for (const auto& [number, copies] : expected) {
      const auto found = copies.find(block);
      std::optional<Copy> copy;
      if (found != copies.end()) copy = found->second;
      EXPECT_EQ(history.copy_of(block, at(number)), copy) << number;
      if (number > 1 && copy != last) {
        EXPECT_TRUE(changed.contains(number)) << number;
        EXPECT_TRUE(std::ranges::count(history.changed(at(number - 1), at(number)), block) > 0);
      }
      last = copy;
    }
  }
}

}  // namespace
}  // namespace mariner::uvfs

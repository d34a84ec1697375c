#include "server/volume/extent_locks.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace mariner::volume {
namespace {

class ExtentLocksTest : public ::testing::Test {
 protected:
  void shared(std::string name, BlockRange range) {
    locks_.shared(range, [this, name] { ran_.push_back(name); });
  }
  void exclusive(std::string name, BlockRange range) {
    locks_.exclusive(range, [this, name](ExtentLocks::LockId id) {
      ran_.push_back(name);
      ids_.push_back(id);
    });
  }
  void expect(std::vector<std::string> expected) {
    EXPECT_EQ(ran_, expected);
    ran_.clear();
  }

  ExtentLocks locks_;
  std::vector<std::string> ran_;
  std::vector<ExtentLocks::LockId> ids_;
};

TEST_F(ExtentLocksTest, FreeRunsAtOnce) {
  shared("a", {{0}, {1}});
  exclusive("b", {{0}, {1}});
  expect({"a", "b"});
  EXPECT_FALSE(locks_.idle());
  locks_.unlock(ids_[0]);
  EXPECT_TRUE(locks_.idle());
}

TEST_F(ExtentLocksTest, OverlapWaitsNeighboursDoNot) {
  exclusive("x", {{10}, {2}});
  shared("overlaps", {{11}, {4}});
  shared("before", {{9}, {1}});
  shared("behind", {{12}, {1}});
  // Behind overlaps a waiter, and so waits its turn.
  expect({"x", "before"});
  locks_.unlock(ids_[0]);
  expect({"overlaps", "behind"});
}

TEST_F(ExtentLocksTest, NobodyOvertakesAWaiterThatItOverlaps) {
  exclusive("x", {{0}, {2}});
  exclusive("wide", {{1}, {10}});
  shared("late", {{5}, {1}});
  exclusive("elsewhere", {{20}, {1}});
  expect({"x", "elsewhere"});
  locks_.unlock(ids_[0]);
  expect({"wide"});
  locks_.unlock(ids_[2]);
  expect({"late"});
}

TEST_F(ExtentLocksTest, WorkMayUnlockAndAskAgain) {
  exclusive("x", {{0}, {1}});
  locks_.exclusive({{0}, {1}}, [this](ExtentLocks::LockId id) {
    ran_.push_back("y");
    shared("inner", {{0}, {1}});
    locks_.unlock(id);
    ran_.push_back("y ends");
  });
  shared("z", {{0}, {1}});
  locks_.unlock(ids_[0]);
  expect({"x", "y", "y ends", "z", "inner"});
  EXPECT_TRUE(locks_.idle());
}

TEST(ExtentLocksDeath, UnlockingTwiceIsABug) {
  ExtentLocks locks;
  ExtentLocks::LockId held = 0;
  locks.exclusive({{0}, {1}}, [&](ExtentLocks::LockId id) { held = id; });
  locks.unlock(held);
  EXPECT_DEATH(locks.unlock(held), "CHECK failed");
}

// No two holders overlap, requests that overlap run in their order, and all run in the end.
TEST(ExtentLocksModel, ExclusiveFairAndLive) {
  for (unsigned seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    struct Request {
      BlockRange range;
      bool ran = false;
    };
    ExtentLocks locks;
    std::vector<Request> requests;
    std::vector<std::pair<ExtentLocks::LockId, BlockRange>> held;
    const auto runs = [&](std::size_t number) {
      const BlockRange range = requests[number].range;
      requests[number].ran = true;
      for (const auto& [id, other] : held) ASSERT_FALSE(other.overlaps(range));
      for (std::size_t i = 0; i < number; ++i) {
        ASSERT_TRUE(requests[i].ran || !requests[i].range.overlaps(range)) << "overtaken";
      }
    };
    for (int i = 0; i < 60; ++i) {
      if (random() % 3 == 0 && !held.empty()) {
        const auto it = held.begin() + static_cast<std::ptrdiff_t>(random() % held.size());
        const ExtentLocks::LockId id = it->first;
        held.erase(it);
        locks.unlock(id);
        continue;
      }
      const std::size_t number = requests.size();
      requests.push_back({{{random() % 20}, {1 + random() % 6}}, false});
      if (random() % 2 == 0) {
        locks.shared(requests[number].range, [&runs, number] { runs(number); });
      } else {
        locks.exclusive(requests[number].range, [&, number](ExtentLocks::LockId id) {
          runs(number);
          held.emplace_back(id, requests[number].range);
        });
      }
    }
    while (!held.empty()) {
      const ExtentLocks::LockId id = held.front().first;
      held.erase(held.begin());
      locks.unlock(id);
    }
    ASSERT_TRUE(locks.idle());
    for (const Request& request : requests) ASSERT_TRUE(request.ran);
  }
}

}  // namespace
}  // namespace mariner::volume

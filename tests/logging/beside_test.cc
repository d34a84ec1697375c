#include "logging/beside.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

namespace mariner::logging {
namespace {

TEST(BesideTest, WhatIsBegunHappensInOrderBesideItsOwner) {
  std::vector<int> done;
  std::promise<void> may_go_on;
  {
    Beside beside("beside-test");
    auto first = beside.begin([&]() -> Result<void> {
      may_go_on.get_future().wait();  // its owner goes on meanwhile
      done.push_back(1);
      return {};
    });
    auto second = beside.begin([&]() -> Result<void> {
      done.push_back(2);
      return Error{ErrorCode::kIo, "the second one fails"};
    });
    may_go_on.set_value();
    EXPECT_TRUE(first.get());
    const Result<void> failed = second.get();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().message, "the second one fails");
    static_cast<void>(beside.begin([&]() -> Result<void> {
      done.push_back(3);
      return {};
    }));
  }  // waits for what nobody waited for
  EXPECT_EQ(done, (std::vector<int>{1, 2, 3}));
}

TEST(BesideTest, TellsWhatItUsedOfAProcessor) {
  using namespace std::chrono_literals;
  Beside beside("beside-test");
  std::atomic<bool> enough = false;
  auto work = beside.begin([&]() -> Result<void> {
    while (!enough) {
    }
    return {};
  });
  while (beside.cpu_time() < 5ms) std::this_thread::yield();
  enough = true;
  EXPECT_TRUE(work.get());
}

}  // namespace
}  // namespace mariner::logging

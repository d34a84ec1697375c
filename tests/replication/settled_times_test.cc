#include "replication/settled_times.h"

#include <gtest/gtest.h>

#include <chrono>

namespace mariner::replication {
namespace {

using namespace std::chrono_literals;

TEST(SettledTimes, NothingIsBehindWhatIsSettled) {
  SettledTimes times;
  EXPECT_EQ(times.behind({0}, 5s), 0s);
  times.note({10}, 5s);
  EXPECT_EQ(times.behind({10}, 9s), 0s);
  EXPECT_EQ(times.behind({11}, 9s), 0s);
}

TEST(SettledTimes, BehindSinceTheFirstThatIsMissing) {
  SettledTimes times;
  times.note({10}, 5s);
  times.note({10}, 6s);
  times.note({20}, 7s);
  times.note({30}, 8s);
  EXPECT_EQ(times.behind({9}, 10s), 5s);
  EXPECT_EQ(times.behind({10}, 10s), 3s);
  EXPECT_EQ(times.behind({19}, 10s), 3s);
  EXPECT_EQ(times.behind({20}, 10s), 2s);
  EXPECT_EQ(times.behind({30}, 10s), 0s);
}

// A number every 100 ms for a day, in bounded memory.
TEST(SettledTimes, TheLongerAgoTheCoarser) {
  SettledTimes times;
  constexpr std::uint64_t kNotes = 864'000;
  for (std::uint64_t i = 1; i <= kNotes; ++i) times.note({i}, i * 100ms);
  const std::chrono::nanoseconds now = kNotes * 100ms;
  for (std::uint64_t missing = 1; missing <= kNotes; missing += 1 + missing % 97) {
    const std::chrono::nanoseconds exact = now - missing * 100ms;
    const std::chrono::nanoseconds said = times.behind({missing - 1}, now);
    EXPECT_LE(said, exact);
    EXPECT_GE(said, exact - exact / 10) << missing;
  }
}

}  // namespace
}  // namespace mariner::replication

#include "uvfs/program/line_diff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>

namespace mariner::uvfs {
namespace {

// The second text, made from the first and the changes.
std::string applied(const std::vector<LineChange>& changes, const Texts& texts) {
  const auto before = lines_of(texts.before);
  const auto after = lines_of(texts.after);
  std::string made;
  std::size_t at = 0;
  for (const LineChange& each : changes) {
    for (; at < each.before; ++at) made += before[at];
    for (std::size_t i = each.after; i < each.after_end; ++i) made += after[i];
    at = each.before_end;
  }
  for (; at < before.size(); ++at) made += before[at];
  return made;
}

std::size_t cost_of(const std::vector<LineChange>& changes) {
  std::size_t cost = 0;
  for (const LineChange& each : changes) {
    cost += each.before_end - each.before + each.after_end - each.after;
  }
  return cost;
}

// By the longest common subsequence, slowly.
std::size_t least_cost(const Texts& texts) {
  const auto before = lines_of(texts.before);
  const auto after = lines_of(texts.after);
  std::vector<std::vector<std::size_t>> most(before.size() + 1,
                                             std::vector<std::size_t>(after.size() + 1));
  for (std::size_t x = 1; x <= before.size(); ++x) {
    for (std::size_t y = 1; y <= after.size(); ++y) {
      most[x][y] = before[x - 1] == after[y - 1] ? most[x - 1][y - 1] + 1
                                                 : std::max(most[x - 1][y], most[x][y - 1]);
    }
  }
  return before.size() + after.size() - 2 * most[before.size()][after.size()];
}

TEST(LineDiff, IsTheShortest) {
  std::mt19937 random(12);
  for (int round = 0; round < 3000; ++round) {
    const auto text = [&] {
      std::string made;
      for (auto lines = random() % 14; lines > 0; --lines) {
        made += std::string(1, static_cast<char>('a' + random() % 4)) + "\n";
      }
      return made;
    };
    const std::string before = text();
    const std::string after = text();
    const auto changes = changed_lines({before, after});
    ASSERT_EQ(applied(changes, {before, after}), after);
    ASSERT_EQ(cost_of(changes), least_cost({before, after})) << before << "->\n" << after;
  }
}

TEST(LineDiff, TextsWithNothingInCommonTakeNoTime) {
  std::mt19937 random(7);
  std::string before;
  std::string after;
  for (int i = 0; i < 60'000; ++i) {
    before += std::to_string(random() % 500) + "\n";
    after += std::to_string(random() % 500) + "\n";
  }
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(applied(changed_lines({before, after}), {before, after}), after);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(60));
}

TEST(LineDiff, IsWrittenAsDiffDoes) {
  std::string before;
  for (int i = 1; i <= 20; ++i) before += std::to_string(i) + "\n";
  std::string after = before;
  after.replace(after.find("5\n"), 2, "five\n");
  after += "end";
  EXPECT_EQ(unified_diff({before, after}, {"one", "two"}),
            "--- one\n+++ two\n"
            "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
            "@@ -18,3 +18,4 @@\n 18\n 19\n 20\n+end\n\\ No newline at end of file\n");
  EXPECT_EQ(unified_diff({"", "a\n"}, {"x", "y"}), "--- x\n+++ y\n@@ -0,0 +1 @@\n+a\n");
  EXPECT_EQ(unified_diff({"a\n", ""}, {"x", "y"}), "--- x\n+++ y\n@@ -1 +0,0 @@\n-a\n");
  EXPECT_EQ(unified_diff({before, before}, {"x", "y"}), "");
}

}  // namespace
}  // namespace mariner::uvfs

#include "ifsck/completion_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "tests/ifsck/made_operations.h"

namespace mariner::ifsck {
namespace {

using CompletionChoiceTest = OperationsTest;

// What is as it was, and has a name, has it afterwards; whatever is done to it later.
TEST_P(CompletionChoiceTest, WhatIsWholeStays) {
  make(
      "rm \"/many/a file with a long name, number 300\"\n"
      "write CONTENT \"/many/a file with a long name, number 300\"\n"
      "rm \"/many/a file with a long name, number 301\"\n"
      "ln \"/many/a file with a long name, number 302\" "
      "\"/many/a file with a long name, number 301\"\n"
      "unlink \"/many/a file with a long name, number 302\"\n" +
      std::string(kSomeOperations));
  std::uint64_t whole = 0;
  for (unsigned round = 0; round < 10; ++round) {
    std::set<std::uint64_t> late;
    for (std::size_t i = 0; i < changed_.size(); ++i) {
      // One alone is written, or most are.
      const bool written =
          round < changed_.size() / 2 ? i == 2 * round : (i * 7 + round * round) % 5 < 3;
      if (!written) late.insert(changed_[i]);
    }
    write(late);
    Overlay overlay;
    Overlay undone;
    const MomentReport report = check(overlay);
    (void)check(undone, {});
    const auto ours = Tree::of(*past_, at_, overlay);
    const auto without = Tree::of(*past_, at_, undone);
    for (const auto& [path, content] : tree({})) {
      const auto still = without.find(path);
      if (still == without.end() || still->second != content) continue;
      const auto has_it = [&](const auto& each) { return each.second == content; };
      // (One of two names may go.)
      const bool kept = std::ranges::count_if(without, has_it) == 1
                            ? ours.contains(path) && ours.at(path) == content
                            : std::ranges::any_of(ours, has_it);
      EXPECT_TRUE(kept) << "round " << round << " " << path << "\n" << text(ours, without, report);
      ++whole;
    }
  }
  EXPECT_GT(whole, 10u * 500u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, CompletionChoiceTest, ::testing::ValuesIn(kOperationKinds));

}  // namespace
}  // namespace mariner::ifsck

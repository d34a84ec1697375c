#include "ifsck/completion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "tests/ifsck/made_operations.h"

namespace mariner::ifsck {
namespace {

class CompletionTest : public OperationsTest {
 protected:
  // Within an inode there may be no room for a name that is kept and one that came: that one is in
  // lost+found.
  static bool make_room(std::map<std::string, std::string>& wanted,
                        const std::map<std::string, std::string>& ours) {
    if (std::string_view(GetParam()).find("inline_data") == std::string_view::npos) return false;
    if (!wanted.contains("/a/b/sparse")) return false;
    const auto moved = wanted.find("/a/b/moved");
    for (const auto& [path, content] : ours) {
      if (path.starts_with("/lost+found/") && content == moved->second) {
        wanted.erase(moved);
        wanted.emplace(path, content);
        return true;
      }
    }
    return false;
  }
};

// Whichever block is missing, the operations are done, or the file system is as it was written.
TEST_P(CompletionTest, OneMissingBlockIsMadeUpFor) {
  make(kSomeOperations);
  std::size_t completed = 0;
  for (const std::uint64_t block : changed_) {
    write({block});
    Overlay overlay;
    const MomentReport report = check(overlay);
    if (report.sound) continue;
    const auto ours = Tree::of(*past_, at_, overlay);
    auto wanted = tree(end_);
    // (Contents that were not written yet are no matter of a check.)
    for (auto& [path, content] : wanted) {
      const auto found = ours.find(path);
      const auto inode = content.substr(0, content.find(' '));
      if (found != ours.end() && found->second.starts_with(inode + " ")) content = found->second;
    }
    // (That a file goes has not begun where all of it is as it was before.)
    Overlay undone;
    (void)check(undone, {});
    const auto without = Tree::of(*past_, at_, undone);
    for (const auto& [path, content] : tree({})) {
      const auto still = without.find(path);
      const auto has_it = [&](const auto& each) { return each.second == content; };
      if (still != without.end() && has_it(*still) && std::ranges::count_if(without, has_it) == 1) {
        wanted.emplace(path, content);
      }
    }
    const bool no_room = make_room(wanted, ours);
    const std::string what = "block " + std::to_string(block) + "\n" + text(ours, wanted, report);
    // (Or descriptors were behind, and nothing is missing.)
    EXPECT_TRUE(!report.completed.empty() ||
                std::ranges::any_of(report.repairs,
                                    [](const Repair& each) {
                                      return each.finding.code == Finding::Code::kEntryInode &&
                                             each.done == Repair::Done::kFieldSet;
                                    }))
        << what;
    EXPECT_EQ(report.undone_because.empty(), !no_room) << what << report.undone_because;
    EXPECT_TRUE(ours == wanted) << what;
    ++completed;
  }
  EXPECT_GE(completed, 4u);
}

// Nothing of it is in the directories and inodes yet: it has not begun.
TEST_P(CompletionTest, WhatHasNotBegunIsNotDone) {
  make(kSomeOperations);
  std::set<std::uint64_t> late(changed_.begin(), changed_.end());
  MadeImage::run("true");
  Overlay none;
  write(late);
  // (No write came before: the moment is that of the image.)
  Overlay overlay;
  const MomentReport report = check(overlay);
  EXPECT_EQ(report.verdict, Verdict::kClean);
  EXPECT_TRUE(report.completed.empty());
}

TEST_P(CompletionTest, HalfOfTheBlocksInAnyOrder) {
  make(kSomeOperations);
  std::uint64_t with = 0;
  std::uint64_t without = 0;
  for (unsigned round = 0; round < 12; ++round) {
    std::set<std::uint64_t> late;
    for (std::size_t i = 0; i < changed_.size(); ++i) {
      if ((i * 7 + round * round + round) % 3 == 0) late.insert(changed_[i]);
    }
    write(late);
    Overlay overlay;
    const MomentReport report = check(overlay);
    Overlay undone;
    const MomentReport other = check(undone, {});
    EXPECT_TRUE(other.completed.empty());
    const auto lost = [](const std::map<std::string, std::string>& tree) {
      return static_cast<std::uint64_t>(std::ranges::count_if(
          tree, [](const auto& each) { return each.first.starts_with("/lost+found/"); }));
    };
    with += lost(Tree::of(*past_, at_, overlay));
    without += lost(Tree::of(*past_, at_, undone));
  }
  EXPECT_LE(with, without);
  RecordProperty("lost_and_found", static_cast<int>(with));
  RecordProperty("lost_and_found_undone", static_cast<int>(without));
}

TEST_P(CompletionTest, NothingIsCompletedFromBehindTheWindow) {
  make(kSomeOperations);
  write({changed_.back()});
  for (const std::uint64_t block : changed_) {
    write({block});
    Overlay overlay;
    const MomentReport report = check(overlay, std::chrono::milliseconds(500));
    EXPECT_TRUE(report.completed.empty());
    if (report.undone_because.empty()) continue;  // there was nothing to be completed
    EXPECT_EQ(report.undone_because, "nothing was written soon afterwards");
    return;
  }
  FAIL() << "no block makes a difference";
}

INSTANTIATE_TEST_SUITE_P(Kinds, CompletionTest, ::testing::ValuesIn(kOperationKinds));

TEST(CompletedOperation, IsDescribed) {
  using Kind = CompletedOperation::Kind;
  EXPECT_EQ(describe(CompletedOperation{Kind::kCreated, 12, "here"}),
            "inode 12, \"here\", is created");
  EXPECT_EQ(describe(CompletedOperation{Kind::kShrunk, 13, ""}), "inode 13 is shrunk");
  std::set<std::string_view> names;
  for (const Kind kind : {Kind::kCreated, Kind::kRemoved, Kind::kRenamed, Kind::kGrown,
                          Kind::kShrunk, Kind::kChanged}) {
    names.insert(operation_name(kind));
  }
  EXPECT_EQ(names.size(), 6u);
}

}  // namespace
}  // namespace mariner::ifsck

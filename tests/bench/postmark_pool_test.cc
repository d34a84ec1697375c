#include "tests/bench/postmark_pool.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace mariner::bench {
namespace {

// What a file system would have, and how often each action came.
class Files {
 public:
  void apply(const PostmarkStep& step) {
    ++counts[step.action];
    const auto found = sizes.find(step.file.number);
    if (step.action == PostmarkAction::kCreate) {
      EXPECT_EQ(found, sizes.end());
      EXPECT_TRUE(numbers_.insert(step.file.number).second);
      sizes[step.file.number] = step.bytes;
      return;
    }
    ASSERT_NE(found, sizes.end());
    EXPECT_EQ(found->second, step.file.bytes);
    switch (step.action) {
      case PostmarkAction::kRemove:
        EXPECT_EQ(step.bytes, 0u);
        sizes.erase(found);
        break;
      case PostmarkAction::kRead: EXPECT_EQ(step.bytes, found->second); break;
      default: EXPECT_GE(step.bytes, 1u); found->second += step.bytes;
    }
  }

  std::map<PostmarkAction, int> counts;
  std::map<std::uint32_t, std::uint32_t> sizes;

 private:
  std::set<std::uint32_t> numbers_;
};

void run(PostmarkPool& pool, Files& files, int transactions) {
  for (int i = 0; i < transactions; ++i) {
    for (const auto& step : pool.transaction()) files.apply(step);
  }
}

TEST(PostmarkPool, FillsWithFilesOfAllSizesInAllFolders) {
  PostmarkPool pool({.files = 2000, .folders = 10});
  std::set<std::uint32_t> folders;
  std::uint64_t bytes = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto step = pool.fill();
    EXPECT_EQ(step.action, PostmarkAction::kCreate);
    EXPECT_GE(step.bytes, 500u);
    EXPECT_LE(step.bytes, 10000u);
    bytes += step.bytes;
    folders.insert(step.file.folder);
  }
  EXPECT_EQ(pool.size(), 2000u);
  EXPECT_EQ(folders.size(), 10u);
  EXPECT_EQ(*folders.rbegin(), 9u);
  EXPECT_NEAR(static_cast<double>(bytes) / 2000, 5250, 250);
}

TEST(PostmarkPool, ATransactionMakesOrRemovesAndReadsOrAppends) {
  PostmarkPool pool({.files = 3000});
  Files files;
  for (int i = 0; i < 3000; ++i) files.apply(pool.fill());
  run(pool, files, 10000);
  EXPECT_NEAR(files.counts[PostmarkAction::kCreate] - 3000, 5000, 250);
  EXPECT_NEAR(files.counts[PostmarkAction::kRemove], 5000, 250);
  EXPECT_NEAR(files.counts[PostmarkAction::kRead], 5000, 250);
  EXPECT_NEAR(files.counts[PostmarkAction::kAppend], 5000, 250);
  EXPECT_EQ(files.sizes.size(), pool.size());
}

TEST(PostmarkPool, NothingIsAppendedPastTheGreatestSize) {
  PostmarkPool pool({.files = 5, .size_min = 10, .size_max = 12, .read_bias = 0});
  Files files;
  for (int i = 0; i < 5; ++i) files.apply(pool.fill());
  run(pool, files, 500);
  EXPECT_GT(files.counts[PostmarkAction::kAppend], 0);
  for (const auto& [number, bytes] : files.sizes) EXPECT_LE(bytes, 12u) << number;
}

TEST(PostmarkPool, BiasesOfNoneAndOfAll) {
  PostmarkPool reads({.files = 1, .read_bias = 10, .create_bias = 10});
  Files files;
  run(reads, files, 200);
  EXPECT_EQ(files.counts[PostmarkAction::kCreate], 200);
  EXPECT_EQ(files.counts[PostmarkAction::kRead], 200);
  PostmarkPool removes({.files = 3, .create_bias = 0});
  Files few;
  for (int i = 0; i < 3; ++i) few.apply(removes.fill());
  run(removes, few, 10);  // with an empty pool it has nothing to do
  EXPECT_EQ(few.counts[PostmarkAction::kRemove], 3);
  EXPECT_TRUE(removes.transaction().empty());
}

TEST(PostmarkPool, InTheEndAllIsRemoved) {
  PostmarkPool pool({.files = 100, .folders = 7});
  Files files;
  for (int i = 0; i < 100; ++i) files.apply(pool.fill());
  run(pool, files, 300);
  while (const auto step = pool.empty()) files.apply(*step);
  EXPECT_TRUE(files.sizes.empty());
  EXPECT_EQ(pool.size(), 0u);
}

TEST(PostmarkPool, TheSameSeedSaysTheSame) {
  PostmarkPool one({.seed = 7});
  PostmarkPool same({.seed = 7});
  PostmarkPool other({.seed = 8});
  bool differs = false;
  for (int i = 0; i < 50; ++i) {
    const auto step = one.fill();
    EXPECT_EQ(step.bytes, same.fill().bytes);
    differs |= step.bytes != other.fill().bytes;
  }
  EXPECT_TRUE(differs);
}

}  // namespace
}  // namespace mariner::bench

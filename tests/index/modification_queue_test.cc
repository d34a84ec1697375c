#include "index/modification_queue.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

namespace mariner::index {
namespace {

Modification bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string text_of(Modification modification) {
  return {reinterpret_cast<const char*>(modification.data()), modification.size()};
}

class ModificationQueueTest : public ::testing::Test {
 protected:
  std::vector<std::string> texts(const ModificationQueue& queue) const {
    std::vector<std::string> all;
    pool_.for_each(queue, [&](Modification m) { all.push_back(text_of(m)); });
    EXPECT_EQ(all.size(), queue.count());
    return all;
  }
  void append(ModificationQueue& queue, const std::string& text) {
    pool_.append(queue, bytes_of(text));
  }
  ModificationPool pool_{{.chunk_bytes = 64}};
};

TEST_F(ModificationQueueTest, KeepsTheOrderAcrossChunksAndLengths) {
  ModificationQueue queue;
  std::vector<std::string> expected;
  for (int i = 0; i < 100; ++i) {
    expected.push_back(std::string(static_cast<std::size_t>(i % 7 == 0 ? 3 : 20), 'a') +
                       std::to_string(i));
    append(queue, expected.back());
  }
  EXPECT_EQ(texts(queue), expected);
  pool_.clear(queue);
}

TEST_F(ModificationQueueTest, ModificationsOfOneLengthCostNoMoreThanTheirBytes) {
  ModificationQueue queue;
  for (int i = 0; i < 7; ++i) append(queue, "12345678");  // 8 + 7 x 8 = 64
  EXPECT_EQ(pool_.used_bytes(), 64u);
  append(queue, "12345678");
  EXPECT_EQ(pool_.used_bytes(), 128u);
  pool_.clear(queue);
  EXPECT_EQ(pool_.used_bytes(), 0u);
}

TEST_F(ModificationQueueTest, TheLongestFillsAChunk) {
  ModificationQueue queue;
  const std::string longest(pool_.modification_bytes_max(), 'x');
  append(queue, longest);
  EXPECT_EQ(pool_.used_bytes(), 64u);
  EXPECT_EQ(texts(queue), std::vector<std::string>{longest});
  pool_.clear(queue);
  EXPECT_DEATH(append(queue, longest + 'x'), "");
}

TEST_F(ModificationQueueTest, SplicedOnesStandBehindAndTakeWhatFollows) {
  ModificationQueue queue;
  ModificationQueue from;
  append(queue, "a");
  append(from, "b");
  append(from, "c");
  pool_.splice(queue, std::move(from));
  EXPECT_TRUE(from.empty());
  append(queue, "d");
  append(from, "e");
  EXPECT_EQ(texts(queue), (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_EQ(texts(from), std::vector<std::string>{"e"});
  pool_.clear(queue);
  pool_.splice(queue, std::move(from));  // into an empty one
  EXPECT_EQ(texts(queue), std::vector<std::string>{"e"});
  pool_.splice(queue, ModificationQueue{});
  EXPECT_EQ(texts(queue), std::vector<std::string>{"e"});
  pool_.clear(queue);
}

TEST_F(ModificationQueueTest, MemoryThatWasTakenBackIsUsedAgain) {
  ModificationQueue queue;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 70; ++i) append(queue, "12345678");
    EXPECT_EQ(pool_.used_bytes(), 640u);
    EXPECT_EQ(texts(queue).size(), 70u);
    pool_.clear(queue);
    EXPECT_EQ(pool_.used_bytes(), 0u);
  }
}

TEST_F(ModificationQueueTest, ManyQueuesDoNotMix) {
  std::mt19937_64 random(1);
  std::vector<ModificationQueue> queues(10);
  std::vector<std::vector<std::string>> model(10);
  for (int i = 0; i < 5'000; ++i) {
    const std::size_t at = random() % 10;
    const std::size_t to = random() % 10;
    switch (random() % 40) {
      case 0:
        pool_.clear(queues[at]);
        model[at].clear();
        break;
      case 1:
        if (at == to) break;
        pool_.splice(queues[to], std::move(queues[at]));
        model[to].insert(model[to].end(), model[at].begin(), model[at].end());
        model[at].clear();
        break;
      default:
        model[at].push_back(std::string(random() % 12, '.') + std::to_string(i));
        append(queues[at], model[at].back());
        break;
    }
  }
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(texts(queues[i]), model[i]);
    pool_.clear(queues[i]);
  }
  EXPECT_EQ(pool_.used_bytes(), 0u);
}

TEST_F(ModificationQueueTest, PendingAreThoseOfACommitThenThoseSince) {
  ModificationQueue taken;
  ModificationQueue since;
  EXPECT_TRUE(PendingModifications(pool_, nullptr).empty());
  append(taken, "a");
  append(taken, "b");
  append(since, "c");
  const PendingModifications pending(pool_, &taken, &since);
  std::string all;
  pending.for_each([&](Modification m) { all += text_of(m); });
  EXPECT_EQ(all, "abc");
  EXPECT_EQ(pending.count(), 3u);
  EXPECT_EQ(PendingModifications(pool_, nullptr, &since).count(), 1u);
  pool_.clear(taken);
  pool_.clear(since);
}

}  // namespace
}  // namespace mariner::index

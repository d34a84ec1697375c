// The campaign against the index: from each seed one history of a tree on a disk that loses power
// and, in some histories, lies, fails and is damaged, beside a map of what the tree must hold.
//
// What is asked is answered as the map does, or not at all where something is damaged; what is
// damaged is found, and made again from the log. See seeds.h for how to run one seed alone.
#include <gtest/gtest.h>

#include <iostream>
#include <random>
#include <string>

#include "tests/index/tree_rig.h"
#include "tests/support/seeds.h"

namespace mariner::test {
namespace {

using index::BTree;
using index::IndexKey;
using index::KeyRange;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kSeeds = 15;
#else
constexpr std::uint64_t kSeeds = 150;
#endif
// In each history.
constexpr std::uint64_t kOperations = 7'000;

struct Totals {
  std::uint64_t operations = 0;
  std::uint64_t crashes = 0;
  std::uint64_t repaired = 0;
  std::uint64_t replayed = 0;
  std::uint64_t compared = 0;
};

class Campaign {
 public:
  Campaign(std::uint64_t seed, Totals& totals)
      : random_(seed), options_(options_for(seed)), rig_(options_), totals_(totals) {
    keys_ = 1 + pick(3'000);
    lies_ = pick(2) == 0;
  }

  void run() {
    for (std::uint64_t left = kOperations; left > 0 && !failed();) {
      const std::uint64_t now = std::min(left, 1 + pick(1'500));
      for (std::uint64_t i = 0; i < now; ++i) operate();
      totals_.operations += now;
      left -= now;
      if (lies_) damage();
      disturb();
      compare();
    }
    totals_.replayed += rig_.replayed();
    if (lies_ || failed()) return;
    EXPECT_TRUE(rig_.check().empty());
    EXPECT_TRUE(rig_.errors().empty() || powerless_) << rig_.errors().front();
    EXPECT_EQ(rig_.store().statistics().damaged, 0u);
  }

 private:
  TreeRig::Options options_for(std::uint64_t seed) {
    TreeRig::Options options = TreeRig::small_options(seed);
    options.ascends_within_high = pick(2) == 0;
    if (pick(3) == 0) options.store.cache_bytes = 0;
    if (pick(3) == 0) options.store.replay_max = 200;
    options.store.commit_at = pick(2) == 0 ? 0.8 : 0.05;
    if (pick(4) == 0) options.store.run_dirty_min = 1;
    if (pick(4) == 0) {  // the cache has what short queues do not want: all of it
      options.store.memory_bytes = std::size_t{12} << 20;
      options.store.commit_at_contents = 0.25;
    }
    return options;
  }
  std::uint64_t pick(std::uint64_t below) { return random_() % below; }
  static bool failed() { return ::testing::Test::HasFailure(); }

  void operate() {
    const std::uint64_t high = pick(keys_);
    switch (pick(8)) {
      case 0: erase(high); break;
      case 1: rig_.turn(pick(4)); break;
      case 2: {
        const std::string wrong = rig_.compare_last({{high, 0}, {high, pick(version_ + 2)}});
        if (!lies_) {
          EXPECT_EQ(wrong, "");
        }
        break;
      }
      default: rig_.insert({high, ++version_}, random_()); break;
    }
    if (!rig_.store().has_room()) rig_.settle();
  }

  // Where lookups rely on keys that ascend, none may go.
  void erase(std::uint64_t high) {
    if (options_.ascends_within_high || rig_.model().empty()) return;
    auto victim = rig_.model().lower_bound({high, 0});
    if (victim == rig_.model().end()) victim = rig_.model().begin();
    rig_.erase(IndexKey(victim->first));
  }

  index::BlockAddress any_block() {
    return {static_cast<std::uint32_t>(pick(rig_.store().allocated_blocks() + 1))};
  }

  void damage() {
    const index::IndexSuperblock& shape = rig_.superblock();
    switch (pick(6)) {
      case 0: rig_.disk().drop_next_write(); break;
      case 1:
        rig_.disk().misdirect_next_write(
            shape.offset_of(any_block(), static_cast<unsigned>(pick(2))));
        break;
      case 2:
        rig_.disk().fail_writes(1 + pick(3), static_cast<FaultyDisk::Remains>(pick(3)));
        break;
      case 3: break;
      default:
        rig_.disk().flip_bit(shape.offset_of(any_block(), static_cast<unsigned>(pick(2))) +
                                 pick(options_.block_bytes),
                             static_cast<unsigned>(pick(8)));
        break;
    }
  }

  void disturb() {
    switch (pick(5)) {
      case 0: {
        const Result<void> committed = rig_.commit_all();
        EXPECT_TRUE(committed.has_value() || lies_) << committed.error().message;
        break;
      }
      case 1: rig_.restart(); break;
      case 2: crash(); break;
      case 3:  // in the middle of a write
        rig_.disk().cut_power_after(pick(30));
        rig_.store().commit_all([](const Result<void>&) {});
        rig_.turn(200);
        crash();
        break;
      default: break;
    }
  }

  void crash() {
    rig_.crash();
    powerless_ = true;
    ++totals_.crashes;
  }

  // All of it, both ways; and the last of some ranges at once.
  void compare() {
    ++totals_.compared;
    for (int tries = 0;; ++tries) {
      std::string wrong = rig_.compare();
      if (wrong.empty()) wrong = rig_.compare_each(some_ranges());
      if (wrong.empty()) wrong = rig_.compare_walk(some_ranges());
      if (wrong.empty()) return;
      const std::size_t repaired =
          lies_ && tries < 1'000 ? rig_.repair(tries < 3 && pick(10) == 0) : 0;
      totals_.repaired += repaired;
      if (repaired > 0) continue;
      ADD_FAILURE() << wrong;
      return;
    }
  }

  std::vector<KeyRange> some_ranges() {
    std::vector<KeyRange> ranges;
    for (std::uint64_t high = pick(20); high < keys_; high += 1 + pick(200)) {
      ranges.push_back({{high, 0}, {high, pick(version_ + 2)}});
    }
    return ranges;
  }

  std::mt19937_64 random_;
  const TreeRig::Options options_;
  TreeRig rig_;
  Totals& totals_;
  std::uint64_t keys_ = 1;
  std::uint64_t version_ = 0;
  bool lies_ = false;
  bool powerless_ = false;  // has been
};

TEST(IndexCampaign, WhatIsAnsweredIsRightAndWhatIsDamagedIsMadeAgain) {
  Totals totals;
  std::uint64_t seeds = 0;
  for_seeds(kSeeds, [&](std::uint64_t seed) {
    ++seeds;
    Campaign(seed, totals).run();
  });
  std::cout << "seeds: " << seeds << ", " << totals.operations << " operations, " << totals.crashes
            << " power cuts, " << totals.replayed << " replayed, " << totals.compared
            << " times compared, " << totals.repaired << " blocks made again\n";
}

}  // namespace
}  // namespace mariner::test

#include "logging/pack_shelf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/logging/slot_rig.h"

namespace mariner::logging {
namespace {

using test::SlotRig;

// Three tracks of two records each, two of them packed one by one.
class PackShelfTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(rig_.open());
    rig_.fill_tracks(1, 2);
    rig_.start_packing();
    ASSERT_TRUE(rig_.pack().has_value());
    ASSERT_EQ(rig_.slotted().map().packs().size(), 2u);
    rig_.hooked->before_read = [this](std::uint64_t, std::size_t) { ++reads_; };
  }
  const PackPlace& pack(std::uint64_t id) { return rig_.slotted().map().pack(id); }
  PackShelf shelf() { return rig_.slotted().new_shelf(); }

  SlotRig rig_;
  std::atomic<int> reads_{0};
};

TEST_F(PackShelfTest, ATableIsReadOnce) {
  PackShelf shelf = this->shelf();
  const auto first = shelf.open(pack(1));
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ((*first)->table().tracks().size(), 1u);
  EXPECT_GT(reads_, 0);
  reads_ = 0;
  EXPECT_EQ(*shelf.open(pack(1)), *first);
  EXPECT_EQ(reads_, 0);
  EXPECT_NE(*shelf.open(pack(2)), *first);
}

TEST_F(PackShelfTest, DamageIsRememberedUntilThePackIsForgotten) {
  PackShelf shelf = this->shelf();
  const std::uint64_t table = rig_.slotted().offset_of(pack(1).extents[0]) + pack(1).table_at;
  rig_.disk.flip_bit(table + 20, 4);
  const auto damaged = shelf.open(pack(1));
  ASSERT_FALSE(damaged.has_value());
  EXPECT_EQ(damaged.error().code, ErrorCode::kCorrupt);
  reads_ = 0;
  EXPECT_EQ(shelf.open(pack(1)).error().message, damaged.error().message);
  EXPECT_EQ(reads_, 0);
  EXPECT_TRUE(shelf.open(pack(2)).has_value());
  shelf.forget(1);
  reads_ = 0;
  EXPECT_FALSE(shelf.open(pack(1)).has_value());
  EXPECT_GT(reads_, 0);
}

TEST_F(PackShelfTest, RegionsAreKeptUntilThePackIsForgotten) {
  PackShelf shelf = this->shelf();
  Payload to = Payload::allocate(kBlockBytes);
  const auto reader = shelf.open(pack(1));
  ASSERT_TRUE((*reader)->read(0, 2 * kBlockBytes, to.bytes()).has_value());
  reads_ = 0;
  ASSERT_TRUE((*reader)->read(0, 2 * kBlockBytes, to.bytes()).has_value());
  EXPECT_EQ(reads_, 0);
  shelf.forget(1);
  shelf.forget(1);
  shelf.forget(9);
  ASSERT_TRUE((*reader)->read(0, 2 * kBlockBytes, to.bytes()).has_value())
      << "who has it open may go on";
  EXPECT_GT(reads_, 0);
  reads_ = 0;
  ASSERT_TRUE(shelf.open(pack(1)).has_value());
  EXPECT_GT(reads_, 0) << "its table, too, was read again";
}

TEST_F(PackShelfTest, ReadInOrderItIsTheSameInFewerReads) {
  const std::size_t bytes = rig_.slotted().superblock().track_bytes();
  Payload found[2];
  int reads[2] = {};
  for (const bool in_order : {false, true}) {
    PackShelf shelf = rig_.slotted().new_shelf(in_order ? PackShelf::Reads::kInOrder
                                                        : PackShelf::Reads::kAnywhere);
    const auto reader = shelf.open(pack(1));
    ASSERT_TRUE(reader.has_value());
    reads_ = 0;
    found[in_order] = Payload::allocate(bytes);
    ASSERT_TRUE((*reader)->read(0, 0, found[in_order].bytes()).has_value());
    reads[in_order] = reads_;
  }
  EXPECT_TRUE(std::ranges::equal(found[0].bytes(), found[1].bytes()));
  EXPECT_LT(reads[true], reads[false]);
}

TEST_F(PackShelfTest, ADamagedTableIsAnErrorThatNamesThePack) {
  const PackPlace place = pack(2);
  rig_.disk.flip_bit(rig_.slotted().offset_of(place.extents[0]) + place.table_at + 17, 5);
  PackShelf shelf = this->shelf();
  const auto opened = shelf.open(place);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(opened.error().message.find("pack 2"), std::string::npos);
  EXPECT_TRUE(shelf.open(pack(1)).has_value());
}

TEST_F(PackShelfTest, ATableOfAnotherPackIsRefused) {
  PackPlace place = pack(1);
  place.tracks.push_back(40);
  PackShelf shelf = this->shelf();
  EXPECT_EQ(shelf.open(place).error().code, ErrorCode::kCorrupt);
  place = pack(1);
  place.extents.front().bytes -= 1;
  EXPECT_EQ(shelf.open(place).error().code, ErrorCode::kCorrupt) << "shorter than it says";
}

TEST_F(PackShelfTest, ErrorsOfTheDiskArePassedOnAndNotKept) {
  PackShelf shelf = this->shelf();
  const std::uint64_t at = rig_.slotted().offset_of(pack(1).extents[0]);
  rig_.disk.fail_reads({at, 8u << 20});
  EXPECT_EQ(shelf.open(pack(1)).error().code, ErrorCode::kIo);
  rig_.disk.fail_reads({});
  EXPECT_TRUE(shelf.open(pack(1)).has_value());
}

TEST_F(PackShelfTest, ManyThreadsOpenReadAndForget) {
  PackShelf shelf = this->shelf();
  const PackPlace places[] = {pack(1), pack(2)};
  Payload expected[] = {Payload::allocate(8 * kBlockBytes), Payload::allocate(8 * kBlockBytes)};
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE((*shelf.open(places[i]))->read(0, 0, expected[i].bytes()).has_value());
  }
  ASSERT_FALSE(std::ranges::equal(expected[0].bytes(), expected[1].bytes()));
  std::atomic<int> wrong{0};
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      Payload to = Payload::allocate(8 * kBlockBytes);
      for (int n = 0; n < 300; ++n) {
        const int which = (n + thread) % 2;
        const auto reader = shelf.open(places[which]);
        if (!reader || !(*reader)->read(0, 0, to.bytes()) ||
            !std::ranges::equal(to.bytes(), expected[which].bytes())) {
          ++wrong;
        }
        if (n % 5 == thread) shelf.forget(places[which].id);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace mariner::logging

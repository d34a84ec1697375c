#include "index/tl_index.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <vector>

#include "tests/logging/log_testing.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/manual_executor.h"

namespace mariner::test {
namespace {

using index::Bosc;
using index::BTree;
using index::IndexedWrite;
using index::IndexMoment;
using index::TlIndex;
using logging::RecordType;

IndexedWrite write_of(std::uint64_t sequence, std::uint64_t time) {
  IndexedWrite write;
  write.type = sequence % 7 == 0 ? RecordType::kRollback : RecordType::kWrite;
  write.sequence = {sequence};
  write.time = {time};
  write.epoch = {3};
  write.flags = logging::kHasTail;
  write.payload_blocks = 1024;
  write.location = {sequence * 8, 5, 500, 200, 3};
  if (write.type == RecordType::kRollback) {
    write.target_sequence = {sequence / 2};
  } else {
    write.extent = {Lbn{sequence << 20}, BlockCount{sequence}};
  }
  return write;
}

bool same(const IndexedWrite& a, const IndexedWrite& b) {
  return a.type == b.type && a.flags == b.flags && a.payload_blocks == b.payload_blocks &&
         a.sequence == b.sequence && a.time == b.time && a.epoch == b.epoch &&
         a.extent == b.extent && a.target_sequence == b.target_sequence && a.location == b.location;
}

class TlIndexTest : public ::testing::Test {
 protected:
  void SetUp() override {
    index::IndexShape shape;
    shape.block_bytes = 4096;
    shape.group_blocks = 8;
    ASSERT_TRUE(index::format_index_file(disk_, shape));
    index::BoscOptions options;
    options.memory_bytes = std::size_t{1} << 20;
    options.cache_bytes = std::size_t{64} << 10;
    options.run_blocks_max = 8;
    store_ = *Bosc::open(executor_, disk_, options);
    tree_ = *BTree::open(*store_, TlIndex::tree_options({1}));
    index_ = std::make_unique<TlIndex>(*tree_);
  }
  void TearDown() override {
    store_->drain(nullptr);
    executor_.run_until_idle();
    store_.reset();
  }
  // Sequence numbers have gaps, times larger ones.
  void fill(std::uint64_t count) {
    std::mt19937_64 random(5);
    IndexMoment at{{0}, {1'000'000}};
    for (std::uint64_t i = 0; i < count; ++i) {
      at.sequence.value += 1 + random() % 2;
      at.time.ns += 1 + random() % 1'000;
      writes_.push_back(write_of(at.sequence.value, at.time.ns));
      index_->insert(writes_.back(), at.sequence.value);
      store_->set_used_through(at.sequence.value);
      if (i % 200 == 0) executor_.turn();
      if (!store_->has_room()) executor_.run_until_idle();
    }
  }
  template <typename At>
  std::optional<IndexMoment> find(At at) {
    std::optional<IndexMoment> found;
    bool answered = false;
    index_->find(at, [&](Result<std::optional<IndexMoment>> r) {
      ASSERT_TRUE(r);
      found = *r;
      answered = true;
    });
    executor_.run_ready();
    EXPECT_TRUE(answered);
    return found;
  }
  std::vector<IndexedWrite> all(std::uint64_t after, std::uint64_t at) {
    std::vector<IndexedWrite> found;
    bool done = false;
    index_->for_each(
        {after}, {at},
        [&](const IndexedWrite& write) {
          found.push_back(write);
          return true;
        },
        [&](const Result<void>& r) { done = r.has_value(); });
    executor_.run_ready();
    EXPECT_TRUE(done);
    return found;
  }

  ManualExecutor executor_;
  FaultyDisk disk_{executor_, {.size_bytes = std::uint64_t{64} << 20}};
  std::unique_ptr<Bosc> store_;
  std::unique_ptr<BTree> tree_;
  std::unique_ptr<TlIndex> index_;
  std::vector<IndexedWrite> writes_;
};

TEST_F(TlIndexTest, AWriteIsPackedAndUnpacked) {
  for (const std::uint64_t sequence : {6ull, 7ull}) {
    const IndexedWrite write = write_of(sequence, 99);
    std::array<std::byte, index::kIndexedWriteBytes> bytes{};
    pack_indexed_write(write, bytes);
    EXPECT_TRUE(same(index::unpack_indexed_write({sequence, 99}, bytes), write));
  }
}

// FORMAT.md section 8.
TEST_F(TlIndexTest, GoldenBytes) {
  IndexedWrite write;
  write.type = RecordType::kZero;
  write.flags = logging::kHasTail;
  write.payload_blocks = 0x0403;
  write.epoch = {0x0c0b0a0908070605};
  write.extent = {Lbn{0x100f0e0d0c}, BlockCount{0x1514131211}};
  write.location = {0x1b1a19181716, 0x1f1e1d1c, 0x2120, 0x22, 0x23};
  std::array<std::byte, index::kIndexedWriteBytes> bytes{};
  pack_indexed_write(write, bytes);
  EXPECT_EQ(logging::test::hex(bytes),
            "02040304 05060708 090a0b0c 0c0d0e0f\n"
            "10111213 14151617 18191a1b 1c1d1e1f\n"
            "20212223 00000000");
  write.type = RecordType::kRollback;
  write.target_sequence = {0x1312111000000001};
  pack_indexed_write(write, bytes);
  EXPECT_EQ(logging::test::hex(std::span(bytes).subspan(12, 12)), "01000000 10111213 00001617");
}

TEST_F(TlIndexTest, GivesTheWritesBetweenTwoMomentsInOrder) {
  fill(5'000);
  for (const auto& [after, at] :
       {std::pair{0ull, 20'000ull}, {100ull, 120ull}, {4'000ull, 4'000ull}}) {
    std::vector<IndexedWrite> expected;
    for (const IndexedWrite& write : writes_) {
      if (write.sequence.value > after && write.sequence.value <= at) expected.push_back(write);
    }
    EXPECT_TRUE(std::ranges::equal(all(after, at), expected, same));
  }
}

TEST_F(TlIndexTest, FindsMomentsByNumberAndByTime) {
  fill(5'000);
  std::mt19937_64 random(9);
  for (int i = 0; i < 500; ++i) {
    const IndexedWrite& write = writes_[random() % writes_.size()];
    const std::uint64_t at = write.sequence.value + random() % 3;
    const auto by_number = std::ranges::find_if(
        writes_.rbegin(), writes_.rend(), [&](const auto& w) { return w.sequence.value <= at; });
    EXPECT_EQ(find(SequenceNumber{at})->sequence, by_number->sequence);
    const std::uint64_t time = write.time.ns + random() % 1'500;
    const auto by_time = std::ranges::find_if(writes_.rbegin(), writes_.rend(),
                                              [&](const auto& w) { return w.time.ns <= time; });
    EXPECT_EQ(find(VersionTime{time})->sequence, by_time->sequence);
  }
  EXPECT_FALSE(find(VersionTime{1'000'000}).has_value());
  EXPECT_FALSE(find(SequenceNumber{0}).has_value());
}

TEST_F(TlIndexTest, WhatIsDroppedGivesItsBlocksBackUnread) {
  fill(10'000);
  bool done = false;
  store_->commit_all([&](const Result<void>& r) { done = r.has_value(); });
  executor_.run_until_idle();
  ASSERT_TRUE(done);
  const std::uint32_t blocks = store_->allocated_blocks();
  const std::uint64_t reads = store_->statistics().reads;
  const IndexedWrite& middle = writes_[5'000];
  index_->drop_through(middle.sequence);
  EXPECT_LE(store_->allocated_blocks(), blocks / 2 + 1);
  EXPECT_EQ(store_->statistics().reads, reads);
  const auto left = all(middle.sequence.value, UINT64_MAX - 1);
  EXPECT_TRUE(std::ranges::equal(left, std::span(writes_).subspan(5'001), same));
}

}  // namespace
}  // namespace mariner::test

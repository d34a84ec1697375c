#include "uvfs/journal_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "tests/uvfs/counted_past.h"
#include "tests/uvfs/made_journal_history.h"

namespace mariner::uvfs {
namespace {

using ifsck::Past;

class JournalRingTest : public ::testing::TestWithParam<const char*> {
 protected:
  JournalRingTest() : history_({.image = GetParam(), .journal = {.blocks = 64}, .calm = true}, 5) {
    history_.run(40);
    past_.emplace(history_.past());
    counted_.emplace(*past_);
  }
  std::vector<Past::Version> writes(const JournalRing& ring) {
    auto writes = past_->versions(ring.places(), {}, history_.last()).value();
    std::ranges::sort(writes, {}, &Past::Version::sequence);
    return writes;
  }
  std::vector<std::byte> block(JournalBlock number, SequenceNumber at) {
    ifsck::Overlay overlay;
    ifsck::View view(*past_, at, overlay);
    std::vector<std::byte> bytes(file().block_bytes());
    EXPECT_TRUE(view.read(file().bytes_of(number), bytes).has_value());
    return bytes;
  }
  std::vector<std::byte> read(JournalRing& ring, JournalBlock number) {
    std::vector<std::byte> bytes(file().block_bytes());
    EXPECT_TRUE(ring.read(number, bytes).has_value());
    return bytes;
  }
  [[nodiscard]] const ifsck::JournalFile& file() { return history_.journal().file(); }

  MadeJournalHistory history_;
  std::optional<ifsck::TracePast> past_;
  std::optional<CountedPast> counted_;
};

TEST_P(JournalRingTest, HasWhatThereIsAtEachMomentAndSaysWhatIsOther) {
  for (const std::size_t kept : {std::size_t{2}, std::size_t{4096}}) {
    JournalRing ring(*counted_, file(), {}, {.kept_blocks_max = kept, .ahead = 3});
    const auto all = writes(ring);
    std::uint64_t touched = 0;
    for (std::size_t i = 0; i < all.size();) {
      std::size_t end = std::min(i + 10, all.size());
      while (end < all.size() && all[end].sequence == all[end - 1].sequence) ++end;
      const auto some = std::span(all).subspan(i, end - i);
      ASSERT_TRUE(ring.fetch(some).has_value());
      for (const Past::Version& each : some) {
        const SequenceNumber before = ring.at();
        if (each.sequence == before) continue;
        const JournalRing::Touched now = ring.move_to(each.sequence);
        touched += now.blocks.size();
        for (JournalBlock number = 0; number < 64; ++number) {
          const auto bytes = block(number, each.sequence);
          EXPECT_TRUE(read(ring, number) == bytes);
          if (bytes != block(number, before)) {
            EXPECT_TRUE(std::ranges::binary_search(now.blocks, number));
          }
        }
      }
      i = end;
    }
    EXPECT_GT(touched, 100u);
  }
}

TEST_P(JournalRingTest, AsksForManyAtOnce) {
  JournalRing ring(*counted_, file(), history_.last(), {});
  for (JournalBlock number = 0; number < 1024; ++number) {
    EXPECT_EQ(read(ring, number), block(number, history_.last()));
  }
  EXPECT_LE(counted_->reads, ring.places().size() / 256 + 2);
  const auto before = counted_->reads;
  (void)read(ring, 7);
  EXPECT_EQ(counted_->reads, before);
  ring.forget();
  (void)read(ring, 7);
  EXPECT_EQ(counted_->reads, before + 1);
  EXPECT_EQ(ring.looks(), 1026u);
}

TEST_P(JournalRingTest, DoesNotSayWhatIsWrittenAgain) {
  JournalRing ring(*counted_, file(), {}, {});
  (void)read(ring, 0);
  // (As if it had been written with the same bytes.)
  const std::vector<Past::Version> twice(2, {Lbn{0}, history_.last(), {}});
  ASSERT_TRUE(ring.fetch(twice).has_value());
  const JournalRing::Touched touched = ring.move_to(history_.last());
  EXPECT_TRUE(touched.file_system);
  ASSERT_TRUE(ring.fetch(twice).has_value());
  EXPECT_FALSE(ring.move_to(history_.last()).file_system);
}

INSTANTIATE_TEST_SUITE_P(Kinds, JournalRingTest,
                         ::testing::Values("-t ext3 -b 1024 -J size=1",
                                           "-t ext4 -b 4096 -J size=4 -O ^metadata_csum"));

}  // namespace
}  // namespace mariner::uvfs

// Recovery of several disks: one order over all of them. Of one disk: recovery_test.cc.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <set>

#include "logging/recovery.h"
#include "tests/logging/array_rig.h"

namespace mariner::logging {
namespace {

using namespace std::chrono_literals;
using test::ArrayRig;
using test::FaultyDisk;
using test::record_of;
using Remains = FaultyDisk::Remains;

// Records 1 to 6: the odd ones on disk 0, the even ones on disk 1.
void alternate(ArrayRig& rig) {
  ASSERT_TRUE(rig.open());
  for (std::uint64_t i = 1; i <= 6; i += 2) {
    rig.disks[0]->hold();
    rig.append_now(record_of(1, i, 2));
    rig.append_now(record_of(1, i + 1, 2));
    rig.disks[0]->release();
    rig.executor.run_ready();
  }
  ASSERT_EQ(rig.outcomes_text(), "2:ok@1 1:ok@0 4:ok@1 3:ok@0 6:ok@1 5:ok@0");
}

TEST(RecoveryArray, GivesTheRecordsOfAllDisksInTheOrderOfTheLog) {
  ArrayRig rig;
  alternate(rig);
  for (const unsigned threads : {0u, 1u, 2u, 5u}) {
    EXPECT_EQ(rig.reopened(threads), "|1 2 3 4 5 6");
    EXPECT_EQ(rig.recovered.next_ordinal, 7u);
    EXPECT_EQ(rig.recovered.records, 6u);
    EXPECT_EQ(rig.recovered.batches, 6u);
    ASSERT_EQ(rig.recovered.disks.size(), 2u);
    EXPECT_EQ(rig.recovered.disks[0].tail.next_batch, 4u);
    EXPECT_EQ(rig.recovered.disks[1].tail.next_batch, 4u);
  }
  EXPECT_EQ(rig.visited[0].location.disk, 0);
  EXPECT_EQ(rig.visited[1].location.disk, 1);
}

TEST(RecoveryArray, TheTornTailOfOneDiskIsCutAndTheOthersKeepTheirs) {
  ArrayRig rig;
  alternate(rig);
  const LogLocation last = *rig.outcomes[5].result;
  ASSERT_EQ(last.disk, 0);
  rig.close();
  rig.disks[0]->flip_bit(last.payload_sector() * kBlockBytes, 3);
  EXPECT_EQ(rig.reopened(), "|1 2 3 4 6") << "6 was durable, 5 was not";
  EXPECT_EQ(rig.recovered.tail_records_cut, 1u);
  EXPECT_EQ(rig.recovered.next_ordinal, 7u);
  EXPECT_EQ(rig.recovered.disks[0].tail.next_sector, last.batch_sector);
  rig.append_now(record_of(1, 7));
  EXPECT_EQ(rig.reopened(), "|1 2 3 4 6 7");
}

TEST(RecoveryArray, TheTailOfEachDiskMayBeTorn) {
  ArrayRig rig;
  alternate(rig);
  const LogLocation fifth = *rig.outcomes[5].result;
  const LogLocation sixth = *rig.outcomes[4].result;
  rig.close();
  rig.disks[0]->flip_bit(fifth.payload_sector() * kBlockBytes, 3);
  rig.disks[1]->flip_bit(sixth.payload_sector() * kBlockBytes, 3);
  EXPECT_EQ(rig.reopened(), "|1 2 3 4");
  EXPECT_EQ(rig.recovered.tail_records_cut, 2u);
  EXPECT_GE(rig.recovered.next_ordinal, 5u);
  rig.append_now(record_of(1, 5));
  EXPECT_EQ(rig.reopened(), "|1 2 3 4 5");
}

TEST(RecoveryArray, ADiskWithoutAnyRecordTakesPart) {
  ArrayRig rig({.disks = 3});
  ASSERT_TRUE(rig.open());
  EXPECT_EQ(rig.reopened(), "|");
  EXPECT_EQ(rig.recovered.next_ordinal, 1u);
  for (std::uint64_t i = 1; i <= 3; ++i) rig.append_now(record_of(1, i));
  ASSERT_EQ(rig.outcomes_text(), "1:ok@0 2:ok@0 3:ok@0");
  for (const unsigned threads : {0u, 3u}) {
    EXPECT_EQ(rig.reopened(threads), "|1 2 3");
    EXPECT_EQ(rig.recovered.disks[1].tail.allocation, 0u);
    EXPECT_EQ(rig.recovered.disks[2].tail.next_batch, 1u);
  }
}

TEST(RecoveryArray, OfTwoCopiesOneIsGiven) {
  ArrayRig rig({.writer = {.t_fail = 1s}});
  ASSERT_TRUE(rig.open());
  rig.append_now(record_of(1, 1));
  rig.disks[0]->hold();
  rig.append_now(record_of(1, 2));
  rig.executor.advance(3s);
  rig.append_now(record_of(1, 3));
  rig.disks[0]->release();
  rig.executor.run_ready();
  EXPECT_EQ(rig.reopened(), "|1 2 3");
  EXPECT_EQ(rig.recovered.batches, 4u);
  EXPECT_EQ(rig.recovered.records, 3u);
  // Whichever it is, the other stands in for it when it is lost.
  const LogLocation first = rig.visited[1].location;
  const std::uint8_t number = first.disk;
  rig.append_now(record_of(1, 4));
  rig.close();
  rig.disks[number]->flip_bit(first.batch_sector * kBlockBytes + 100, 1);
  ASSERT_TRUE(rig.open());
  EXPECT_EQ(test::sequences_text(rig.visited), "1 2 3 4");
  EXPECT_NE(rig.visited[1].location.disk, number);
}

TEST(RecoveryArray, DamageNamesItsDiskAndTheOthersAreRead) {
  ArrayRig rig;
  alternate(rig);
  const LogLocation fourth = *rig.outcomes[2].result;
  ASSERT_EQ(fourth.disk, 1);
  rig.close();
  rig.disks[1]->flip_bit(fourth.batch_sector * kBlockBytes + 100, 1);
  EXPECT_EQ(rig.reopened(), "track 0: 2..2|1 2 3 5 6");
  EXPECT_EQ(rig.recovered.damage[0].disk, 1);
}

TEST(RecoveryArray, ADiskThatCannotBeReadIsAnError) {
  ArrayRig rig;
  alternate(rig);
  const LogLocation fourth = *rig.outcomes[2].result;
  rig.close();
  rig.disks[1]->fail_reads({fourth.batch_sector * kBlockBytes, 512});
  std::vector<LogDiskRef> refs;
  for (std::size_t i = 0; i < 2; ++i) refs.push_back({*rig.disks[i], rig.superblocks[i]});
  for (const unsigned threads : {0u, 2u}) {
    const Result<Recovered> result =
        recover_log(refs, threads, [](const Record&, const LogLocation&) {});
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, ErrorCode::kIo);
  }
}

// Lives with random load on several disks that are slow, fail and hang, each ended by a power cut.
class ArrayHistory {
 public:
  explicit ArrayHistory(std::uint64_t seed)
      : random_(seed),
        rig_({.seed = seed,
              .disks = 2 + seed % 2,
              .tracks = 40,
              .delay_max = std::chrono::microseconds(seed % 5 == 0 ? 0 : 400),
              .rotating = seed % 4 == 0,
              .writer = {.t_fail = 20ms}}) {}

  void run() {
    for (int life = 0; life < 4; ++life) {
      ASSERT_TRUE(rig_.open(static_cast<unsigned>(below(4))));
      judge();
      if (::testing::Test::HasFailure()) return;
      live();
      rig_.crash();
      // What was told counts; the rest may be there or not.
      for (const auto& outcome : rig_.outcomes) {
        if (outcome.result) owed_.insert(outcome.record.sequence.value);
      }
      for (const auto& disk : rig_.disks) disk->fail_writes(0, Remains::kNothing);
    }
  }

 private:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }

  void judge() {
    ASSERT_EQ(test::damage_text(rig_.recovered), "");
    std::uint64_t ordinal = 0;
    std::uint64_t sequence = 0;
    std::set<std::uint64_t> found;
    for (const auto& v : rig_.visited) {
      ASSERT_GT(v.record.ordinal, ordinal) << "in order, each once";
      ASSERT_GT(v.record.sequence.value, sequence) << "the order is that of append";
      ordinal = v.record.ordinal;
      sequence = v.record.sequence.value;
      const Record appended = record_of(1, sequence, length_of(sequence));
      ASSERT_LE(sequence, sequence_);
      ASSERT_EQ(v.record.extent, appended.extent);
      ASSERT_TRUE(rig_.readable(appended, v.location));
      found.insert(sequence);
    }
    ASSERT_GT(rig_.recovered.next_ordinal, ordinal);
    for (const std::uint64_t owed : owed_) ASSERT_TRUE(found.contains(owed)) << owed << " is lost";
    for (const std::uint64_t gone : gone_) ASSERT_FALSE(found.contains(gone)) << gone << " is back";
    for (std::uint64_t s = 1; s <= sequence_; ++s) {
      if (!found.contains(s)) gone_.insert(s);
    }
    owed_ = found;
  }

  static std::uint32_t length_of(std::uint64_t sequence) {
    return static_cast<std::uint32_t>(1 + sequence % 5);
  }

  void live() {
    const std::uint64_t steps = 20 + below(150);
    for (std::uint64_t step = 0; step < steps; ++step) {
      FaultyDisk& any = *rig_.disks[below(rig_.disks.size())];
      switch (below(20)) {
        case 0: any.fail_writes(1, static_cast<Remains>(below(3))); break;
        case 1:
          if (below(4) == 0) any.hold();
          break;
        case 2: any.release(); break;
        case 3: rig_.executor.advance(std::chrono::milliseconds(below(40))); break;
        case 4:
          if (below(4) == 0) rig_.writer().leave_tracks();
          break;
        case 5:
        case 6:
        case 7:
        case 8: rig_.executor.advance(std::chrono::microseconds(below(300))); break;
        default:
          ++sequence_;
          rig_.append(record_of(1, sequence_, length_of(sequence_)));
          break;
      }
    }
  }

  std::mt19937_64 random_;
  ArrayRig rig_;
  std::uint64_t sequence_ = 0;
  std::set<std::uint64_t> owed_;  // acknowledged, or found once
  std::set<std::uint64_t> gone_;  // not found once: never again
};

TEST(RecoveryArray, EveryAcknowledgedRecordSurvivesAndNothingAppearsLater) {
  const char* only = std::getenv("MARINER_TEST_SEED");
  const std::uint64_t first = only == nullptr ? 1 : std::strtoull(only, nullptr, 10);
  for (std::uint64_t seed = first; seed <= (only == nullptr ? 300 : first); ++seed) {
    SCOPED_TRACE("MARINER_TEST_SEED=" + std::to_string(seed));
    ArrayHistory(seed).run();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace mariner::logging

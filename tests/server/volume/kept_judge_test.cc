#include "server/volume/kept_judge.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "index/stored_index.h"
#include "tests/support/index_rig.h"

namespace mariner::volume {
namespace {

using index::KeptMoment;
using index::LocatedRun;
using logging::LogLocation;
using logging::Record;
using logging::RecordType;

class KeptJudgeTest : public ::testing::Test {
 protected:
  void add(RecordType type, std::uint64_t sequence, BlockRange extent, std::uint64_t ordinal) {
    Record record;
    record.type = type;
    record.sequence = {sequence};
    record.time = {sequence * 100};
    record.extent = extent;
    record.ordinal = ordinal;
    if (type != RecordType::kZero) {
      record.payload_blocks = static_cast<std::uint32_t>(extent.count.value);
    }
    index_.insert(record, LogLocation{ordinal * 10, 1, 0, 1, 0});
  }
  void keep(std::uint64_t from, std::uint64_t through, BlockRange extent, std::uint64_t ordinal) {
    Record record;
    record.type = RecordType::kRelocated;
    record.target_sequence = {from};
    record.target_time = {through};
    record.extent = extent;
    record.ordinal = ordinal;
    record.payload_blocks = static_cast<std::uint32_t>(extent.count.value);
    index_.insert(record, LogLocation{ordinal * 10, 1, 0, 1, 0});
  }
  // All up to number and ordinal `last` is given up; what is at `horizon` becomes the base.
  std::vector<KeptShown> judge(std::vector<std::uint64_t> moments, std::uint64_t last,
                               std::uint64_t horizon, BlockRange range) {
    std::vector<KeptMoment> kept;
    for (const std::uint64_t at : moments) kept.push_back({{{at}, {at * 100}}, {at * 100}});
    index_.index().set_kept(kept);
    return index_.answers().compute([&](const index::VersionLookup& lookup) {
      std::vector<NextBase> become;
      for (const LocatedRun& run : lookup.locate(range, SequenceNumber{horizon})) {
        const bool goes = run.sequence.value != 0 && run.sequence <= SequenceNumber{last};
        if (goes) become.push_back({run, in_log_});
      }
      return KeptJudge(lookup, base_, {kept, {last}, last + 1})
          .judge(std::vector{range}, std::move(become));
    });
  }

  test::ManualExecutor executor_;
  test::IndexRig index_{executor_};
  BaseMap base_{false};
  bool in_log_ = false;
};

TEST_F(KeptJudgeTest, WithoutKeptMomentsNothingIsWrittenAgain) {
  add(RecordType::kWrite, 1, {{0}, {4}}, 1);
  EXPECT_TRUE(judge({}, 1, 1, {{0}, {4}}).empty());
}

TEST_F(KeptJudgeTest, WhatAMomentShowsAndTheBaseDoesNot) {
  add(RecordType::kWrite, 1, {{0}, {4}}, 1);
  add(RecordType::kWrite, 2, {{1}, {2}}, 2);
  add(RecordType::kWrite, 3, {{2}, {1}}, 3);
  EXPECT_EQ(judge({1}, 3, 3, {{0}, {4}}), (std::vector<KeptShown>{{{{1}, {2}}, {1}, {1}}}))
      << "0 and 3 are in the base";
  EXPECT_EQ(judge({2}, 3, 3, {{0}, {4}}), (std::vector<KeptShown>{{{{2}, {1}}, {2}, {2}}}));
  EXPECT_TRUE(judge({2}, 1, 1, {{0}, {4}}).empty()) << "the log has it still";
}

TEST_F(KeptJudgeTest, OneVersionIsWrittenOnceForAllMomentsThatShowIt) {
  add(RecordType::kWrite, 1, {{0}, {1}}, 1);
  add(RecordType::kWrite, 5, {{0}, {1}}, 5);
  EXPECT_EQ(judge({1, 2, 4, 5}, 5, 5, {{0}, {1}}),
            (std::vector<KeptShown>{{{{0}, {1}}, {1}, {4}}}));
}

TEST_F(KeptJudgeTest, BeforeTheFirstWriteABlockReadsAsZeros) {
  add(RecordType::kWrite, 1, {{5}, {1}}, 1);
  add(RecordType::kWrite, 2, {{0}, {2}}, 2);
  EXPECT_EQ(judge({1}, 2, 2, {{0}, {2}}), (std::vector<KeptShown>{{{{0}, {2}}, {1}, {1}, true}}));
}

TEST_F(KeptJudgeTest, WhatWasWrittenAgainStaysUntilItsRecordIsGivenUp) {
  add(RecordType::kWrite, 1, {{0}, {1}}, 1);
  add(RecordType::kWrite, 2, {{0}, {1}}, 2);
  keep(1, 1, {{0}, {1}}, 4);
  EXPECT_TRUE(judge({1}, 2, 2, {{0}, {1}}).empty());
  EXPECT_EQ(judge({1}, 4, 2, {{0}, {1}}), (std::vector<KeptShown>{{{{0}, {1}}, {1}, {1}}}));
  EXPECT_TRUE(judge({2}, 4, 2, {{0}, {1}}).empty()) << "no moment shows it any more";
}

TEST_F(KeptJudgeTest, ZerosThatBecomeBytesInTheLogAreWrittenAgainAsZeros) {
  add(RecordType::kZero, 1, {{0}, {1}}, 1);
  add(RecordType::kZero, 2, {{0}, {1}}, 2);
  EXPECT_TRUE(judge({1}, 2, 2, {{0}, {1}}).empty()) << "one is like the other";
  in_log_ = true;
  EXPECT_EQ(judge({1}, 2, 2, {{0}, {1}}), (std::vector<KeptShown>{{{{0}, {1}}, {1}, {1}, true}}))
      << "an image that has something under zeros must find zeros";
}

}  // namespace
}  // namespace mariner::volume

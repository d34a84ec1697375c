#include "logging/base_rest.h"

#include <gtest/gtest.h>

#include "tests/logging/log_testing.h"

namespace mariner::logging {
namespace {

using namespace std::chrono_literals;
using test::LogRig;
using test::record_of;

constexpr auto kLongest = BaseRest::kLongest;

class BaseRestTest : public ::testing::Test {
 protected:
  // After many lone writes.
  void SetUp() override {
    ASSERT_TRUE(rig_.open());
    for (int i = 0; i < 100; ++i) write_of_a_host();
    rig_.executor.advance(kLongest);
    ASSERT_EQ(logged(), 100u);
    rig_.outcomes.clear();
  }
  void write_of_a_host() {
    rig_.append(record_of(1, ++sequence_));
    rig_.executor.run_ready();
  }
  void before_image() {
    rig_.append(record_of(1, ++sequence_, 1, RecordType::kBeforeImage));
    rig_.executor.run_ready();
  }
  std::size_t logged() const { return rig_.outcomes.size(); }
  std::uint64_t batch_of(std::size_t outcome) const {
    return rig_.outcomes.at(outcome).result->batch_sector;
  }

  LogRig rig_;
  std::uint64_t sequence_ = 0;
};

TEST_F(BaseRestTest, GoesWithTheNextWriteOfAHost) {
  write_of_a_host();
  before_image();
  before_image();
  EXPECT_EQ(logged(), 1u);
  write_of_a_host();
  ASSERT_EQ(logged(), 4u);
  EXPECT_EQ(batch_of(1), batch_of(3));
  EXPECT_EQ(batch_of(2), batch_of(3));
  before_image();
  EXPECT_EQ(logged(), 4u);
}

TEST_F(BaseRestTest, NotForLong) {
  write_of_a_host();
  before_image();
  rig_.executor.advance(kLongest - 1ns);
  before_image();
  EXPECT_EQ(logged(), 1u);
  rig_.executor.advance(1ns);
  ASSERT_EQ(logged(), 3u);
  EXPECT_EQ(batch_of(1), batch_of(2));
}

TEST_F(BaseRestTest, NotWhereNobodyHasWrittenJustNow) {
  before_image();
  EXPECT_EQ(logged(), 1u);
  write_of_a_host();
  rig_.executor.advance(kLongest);
  before_image();
  EXPECT_EQ(logged(), 3u);
}

// While the disk is busy it waits anyway; then it goes with what came meanwhile, or rests.
TEST_F(BaseRestTest, BehindABatch) {
  rig_.disk.hold();
  write_of_a_host();
  before_image();
  rig_.disk.release();
  rig_.executor.run_ready();
  EXPECT_EQ(logged(), 1u);
  rig_.disk.hold();
  write_of_a_host();
  before_image();
  write_of_a_host();
  rig_.disk.release();
  rig_.executor.run_ready();
  EXPECT_EQ(logged(), 5u);
}

TEST_F(BaseRestTest, WhatComesBackFromTheDiskDoesNotRest) {
  write_of_a_host();
  before_image();
  rig_.disk.fail_writes(1, test::FaultyDisk::Remains::kNothing);
  write_of_a_host();
  EXPECT_EQ(logged(), 3u);
}

TEST_F(BaseRestTest, NotWhereHostsSendManyAtATime) {
  for (int i = 0; i < 64; ++i) {
    for (int j = 0; j < 8; ++j) rig_.append(record_of(1, ++sequence_));
    rig_.executor.run_ready();
  }
  const std::size_t before = logged();
  before_image();
  EXPECT_EQ(logged(), before + 1);
}

TEST(BaseRest, NotBeforeMoreIsKnown) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  rig.append(record_of(1, 1));
  rig.append(record_of(1, 2, 1, RecordType::kBeforeImage));
  rig.executor.run_ready();
  rig.append(record_of(1, 3, 1, RecordType::kBeforeImage));
  rig.executor.run_ready();
  EXPECT_EQ(rig.outcomes.size(), 3u);
}

TEST_F(BaseRestTest, TheWriterKnowsHowManyGoTogether) {
  for (int i = 0; i < 500; ++i) write_of_a_host();
  EXPECT_LT(rig_.writer->records_of_a_batch(), 1.1);
  for (int i = 0; i < 500; ++i) {
    for (int j = 0; j < 8; ++j) rig_.append(record_of(1, ++sequence_));
    rig_.executor.run_ready();
  }
  EXPECT_GT(rig_.writer->records_of_a_batch(), 7.5);
}

}  // namespace
}  // namespace mariner::logging

#include "uvfs/kept_past.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/uvfs/counted_past.h"
#include "tests/uvfs/made_writes.h"

namespace mariner::uvfs {
namespace {

using Question = ifsck::Past::Question;

class KeptPastTest : public ::testing::Test {
 protected:
  KeptPastTest() {
    for (int i = 0; i < 50; ++i) {
      made_.put<std::uint16_t>(static_cast<ifsck::InodeNumber>(11 + i % 9), 0,
                               static_cast<std::uint16_t>(0100600 + i));
    }
    past_.emplace(made_.past());
    counted_.emplace(*past_);
  }
  static std::vector<std::byte> read(ifsck::Past& past, const std::vector<Question>& questions) {
    std::vector<std::byte> bytes(questions.size() * kBlockBytes);
    EXPECT_TRUE(past.read(questions, bytes).has_value());
    return bytes;
  }

  MadeWrites made_{"-t ext2 -b 4096"};
  std::optional<ifsck::TracePast> past_;
  std::optional<CountedPast> counted_;
};

TEST_F(KeptPastTest, SaysWhatThePastSays) {
  for (const std::size_t blocks_max : {0u, 1u, 7u, 1000u}) {
    KeptPast kept(*counted_, {.blocks_max = blocks_max, .questions_max = 20});
    std::mt19937_64 random(blocks_max);
    for (int round = 0; round < 200; ++round) {
      std::vector<Question> questions(1 + random() % 25);
      for (Question& each : questions) each = {Lbn{random() % 12}, SequenceNumber{random() % 51}};
      EXPECT_EQ(read(kept, questions), read(*past_, questions)) << blocks_max;
    }
  }
}

TEST_F(KeptPastTest, AsksOnceForWhatItKeeps) {
  KeptPast kept(*counted_, {.blocks_max = 3, .questions_max = 3});
  const Question a{Lbn{1}, {1}};
  const Question b{Lbn{1}, {2}};
  const Question c{Lbn{2}, {1}};
  const Question d{Lbn{3}, {1}};
  (void)read(kept, {a, b});
  (void)read(kept, {b, a, c});
  EXPECT_EQ(counted_->reads, 2u);
  EXPECT_EQ(counted_->blocks, 3u);
  (void)read(kept, {a, b, c});
  EXPECT_EQ(counted_->blocks, 3u);
  // Who was asked for last goes last.
  (void)read(kept, {d});
  (void)read(kept, {b, c, d});
  EXPECT_EQ(counted_->blocks, 4u);
  (void)read(kept, {a});
  EXPECT_EQ(counted_->blocks, 5u);
  // Many at once go through.
  (void)read(kept, {a, b, c, d});
  EXPECT_EQ(counted_->blocks, 9u);
}

TEST_F(KeptPastTest, WhatIsTheSameAtAnotherMomentIsNotAskedAgain) {
  for (const std::size_t blocks_max : {3u, 1000u}) {
    KeptPast kept(*counted_, {.blocks_max = blocks_max, .questions_max = 20});
    for (std::uint64_t at = 0; at <= 50; at += 5) kept.share({at});
    std::mt19937_64 random(blocks_max);
    counted_->blocks = 0;
    std::uint64_t asked = 0;
    for (int round = 0; round < 300; ++round) {
      std::vector<Question> questions(1 + random() % 15);
      for (Question& each : questions) each = {Lbn{random() % 40}, SequenceNumber{random() % 51}};
      EXPECT_EQ(read(kept, questions), read(*past_, questions));
      asked += questions.size();
    }
    EXPECT_LT(counted_->blocks, asked);
  }
  // One that nobody has written to is read once for all of them.
  KeptPast kept(*counted_);
  for (std::uint64_t at = 0; at <= 50; at += 5) kept.share({at});
  counted_->blocks = 0;
  const Lbn still{past_->size_bytes() / kBlockBytes - 1};
  for (std::uint64_t at = 0; at <= 50; at += 5) (void)read(kept, {{still, {at}}});
  EXPECT_EQ(counted_->blocks, 1u);
  (void)read(kept, {{still, {7}}});
  EXPECT_EQ(counted_->blocks, 2u);  // a moment that nobody shares
}

TEST_F(KeptPastTest, AnErrorIsNotKept) {
  KeptPast kept(*counted_);
  std::vector<std::byte> bytes(kBlockBytes);
  const Question beyond{Lbn{past_->size_bytes() / kBlockBytes}, {1}};
  EXPECT_FALSE(kept.read(std::span(&beyond, 1), bytes).has_value());
  EXPECT_FALSE(kept.read(std::span(&beyond, 1), bytes).has_value());
}

}  // namespace
}  // namespace mariner::uvfs

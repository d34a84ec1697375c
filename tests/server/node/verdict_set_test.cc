#include "server/node/verdict_set.h"

#include <gtest/gtest.h>

namespace mariner::node {
namespace {

meta::Verdict verdict(std::uint64_t sequence, meta::Verdict::Kind kind = meta::Verdict::CLEAN,
                      std::uint32_t level = 1, std::uint64_t checked_ns = 1) {
  meta::Verdict out;
  out.set_sequence(sequence);
  out.set_time_ns(sequence * 10);
  out.set_kind(kind);
  out.set_level(level);
  out.set_checked_ns(checked_ns);
  return out;
}

TEST(VerdictSet, NamesAndBack) {
  for (const auto kind :
       {meta::Verdict::CLEAN, meta::Verdict::REPAIRABLE, meta::Verdict::DAMAGED}) {
    EXPECT_EQ(*verdict_of(verdict_name(kind)), kind);
  }
  EXPECT_EQ(verdict_of("dirty").error().message,
            "expected clean, repairable or damaged, found \"dirty\"");
  EXPECT_FALSE(verdict_of(""));
}

TEST(VerdictSet, TheMoreThoroughCheckCountsAndThenTheLater) {
  VerdictSet set({verdict(5, meta::Verdict::CLEAN, 2, 100)});
  EXPECT_FALSE(set.add(verdict(5, meta::Verdict::DAMAGED, 3, 200)));
  EXPECT_FALSE(set.add(verdict(5, meta::Verdict::DAMAGED, 2, 99)));
  EXPECT_EQ(set.all().at(5).kind(), meta::Verdict::CLEAN);
  EXPECT_TRUE(set.add(verdict(5, meta::Verdict::REPAIRABLE, 2, 100)));
  EXPECT_TRUE(set.add(verdict(5, meta::Verdict::DAMAGED, 1, 1)));
  EXPECT_EQ(set.all().at(5).kind(), meta::Verdict::DAMAGED);
  EXPECT_EQ(set.all().size(), 1u);
}

TEST(VerdictSet, WhatIsBeforeTheOldestMomentGoes) {
  VerdictSet set({verdict(3), verdict(5), verdict(9)});
  EXPECT_EQ(set.drop_before(SequenceNumber{5}), std::vector<std::uint64_t>{3});
  EXPECT_TRUE(set.drop_before(SequenceNumber{5}).empty());
  EXPECT_EQ(set.between(SequenceNumber{5}, SequenceNumber{8}).size(), 1u);
  EXPECT_EQ(set.between({}, SequenceNumber{9}).size(), 2u);
}

TEST(VerdictSet, ThinsWhereItIsMissedLeast) {
  VerdictSet set;
  // 1 to 20 close together, then far apart; 10 stands out, and so every change stays.
  for (std::uint64_t i = 1; i <= 20; ++i) {
    set.add(verdict(i, i == 10 ? meta::Verdict::DAMAGED : meta::Verdict::CLEAN));
  }
  for (std::uint64_t i = 1; i <= 12; ++i) set.add(verdict(20 + i * 100));
  EXPECT_TRUE(set.thin(32).empty());
  set.add(verdict(5000));
  const auto gone = set.thin(32);
  EXPECT_EQ(gone.size(), 3u) << "so that the next one does not thin again";
  for (const std::uint64_t sequence : gone) EXPECT_LE(sequence, 20u);
  for (const std::uint64_t kept : {1, 9, 10, 11, 120, 1220, 5000}) {
    EXPECT_TRUE(set.all().contains(kept)) << kept;
  }
}

TEST(VerdictSet, WhereEverythingChangesItThinsAllTheSame) {
  VerdictSet set;
  for (std::uint64_t i = 1; i <= 40; ++i) {
    set.add(verdict(i, i % 2 == 0 ? meta::Verdict::DAMAGED : meta::Verdict::CLEAN));
  }
  set.thin(20);
  EXPECT_LE(set.all().size(), 20u);
  EXPECT_TRUE(set.all().contains(1));
  EXPECT_TRUE(set.all().contains(40));
  set.thin(1);
  EXPECT_EQ(set.all().size(), 1u);
  set.thin(0);
  EXPECT_TRUE(set.all().empty());
}

}  // namespace
}  // namespace mariner::node

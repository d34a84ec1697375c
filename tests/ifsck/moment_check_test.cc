#include "ifsck/moment_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "ifsck/moment.h"
#include "tests/ifsck/made_history.h"
#include "tests/ifsck/made_moment.h"
#include "tests/ifsck/made_verdict.h"
#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

int more(int usual) {
  const char* const seeds = std::getenv("MARINER_TEST_SEEDS");
  return seeds != nullptr ? std::atoi(seeds) : usual;
}

class MomentCheckTest : public ::testing::TestWithParam<const char*> {};

// In any order, each from what the ones before have left.
TEST_P(MomentCheckTest, EveryMomentBecomesAFileSystem) {
  MadeVerdict verdict(MadeImage::of(GetParam()).file("image"));
  for (int seed = 0; seed < more(1); ++seed) {
    MadeHistory history(GetParam(), 900 + seed);
    std::mt19937_64 random(seed);
    KnownStates states;
    int full = 0;
    for (int i = 0; i < 8; ++i) {
      const SequenceNumber at{random() % (history.ends.back().value + 1)};
      const std::string what =
          "seed " + std::to_string(seed) + ", moment " + std::to_string(at.value);
      Overlay overlay;
      const auto report = check_moment(*history.past, at, states, overlay, {});
      ASSERT_TRUE(report.has_value()) << what << ": " << report.error().message;
      full += report->full ? 1 : 0;
      const Census census = MadeMoment(*history.past, at).census();
      // (A quota file alone may be wrong, which no census sees.)
      const auto is_of_quota = [](const Repair& each) {
        return each.finding.code == Finding::Code::kQuota;
      };
      const bool nothing =
          census.findings_all == 0 && std::ranges::none_of(report->repairs, is_of_quota);
      EXPECT_EQ(report->verdict == Verdict::kClean, nothing) << what;
      EXPECT_NE(report->verdict, Verdict::kDamaged) << what;
      EXPECT_EQ(report->blocks_mended == 0, nothing) << what;
      View view(*history.past, at, overlay);
      EXPECT_EQ(verdict.of(history.since_the_first(view)), "") << what;

      // For who only reads, the same, but for what is made from the rest.
      Overlay read;
      const auto second = check_moment(*history.past, at, states, read, {.level = 2});
      ASSERT_TRUE(second.has_value()) << what;
      EXPECT_FALSE(second->full);
      EXPECT_EQ(second->verdict == Verdict::kClean, census.sound()) << what;
      EXPECT_TRUE(second->left.empty());
      EXPECT_LE(read.size(), overlay.size());
      Moment mended(*history.past, at, read);
      ASSERT_TRUE(mended.open().has_value());
      EXPECT_TRUE(Census::take(mended.context().volume, mended.context().layout, {})->sound());
    }
    EXPECT_EQ(full, 1);
  }
}

TEST_P(MomentCheckTest, WhatIsOnlyLookedAtStaysAsItIs) {
  MadeHistory history(GetParam(), 77);
  KnownStates states;
  const SequenceNumber at{history.ends.front().value / 2};
  Overlay overlay;
  const auto report =
      check_moment(*history.past, at, states, overlay, {.mend = false, .keep = false});
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(overlay.size(), 0u);
  EXPECT_EQ(report->repairs.size(), 0u);
  EXPECT_EQ(report->findings_all, MadeMoment(*history.past, at).census().findings_all);
  EXPECT_EQ(states.nearest(at, {}, history.ends.back()), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Kinds, MomentCheckTest, ::testing::ValuesIn(kKinds));

TEST(MomentCheck, SaysWhatIsNoFileSystem) {
  const logging::test::TemporaryDirectory folder;
  MadeImage::run("truncate -s 1M " + folder.file("image"));
  (void)TraceWriter::create(folder.file("trace"), 1u << 20).value();
  TracePast past = TracePast::open(folder.file("image"), folder.file("trace")).value();
  KnownStates states;
  Overlay overlay;
  const auto report = check_moment(past, {}, states, overlay, {});
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, ErrorCode::kNotFound);
}

// What is known is of the file system that was there before.
TEST(MomentCheck, BeginsAnewWhereTheFileSystemIsAnother) {
  const logging::test::TemporaryDirectory folder;
  MadeImage::run("truncate -s 8M " + folder.file("one") + " " + folder.file("two"));
  MadeImage::run("mke2fs -q -t ext4 " + folder.file("one"));
  MadeImage::run("mke2fs -q -t ext2 -b 1024 " + folder.file("two"));
  auto trace = TraceWriter::create(folder.file("trace"), 8u << 20).value();
  std::ifstream in(folder.file("two"), std::ios::binary);
  std::vector<char> bytes(8u << 20);
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  SequenceNumber last;
  for (std::uint64_t i = 0; i < 8; ++i) {
    last = trace
               .write(VersionTime{i + 1}, Lbn{i * 256},
                      std::as_bytes(std::span(bytes)).subspan(i << 20, 1u << 20))
               .value();
  }
  TracePast past = TracePast::open(folder.file("one"), folder.file("trace")).value();
  KnownStates states;
  for (const SequenceNumber at : {SequenceNumber{}, last, SequenceNumber{}}) {
    Overlay overlay;
    const auto report = check_moment(past, at, states, overlay, {});
    ASSERT_TRUE(report.has_value()) << report.error().message;
    EXPECT_EQ(report->verdict, Verdict::kClean);
  }
  EXPECT_EQ(states.nearest(last, last, last)->baseline.at, last);
}

}  // namespace
}  // namespace mariner::ifsck

#include "ifsck/follower.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ifsck/past_behind.h"
#include "tests/ifsck/made_commits.h"
#include "tests/ifsck/made_history.h"

namespace mariner::ifsck {
namespace {

// A history that has come as far as `newest`.
class Growing final : public PastBehind {
 public:
  using PastBehind::PastBehind;
  Result<Reach> reach() override { return Reach{{}, newest}; }
  SequenceNumber newest;
};

TEST(Follower, ChecksWhereATransactionWasComplete) {
  MadeCommits made("-t ext4 -b 4096", 6);
  Growing past(*made.past);
  KnownStates states;
  Follower follower(past, states, [] { return VersionTime{}; });
  past.newest = SequenceNumber{made.commits[0].at.value - 1};
  EXPECT_FALSE(follower.look().value().has_value());
  past.newest = made.commits[2].at;
  const auto first = follower.look().value();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->report.at, made.commits[2].at);
  EXPECT_EQ(first->transaction, made.commits[2].transaction);
  EXPECT_EQ(first->report.verdict, Verdict::kClean);
  EXPECT_TRUE(first->report.full);
  EXPECT_FALSE(follower.look().value().has_value());
  // Something else is written behind it.
  past.newest = made.commits[2].at.next();
  EXPECT_FALSE(follower.look().value().has_value());
  past.newest = made.past->reach()->newest;
  const auto second = follower.look().value();
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->report.at, made.commits[5].at);
  EXPECT_EQ(second->report.verdict, Verdict::kClean);
  EXPECT_FALSE(second->report.full);
}

TEST(Follower, ChecksWhatRestsWithoutAJournal) {
  MadeHistory history("-t ext2 -b 4096", 3);
  Growing past(*history.past);
  KnownStates states;
  VersionTime now{history.ends[0].value};  // (a write is a nanosecond)
  Follower follower(past, states, [&] { return now; });
  past.newest = history.ends[0];
  EXPECT_FALSE(follower.look().value().has_value());
  now.ns += 2'000'000'000;
  const auto rests = follower.look().value();
  ASSERT_TRUE(rests.has_value());
  EXPECT_EQ(rests->report.at, history.ends[0]);
  EXPECT_FALSE(rests->transaction.has_value());
  EXPECT_EQ(rests->report.verdict, Verdict::kClean);
  // In the middle of a round: it is not mended, and told of as it is.
  past.newest = SequenceNumber{(history.ends[0].value + history.ends[1].value) / 2};
  const auto torn = follower.look().value();
  ASSERT_TRUE(torn.has_value());
  EXPECT_NE(torn->report.verdict, Verdict::kClean);
  EXPECT_TRUE(torn->report.repairs.empty());
}

// Nothing that is mended is kept; but whether it can be is known.
TEST(Follower, WhatCannotBeMendedIsDamaged) {
  MadeVolume made("-t ext2 -b 4096");
  logging::test::TemporaryDirectory folder;
  auto trace = TraceWriter::create(folder.file("trace"), MadeImage::kBytes).value();
  const Lbn root = made.layout->inode_place(EXT2_ROOT_INO).covering_blocks().first;
  std::vector<std::byte> block(kBlockBytes);
  ASSERT_TRUE(made.view->read({root.byte_offset(), kBlockBytes}, block).has_value());
  const SequenceNumber good = trace.write(VersionTime{1}, root, block).value();
  const std::size_t at = made.layout->inode_place(EXT2_ROOT_INO).offset % kBlockBytes;
  std::fill_n(block.begin() + static_cast<std::ptrdiff_t>(at), made.layout->inode_bytes(),
              std::byte{});
  const SequenceNumber bad = trace.write(VersionTime{2}, root, block).value();
  TracePast written = TracePast::open(made.image(), folder.file("trace")).value();
  Growing past(written);
  KnownStates states;
  Follower follower(past, states, [] { return VersionTime{10'000'000'000}; });
  past.newest = good;
  EXPECT_EQ(follower.look().value()->report.verdict, Verdict::kClean);
  past.newest = bad;
  const auto look = follower.look().value();
  ASSERT_TRUE(look.has_value());
  EXPECT_EQ(look->report.verdict, Verdict::kDamaged);
  EXPECT_TRUE(look->report.repairs.empty());
}

TEST(Follower, PassesOverWhatIsNoFileSystem) {
  logging::test::TemporaryDirectory folder;
  MadeImage::run("truncate -s 1M " + folder.file("image"));
  auto trace = TraceWriter::create(folder.file("trace"), 1u << 20).value();
  const std::vector<std::byte> block(kBlockBytes);
  ASSERT_TRUE(trace.write(VersionTime{1}, Lbn{0}, block).has_value());
  TracePast past = TracePast::open(folder.file("image"), folder.file("trace")).value();
  KnownStates states;
  Follower follower(past, states, [] { return VersionTime{10'000'000'000}; });
  const auto look = follower.look();
  ASSERT_TRUE(look.has_value()) << look.error().message;
  EXPECT_FALSE(look->has_value());
}

}  // namespace
}  // namespace mariner::ifsck

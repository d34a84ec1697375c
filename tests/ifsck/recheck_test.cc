#include "ifsck/recheck.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>

#include "tests/ifsck/made_history.h"
#include "tests/ifsck/made_moment.h"
#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;

std::string text(const std::vector<Finding>& findings) {
  std::string all;
  for (const Finding& each : findings) all += describe(each) + "\n";
  return all;
}

// Those of `some` whose code none of `others` has.
std::string only(std::vector<Finding> some, const std::vector<Finding>& others) {
  std::set<Code> codes;
  for (const Finding& each : others) codes.insert(each.code);
  // Which of several names of a directory its ".." has to fit is a matter of order; and where an
  // unchanged name of what is a directory now stands, only a census knows.
  if (codes.contains(Code::kDirectoryLinked) || codes.contains(Code::kEntryType)) {
    codes.insert(Code::kParent);
  }
  std::erase_if(some, [&](const Finding& each) { return codes.contains(each.code); });
  return text(some);
}

int more(int usual) {
  const char* const seeds = std::getenv("MARINER_TEST_SEEDS");
  return seeds != nullptr ? std::atoi(seeds) : usual;
}

class RecheckTest : public ::testing::TestWithParam<const char*> {
 protected:
  // What differs: the trace's blocks, and those of the overlay.
  static std::vector<BlockRange> changed(MadeHistory& history, const MadeMoment& then,
                                         const MadeMoment& now) {
    const auto [from, to] = std::minmax({then.view.at(), now.view.at()});
    auto ranges = history.past->changed(from, to).value();
    now.overlay.for_each([&](Lbn lbn, const Overlay::Block&) {
      ranges.push_back({lbn, BlockCount{1}});
    });
    return ranges;
  }

  static void expect_alike(MadeHistory& history, const Baseline& known, MadeMoment& now,
                           const std::string& what) {
    MadeMoment then(*history.past, known.at);
    const auto check = Recheck::run(*then.context, *now.context, known, changed(history, then, now),
                                    {.findings_max = kAllFindings});
    ASSERT_TRUE(check.has_value()) << check.error().message;
    const Census census = now.census();
    EXPECT_EQ(only(check->findings, census.findings), "") << what << ", the recheck alone";
    EXPECT_EQ(only(census.findings, check->findings), "") << what << ", the census alone";
    EXPECT_EQ(check->sound(), census.sound()) << what;
  }
};

TEST_P(RecheckTest, GoesFromSoundToSoundAsACensusDoes) {
  for (int seed = 0; seed < more(2); ++seed) {
    MadeHistory history(GetParam(), seed + 1);
    Baseline known;
    ASSERT_TRUE(MadeMoment(*history.past, {}).census(&known).findings_all == 0);
    for (const SequenceNumber end : history.ends) {
      MadeMoment then(*history.past, known.at);
      MadeMoment now(*history.past, end);
      const auto check = Recheck::run(*then.context, *now.context, known,
                                      changed(history, then, now), {.findings_max = kAllFindings});
      ASSERT_TRUE(check.has_value()) << check.error().message;
      EXPECT_EQ(check->findings_all, 0u) << text(check->findings);
      Baseline taken;
      taken.at = end;
      ASSERT_TRUE(now.census(&taken).findings_all == 0);
      check->next.apply(end, known);
      EXPECT_TRUE(known == taken);
    }
  }
}

TEST_P(RecheckTest, FindsInBetweenWhatACensusFinds) {
  for (int seed = 0; seed < more(2); ++seed) {
    MadeHistory history(GetParam(), 100 + seed);
    std::mt19937_64 random(seed);
    const std::vector<Baseline> known = history.baselines();
    for (int i = 0; i < 12; ++i) {
      const SequenceNumber at{random() % (history.ends.back().value + 1)};
      MadeMoment now(*history.past, at);
      const Baseline& from = known[random() % known.size()];
      expect_alike(history, from, now,
                   "seed " + std::to_string(seed) + ", from " + std::to_string(from.at.value) +
                       " to " + std::to_string(at.value));
    }
  }
}

TEST_P(RecheckTest, FindsDamageThatACensusFinds) {
  for (int seed = 0; seed < more(1); ++seed) {
    MadeHistory history(GetParam(), 200 + seed);
    std::mt19937_64 random(seed);
    Baseline known;
    (void)MadeMoment(*history.past, {}).census(&known);
    MadeMoment now(*history.past, history.ends.front());
    std::vector<FsBlock> metadata;
    for (FsBlock block = 0; block < now.layout->blocks(); ++block) {
      const auto kind = now.layout->place_of(block).kind;
      if (kind != ExtLayout::Kind::kData && kind != ExtLayout::Kind::kSuperblock &&
          kind != ExtLayout::Kind::kGroupDescriptors) {
        metadata.push_back(block);
      }
    }
    for (const auto& [block, owner] : known.owners) metadata.push_back(block);
    std::ranges::sort(metadata);
    for (int i = 0; i < 25; ++i) {
      now.overlay.clear();
      const ByteRange inode = now.layout->inode_place(static_cast<InodeNumber>(1 + random() % 620));
      const FsBlock block = metadata[random() % metadata.size()];
      const std::uint64_t at =
          i % 2 == 0 ? inode.offset + random() % 128
                     : now.layout->bytes_of(block).offset + random() % now.layout->block_bytes();
      std::byte byte{};
      ASSERT_TRUE(now.view.read({at, 1}, std::span(&byte, 1)).has_value());
      byte ^= static_cast<std::byte>(1u << random() % 8);
      ASSERT_TRUE(now.view.write({at, 1}, std::span(&byte, 1)).has_value());
      now.open();
      expect_alike(history, known, now,
                   "seed " + std::to_string(seed) + ", bit in byte " + std::to_string(at));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, RecheckTest, ::testing::ValuesIn(kKinds));

constexpr std::uint64_t kSuper = 1024;

// Each changes what blocks mean that have not changed themselves.
TEST(Recheck, WithAnotherSuperblockThereIsNoComparison) {
  struct Change {
    const char* what;
    std::uint64_t at;
    std::uint16_t other;  // bits
  };
  for (const Change& each : {Change{"hash seed", 0xec, 1}, Change{"UUID", 0x68, 1},
                             Change{"unsigned hashes", 0x160, EXT2_FLAGS_UNSIGNED_HASH},
                             Change{"size of descriptors", 0xfe, 64 ^ 128}}) {
    MadeVolume made{"-t ext4 -b 4096 -O 64bit,^metadata_csum"};
    MadeMoment then(*made.past);
    MadeMoment now(*made.past);
    Baseline known;
    ASSERT_EQ(then.census(&known).findings_all, 0u);
    std::uint16_t value = 0;
    ASSERT_TRUE(
        now.view
            .read({kSuper + each.at, sizeof value}, std::as_writable_bytes(std::span(&value, 1)))
            .has_value());
    now.put<std::uint16_t>(kSuper + each.at, value ^ each.other);
    now.open();
    const auto check = Recheck::run(*then.context, *now.context, known, now.changed(), {});
    ASSERT_FALSE(check.has_value()) << each.what;
    EXPECT_EQ(check.error().code, ErrorCode::kInvalidArgument) << each.what;
  }
}

TEST(Recheck, LooksAtInodesThatTheSuperblockHasNoMore) {
  MadeVolume made{"-t ext4 -b 4096 -O ^metadata_csum"};
  MadeMoment then(*made.past);
  MadeMoment now(*made.past);
  Baseline known;
  ASSERT_EQ(then.census(&known).findings_all, 0u);
  now.put<std::uint32_t>(kSuper + 0x5c,
                         then.context->super.s_feature_compat & ~EXT3_FEATURE_COMPAT_HAS_JOURNAL);
  now.open();
  const auto check = Recheck::run(*then.context, *now.context, known, now.changed(), {});
  ASSERT_TRUE(check.has_value()) << check.error().message;
  const Census census = now.census();
  EXPECT_NE(std::ranges::find(census.findings, InodeNumber{EXT2_JOURNAL_INO}, &Finding::inode),
            census.findings.end());
  EXPECT_EQ(text(check->findings), text(census.findings));
}

// A directory is said to have an index, and none of its blocks has changed.
TEST(Recheck, AnIndexThatThereWasNotIsLookedAt) {
  constexpr InodeNumber kLostAndFound = 11;
  MadeVolume made{"-t ext2 -b 1024"};
  MadeMoment then(*made.past);
  MadeMoment now(*made.past);
  const ByteRange inode = then.layout->inode_place(kLostAndFound);
  std::uint32_t block = 0;
  ASSERT_TRUE(then.view.read({inode.offset + 40, 4}, std::as_writable_bytes(std::span(&block, 1)))
                  .has_value());
  for (MadeMoment* const each : {&then, &now}) {
    // Behind "..", where nobody looks: struct ext2_dx_root_info, and an index that is none.
    const std::uint64_t info = each->layout->bytes_of(block).offset + 24;
    each->put<std::uint32_t>(info, 0);
    each->put<std::uint32_t>(info + 4, 0x00000801);
    each->put<std::uint32_t>(info + 8, 0);
  }
  Baseline known;
  ASSERT_EQ(then.census(&known).findings_all, 0u);
  now.put<std::uint32_t>(inode.offset + 32, EXT2_INDEX_FL);
  const std::vector<BlockRange> changed{inode.covering_blocks()};
  const auto check = Recheck::run(*then.context, *now.context, known, changed, {});
  ASSERT_TRUE(check.has_value()) << check.error().message;
  const Census census = now.census();
  EXPECT_NE(std::ranges::find(census.findings, Code::kInodeIndex, &Finding::code),
            census.findings.end());
  EXPECT_EQ(text(check->findings), text(census.findings));
}

}  // namespace
}  // namespace mariner::ifsck

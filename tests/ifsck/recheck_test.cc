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

}  // namespace
}  // namespace mariner::ifsck

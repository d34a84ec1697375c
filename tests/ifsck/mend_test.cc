#include "ifsck/mend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>

#include "ifsck/baseline.h"
#include "tests/ifsck/made_history.h"
#include "tests/ifsck/made_moment.h"
#include "tests/ifsck/made_verdict.h"
#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

std::string text(const std::vector<Finding>& findings) {
  std::string all;
  for (std::size_t i = 0; i < findings.size() && i < 30; ++i) all += describe(findings[i]) + "\n";
  return all;
}

std::string text(const Mended& mended) {
  std::string all;
  for (std::size_t i = 0; i < mended.repairs.size() && i < 60; ++i) {
    all += describe(mended.repairs[i]) + "\n";
  }
  return all + std::to_string(mended.rounds) + " rounds; left:\n" + text(mended.left);
}

int more(int usual) {
  const char* const seeds = std::getenv("MARINER_TEST_SEEDS");
  return seeds != nullptr ? std::atoi(seeds) : usual;
}

// Damage at random, of what a file system says of itself.
class Damage {
 public:
  explicit Damage(MadeMoment& made) : made_(made) {
    Baseline known;
    (void)made.census(&known);
    const auto root = made.layout->inode_place(EXT2_ROOT_INO).offset / made.layout->block_bytes();
    for (FsBlock block = 0; block < made.layout->blocks(); ++block) {
      const auto kind = made.layout->place_of(block).kind;
      if (kind != ExtLayout::Kind::kData && kind != ExtLayout::Kind::kSuperblock &&
          kind != ExtLayout::Kind::kGroupDescriptors && block != root) {
        places_.push_back(block);
      }
    }
    for (const auto& [block, owner] : known.owners) {
      if (made.layout->place_of(block).kind == ExtLayout::Kind::kData) owned_.push_back(block);
    }
    std::ranges::sort(owned_);
  }

  std::string make(std::uint64_t seed) {
    random_.seed(seed);
    std::string what = "seed " + std::to_string(seed) + ":";
    const std::uint64_t kind = random_() % 6;
    for (std::uint64_t i = kind == 5 ? 2 + random_() % 8 : 1; i > 0; --i) {
      what += one(kind == 5 ? random_() % 5 : kind);
    }
    return what;
  }

 private:
  FsBlock any(const std::vector<FsBlock>& blocks) { return blocks[random_() % blocks.size()]; }

  std::string one(std::uint64_t kind) {
    const std::uint32_t bytes = made_.layout->block_bytes();
    if (kind == 0) {
      const auto number = static_cast<InodeNumber>(11 + random_() % 620);
      const ByteRange place = made_.layout->inode_place(number);
      const std::uint64_t at = random_() % 128;
      made_.flip(place.offset + at, random_() % 8);
      return " a bit in byte " + std::to_string(at) + " of inode " + std::to_string(number);
    }
    const FsBlock block = any(random_() % 2 == 0 ? places_ : owned_);
    const auto where = [&] {
      return " block " + std::to_string(block) + " (" +
             std::string(describe(made_.layout->place_of(block).kind)) + ")";
    };
    const std::uint64_t begin = made_.layout->bytes_of(block).offset;
    if (kind == 1 || kind == 2) {
      const std::uint64_t at = random_() % bytes;
      made_.flip(begin + at, random_() % 8);
      return " a bit in byte " + std::to_string(at) + " of" + where();
    }
    std::vector<std::byte> content(bytes);
    if (kind == 4) std::ranges::generate(content, [&] { return std::byte(random_()); });
    (void)made_.view.write({begin, bytes}, content).value();
    return (kind == 4 ? " random" : " zero") + where();
  }

  MadeMoment& made_;
  std::mt19937_64 random_;
  std::vector<FsBlock> places_;
  std::vector<FsBlock> owned_;
};

class MendTest : public ::testing::TestWithParam<const char*> {};

TEST_P(MendTest, WhateverIsDamagedIsSoundAfterwards) {
  const MadeVolume image(GetParam());
  TracePast past = TracePast::open(image.image(), MadeImage::of(GetParam()).file("trace")).value();
  MadeMoment made(past);
  Damage damage(made);
  MadeVerdict verdict(image.image());
  const char* const first = std::getenv("MARINER_TEST_FIRST");
  const int from = first != nullptr ? std::atoi(first) : 0;
  int sound = 0;
  for (int seed = from; seed < from + more(25); ++seed) {
    made.overlay.clear();
    const std::string what = damage.make(seed);
    const auto mended = mend_in_full(made.view);
    ASSERT_TRUE(mended.has_value()) << what << ": " << mended.error().message;
    EXPECT_TRUE(mended->left.empty()) << what << "\n" << text(*mended);
    const std::string said = verdict.of(made.overlay);
    EXPECT_EQ(said, "") << what << "\n" << text(*mended);
    sound += mended->left.empty() && said.empty() ? 1 : 0;
  }
  RecordProperty("sound", sound);
}

// Writes that were under way, in any order, as a host without a journal may do them.
class MendHistoryTest : public ::testing::TestWithParam<const char*> {};

TEST_P(MendHistoryTest, WhateverWasUnderWayIsUndone) {
  MadeVerdict verdict(MadeImage::of(GetParam()).file("image"));
  for (int seed = 0; seed < more(2); ++seed) {
    MadeHistory history(GetParam(), 300 + seed);
    std::mt19937_64 random(seed);
    const std::vector<Baseline> known = history.baselines();
    for (int i = 0; i < 6; ++i) {
      const SequenceNumber at{random() % (history.ends.back().value + 1)};
      const Baseline& from = known[random() % known.size()];
      const std::string what = "seed " + std::to_string(seed) + ", from " +
                               std::to_string(from.at.value) + " to " + std::to_string(at.value);
      MadeMoment then(*history.past, from.at);
      MadeMoment now(*history.past, at);
      const auto [first, last] = std::minmax({from.at, at});
      const auto changed = history.past->changed(first, last).value();
      for (const bool in_full : {false, true}) {
        now.overlay.clear();
        const auto mended = in_full ? mend_in_full(now.view)
                                    : mend_by_change(now.view, *then.context, from, changed);
        const std::string how = what + (in_full ? ", in full: " : ", by change: ");
        ASSERT_TRUE(mended.has_value()) << how << mended.error().message;
        EXPECT_TRUE(mended->left.empty()) << how << "\n" << text(*mended);
        now.open();
        EXPECT_EQ(text(now.census().findings), "") << how << "\n" << text(*mended);
        EXPECT_EQ(verdict.of(history.since_the_first(now.view)), "") << how << "\n"
                                                                     << text(*mended);
      }
    }
  }
}

// What is not wrong stays as it is.
TEST_P(MendTest, OneBitChangesFewBlocks) {
  const MadeVolume image(GetParam());
  TracePast past = TracePast::open(image.image(), MadeImage::of(GetParam()).file("trace")).value();
  MadeMoment made(past);
  std::mt19937_64 random(7);
  for (int i = 0; i < 40; ++i) {
    made.overlay.clear();
    const ByteRange place = made.layout->inode_place(static_cast<InodeNumber>(12 + random() % 600));
    const std::uint64_t at = place.offset + random() % 128;
    made.flip(at, random() % 8);
    const auto mended = mend_in_full(made.view);
    ASSERT_TRUE(mended.has_value());
    EXPECT_LE(mended->blocks, 16u) << "byte " << at << "\n" << text(*mended);
  }
}

TEST(Mend, WhatIsSoundIsNotTouched) {
  MadeVolume made{"-t ext4 -b 4096"};
  const Mended mended = mend_in_full(*made.view).value();
  EXPECT_TRUE(mended.repairs.empty());
  EXPECT_EQ(mended.rounds, 1u);
  EXPECT_EQ(made.overlay.size(), 0u);
}

// It is given more than it may list: what is free is not known until bitmaps are right.
TEST(Mend, MoreThanCanBeListedIsMendedToo) {
  MadeVolume made{"-t ext2 -b 1024"};
  const FsBlock bitmap = ext2fs_block_bitmap_loc(made.volume->fs(), 0);
  made.put(made.layout->bytes_of(bitmap).offset, std::array<std::byte, 1024>{});
  const FsBlock block =
      map_blocks(*made.volume, *made.layout, made.find("a/large"), made.inode(made.find("a/large")))
          .value()
          .runs.front()
          .physical;
  made.put(made.find("many/a file with a long name, number 6"), 40,
           static_cast<std::uint32_t>(block));
  const auto check = [](const ExtContext& now) -> Result<Checked> {
    const auto census = Census::take(now.volume, now.layout,
                                     {.findings_max = 2000, .progress = {}, .keep = nullptr});
    if (!census) return census.error();
    return Checked{census->findings, census->findings_all};
  };
  const Mended mended =
      mend(*made.view, {.check = check, .directories = {}, .rounds_max = 20}).value();
  EXPECT_EQ(text(mended.left), "");
  EXPECT_EQ(MadeVerdict(made.image()).of(made.overlay), "");
}

TEST(Mend, AMissingRootIsSaid) {
  MadeVolume made{"-t ext2 -b 1024"};
  made.put<std::uint16_t>(EXT2_ROOT_INO, 26, 0);
  const Mended mended = mend_in_full(*made.view).value();
  EXPECT_TRUE(std::ranges::any_of(
      mended.left, [](const Finding& each) { return each.code == Finding::Code::kRoot; }));
}

INSTANTIATE_TEST_SUITE_P(Kinds, MendHistoryTest, ::testing::ValuesIn(kKinds));
INSTANTIATE_TEST_SUITE_P(Kinds, MendTest, ::testing::ValuesIn(kKinds));

}  // namespace
}  // namespace mariner::ifsck

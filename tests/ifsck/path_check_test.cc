#include "ifsck/path_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "ifsck/moment_check.h"
#include "tests/ifsck/made_history.h"
#include "tests/ifsck/made_moment.h"
#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;

constexpr const char* kPaths[] = {"/",     "/a",          "/a/b/c",       "/a/large",
                                  "/many", "/a/b/sparse", "/a/b/c/linked"};

class PathCheckTest : public ::testing::TestWithParam<const char*> {
 protected:
  static std::set<Code> codes(const std::vector<Finding>& findings) {
    std::set<Code> all;
    for (const Finding& each : findings) all.insert(each.code);
    return all;
  }
};

TEST_P(PathCheckTest, FindsNothingWrongWithWhatIsSound) {
  MadeVolume made(GetParam());
  TracePast past = TracePast::open(made.image(), MadeImage::of(GetParam()).file("trace")).value();
  MadeMoment moment(past);
  for (const char* each : kPaths) {
    const auto path = PathCheck::run(*moment.context, each);
    ASSERT_TRUE(path.has_value()) << each << ": " << path.error().message;
    EXPECT_TRUE(path->findings.empty()) << each << ": " << describe(path->findings.front());
    EXPECT_EQ(path->steps.front().number, InodeNumber{EXT2_ROOT_INO});
  }
  EXPECT_EQ(PathCheck::run(*moment.context, "//a///large/")->steps.size(), 3u);
  EXPECT_EQ(PathCheck::run(*moment.context, "/a/none").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(PathCheck::run(*moment.context, "/a/large/below").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(PathCheck::run(*moment.context, "a").error().code, ErrorCode::kInvalidArgument);
}

// With bits flipped somewhere: what a census finds of the same inodes is found, and nothing else.
TEST_P(PathCheckTest, FindsWhatACensusFindsInItsScope) {
  const MadeVolume image(GetParam());
  TracePast past = TracePast::open(image.image(), MadeImage::of(GetParam()).file("trace")).value();
  MadeMoment made(past);
  std::mt19937_64 random(3);
  std::vector<FsBlock> blocks;
  for (const char* each : kPaths) {
    const auto path = PathCheck::run(*made.context, each).value();
    for (const PathCheck::Step& step : path.steps) {
      blocks.push_back(made.layout->inode_place(step.number).offset / made.layout->block_bytes());
      for_each_owned(step.inode, [&](FsBlock block) { blocks.push_back(block); });
    }
  }
  std::size_t found = 0;
  for (int round = 0; round < 40; ++round) {
    made.overlay.clear();
    const FsBlock block = blocks[random() % blocks.size()];
    made.flip(made.layout->bytes_of(block).offset + random() % made.layout->block_bytes(),
              static_cast<unsigned>(random() % 8));
    made.open();
    const Census census = made.census();
    for (const char* each : kPaths) {
      const auto path = PathCheck::run(*made.context, each);
      if (!path) {
        EXPECT_EQ(path.error().code, ErrorCode::kNotFound);
        EXPECT_FALSE(census.sound());
        continue;
      }
      std::vector<Finding> theirs;
      std::ranges::copy_if(census.findings, std::back_inserter(theirs), [&](const Finding& one) {
        return one.code != Code::kClaimedTwice && path->in_scope(one);
      });
      std::vector<Finding> ours;
      std::ranges::copy_if(path->findings, std::back_inserter(ours),
                           [&](const Finding& one) { return path->in_scope(one); });
      std::string text;
      for (const Finding& one : ours) text += "ours: " + describe(one) + "\n";
      for (const Finding& one : census.findings) text += "a census: " + describe(one) + "\n";
      EXPECT_EQ(codes(ours), codes(theirs)) << each << ", block " << block << "\n" << text;
      found += ours.size();
    }
  }
  EXPECT_GT(found, 0u);
}

// By what has changed, and in full.
TEST_P(PathCheckTest, AgreesWithLevelTwo) {
  MadeHistory history(GetParam(), 41);
  std::mt19937_64 random(5);
  KnownStates states;
  for (int i = 0; i < 6; ++i) {
    const SequenceNumber at{random() % (history.ends.back().value + 1)};
    for (const char* each : {"/a/large", "/many", "/a/b"}) {
      Overlay overlay;
      MomentCheckOptions options{.level = 3, .path = each, .mend = false};
      const auto one = check_moment(*history.past, at, states, overlay, options);
      options.level = 2;
      const auto all = check_moment(*history.past, at, states, overlay, options);
      ASSERT_TRUE(all.has_value());
      if (!one) {
        EXPECT_EQ(one.error().code, ErrorCode::kNotFound);
        continue;
      }
      if (all->verdict == Verdict::kClean) {
        EXPECT_EQ(one->verdict, Verdict::kClean) << each;
      }
      MadeMoment now(*history.past, at);
      const auto path = PathCheck::run(*now.context, each).value();
      const bool concerned = std::ranges::any_of(
          all->findings, [&](const Finding& finding) { return path.in_scope(finding); });
      if (concerned) {
        EXPECT_NE(one->verdict, Verdict::kClean) << each;
      }
      if (one->verdict == Verdict::kClean) continue;
      options.level = 3;
      options.mend = true;
      EXPECT_EQ(check_moment(*history.past, at, states, overlay, options)->verdict,
                Verdict::kRepairable);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, PathCheckTest, ::testing::ValuesIn(kKinds));

}  // namespace
}  // namespace mariner::ifsck

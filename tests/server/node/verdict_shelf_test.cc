#include "server/node/verdict_shelf.h"

#include <gtest/gtest.h>

#include <optional>

#include "server/manager/volume_record.h"
#include "tests/server/manager/memory_store.h"
#include "tests/server/node/node_parts.h"

namespace mariner::node {
namespace {

using namespace std::chrono_literals;

meta::Verdict verdict(std::uint64_t sequence, std::uint32_t level = 1) {
  meta::Verdict out;
  out.set_sequence(sequence);
  out.set_time_ns(sequence * 10);
  out.set_kind(meta::Verdict::CLEAN);
  out.set_level(level);
  return out;
}

VerdictShelf::Done into(std::optional<Result<std::vector<meta::Verdict>>>& out) {
  return [&out](Result<std::vector<meta::Verdict>> kept) { out = std::move(kept); };
}

class LocalVerdictsTest : public ::testing::Test {
 protected:
  Result<std::vector<meta::Verdict>> keep(std::vector<meta::Verdict> verdicts,
                                          std::uint64_t oldest = 0) {
    std::optional<Result<std::vector<meta::Verdict>>> out;
    shelf_.keep(VolumeId{7}, {std::move(verdicts), SequenceNumber{oldest}}, into(out));
    return *out;
  }
  testing::NodeParts parts_;
  LocalVerdicts shelf_{parts_.store(), 16};
};

TEST_F(LocalVerdictsTest, KeepsThemUntilTheyFallOut) {
  ASSERT_TRUE(keep({verdict(3), verdict(1'000'000)}));
  EXPECT_EQ(keep({verdict(3, 2)})->front().level(), 1u) << "what the shelf has";
  EXPECT_EQ(shelf_.verdicts(VolumeId{7})->all().size(), 2u);
  EXPECT_TRUE(shelf_.verdicts(VolumeId{8})->all().empty());
  ASSERT_TRUE(keep({verdict(5)}, 4));
  EXPECT_EQ(shelf_.verdicts(VolumeId{7})->all().begin()->first, 5u);
  EXPECT_TRUE(keep({verdict(2)}, 4)->empty());
}

TEST_F(LocalVerdictsTest, NeverMoreThanItsBound) {
  for (std::uint64_t i = 1; i <= 40; ++i) ASSERT_TRUE(keep({verdict(i)}));
  EXPECT_LE(shelf_.verdicts(VolumeId{7})->all().size(), 16u);
}

TEST_F(LocalVerdictsTest, TheyGoWithTheVolume) {
  ASSERT_TRUE(keep({verdict(3)}));
  ASSERT_TRUE(parts_.store().remove_volume(8));
  EXPECT_EQ(shelf_.verdicts(VolumeId{7})->all().size(), 1u);
  ASSERT_TRUE(parts_.store().remove_volume(7));
  EXPECT_TRUE(shelf_.verdicts(VolumeId{7})->all().empty());
}

class ClusterVerdictsTest : public ::testing::Test {
 protected:
  test::ManualExecutor executor_;
  manager::MemoryCluster cluster_{executor_};
  manager::MemoryStore store_{executor_, cluster_, {}};
  manager::ClusterView view_{store_, executor_, std::string(manager::kClusterPrefix), {}, [] {}};
  manager::MomentDirectory moments_{store_, view_};
  ClusterVerdicts shelf_{moments_, 16};
};

TEST_F(ClusterVerdictsTest, TheyStandInTheSharedStore) {
  std::optional<Result<std::vector<meta::Verdict>>> first;
  std::optional<Result<std::vector<meta::Verdict>>> second;
  // Both at one time: neither is lost.
  shelf_.keep(VolumeId{7}, {{verdict(3)}, {}}, into(first));
  shelf_.keep(VolumeId{7}, {{verdict(5)}, {}}, into(second));
  executor_.advance(10s);
  ASSERT_TRUE(first && *first && second && *second);
  EXPECT_EQ(shelf_.verdicts(VolumeId{7})->all().size(), 2u);
  EXPECT_TRUE(shelf_.verdicts(VolumeId{8})->all().empty());
  for (std::uint64_t i = 10; i < 60; ++i) {
    std::optional<Result<std::vector<meta::Verdict>>> kept;
    shelf_.keep(VolumeId{7}, {{verdict(i)}, SequenceNumber{5}}, into(kept));
    executor_.advance(1s);
    ASSERT_TRUE(kept && *kept);
  }
  EXPECT_LE(shelf_.verdicts(VolumeId{7})->all().size(), 16u);
  EXPECT_EQ(shelf_.verdicts(VolumeId{7})->all().begin()->first, 5u);
}

TEST_F(ClusterVerdictsTest, AFullShelfFitsIntoAnEntry) {
  meta::Verdicts all;
  for (std::size_t i = 0; i < ClusterVerdicts::kVerdictsMax; ++i) {
    meta::Verdict& each = *all.add_verdicts();
    each = verdict(UINT64_MAX - i, 3);
    each.set_time_ns(UINT64_MAX);
    each.set_findings(UINT64_MAX);
    each.set_blocks_mended(UINT64_MAX);
    each.set_checked_ns(UINT64_MAX);
    each.set_duration_ns(UINT64_MAX);
  }
  EXPECT_LT(all.ByteSizeLong(), manager::kValueBytesMax);
}

}  // namespace
}  // namespace mariner::node

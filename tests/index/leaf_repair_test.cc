#include "index/leaf_repair.h"

#include <gtest/gtest.h>

#include "index/run_key.h"
#include "index/tl_index.h"
#include "tests/index/stored_index_rig.h"
#include "tests/support/seeds.h"

namespace mariner::test {
namespace {

using index::AlignedRun;
using index::IndexKey;
using index::KeyRange;
using index::LeafRepair;
using index::RepairFilter;
using logging::Record;
using logging::RecordType;
using Tree = LeafRepair::Tree;

constexpr VolumeId kVolume{3};

Record write(std::uint64_t first, std::uint64_t count, std::uint64_t sequence) {
  Record record;
  record.volume = kVolume;
  record.type = RecordType::kWrite;
  record.extent = {Lbn{first}, BlockCount{count}};
  record.payload_blocks = static_cast<std::uint32_t>(count);
  record.sequence = {sequence};
  record.time = {sequence * 10};
  return record;
}

// The versions of one block.
KeyRange of_block(std::uint64_t block) {
  const std::uint64_t key = AlignedRun{0, block}.key();
  return {{key, 0}, {key, UINT64_MAX}};
}

TEST(RepairFilter, KnowsWhatATreeHasOfARecord) {
  RepairFilter by_block(std::vector<LeafRepair>{{kVolume, Tree::kLt, of_block(9), 0},
                                                {kVolume, Tree::kLt, of_block(3), 0}});
  EXPECT_TRUE(by_block.concerns(write(9, 1, 1)));
  EXPECT_TRUE(by_block.concerns(write(2, 3, 1))) << "2, 3, 4";
  EXPECT_FALSE(by_block.concerns(write(4, 5, 1))) << "4 to 8";
  EXPECT_FALSE(by_block.concerns(write(8, 8, 1))) << "one run of eight, which stands elsewhere";
  Record other = write(9, 1, 1);
  other.volume = VolumeId{4};
  EXPECT_FALSE(by_block.concerns(other));
  Record image = write(9, 1, 1);
  image.type = RecordType::kBeforeImage;
  EXPECT_FALSE(by_block.concerns(image));

  RepairFilter by_time(std::vector<LeafRepair>{{kVolume, Tree::kTl, {{5, 0}, {7, 70}}, 0}});
  EXPECT_FALSE(by_time.concerns(write(1, 1, 4)));
  EXPECT_TRUE(by_time.concerns(write(1, 1, 5)));
  EXPECT_TRUE(by_time.concerns(write(1, 1, 7)));
  EXPECT_FALSE(by_time.concerns(write(1, 1, 8)));

  RepairFilter bases(std::vector<LeafRepair>{{kVolume, Tree::kBt, of_block(9), 0}});
  EXPECT_TRUE(bases.concerns(image));
  EXPECT_FALSE(bases.concerns(write(9, 1, 1)));
}

TEST(RepairFilter, KnowsWhereRollbacksStand) {
  Record rollback = write(0, 0, 6);
  rollback.type = RecordType::kRollback;
  rollback.payload_blocks = 0;
  RepairFilter last(
      std::vector<LeafRepair>{{kVolume, Tree::kLt, {{UINT64_MAX, 0}, IndexKey::max()}, 0}});
  EXPECT_TRUE(last.concerns(rollback));
  EXPECT_FALSE(last.concerns(write(1, 1, 6)));
}

TEST(LeafRepair, AnyLeafCanBeMadeAgainWhileRecordsCome) {
  std::uint64_t mended = 0;
  for_seeds(60, [&](std::uint64_t seed) {
    StoredIndexRig rig(seed);
    for (int round = 0; round < 15 && !::testing::Test::HasFailure(); ++round) {
      for (std::uint64_t i = rig.pick(120); i > 0; --i) rig.add_one();
      switch (rig.pick(6)) {
        case 0: rig.commit(); break;
        case 1: rig.restart(rig.pick(2) == 0); break;
        case 2: rig.forget(); break;
        default: rig.mend(); break;
      }
      rig.compare();
    }
    mended += rig.mended();
  });
  EXPECT_GT(mended, 0u);
}

}  // namespace
}  // namespace mariner::test

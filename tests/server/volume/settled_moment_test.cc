#include "server/volume/settled_moment.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/server/volume/sectors.h"
#include "tests/server/volume/volume_rig.h"

namespace mariner::volume {
namespace {

using index::IndexMoment;

class SettledMoment : public ::testing::Test {
 protected:
  SettledMoment() { rig_.start(); }
  void write(std::uint64_t block, std::uint64_t tag) {
    rig_.volume().live().write({block * kBlockBytes, kBlockBytes},
                               {test::bytes_of(test::Sectors(8, tag)), 0, kBlockBytes},
                               [](const Result<void>& r) { EXPECT_TRUE(r); });
    rig_.manual().run_ready();
  }
  std::optional<Result<IndexMoment>> moment(VersionTime time) {
    std::optional<Result<IndexMoment>> out;
    settled_moment(rig_.volume().replicator(), rig_.volume().history().history(), time,
                   [&](const Result<History::Moment>& found) {
                     out = found ? Result<IndexMoment>(found->at) : found.error();
                   });
    rig_.manual().run_ready();
    return out;
  }

  test::VolumeRig rig_{{.blocks = 16, .blocks_max = 32}};
};

TEST_F(SettledMoment, AMomentIsTheLastWriteAtOrBeforeAndStaysIt) {
  write(0, 1);
  const VersionTime now = rig_.executor().wall_time();
  EXPECT_EQ((*moment(now))->sequence, SequenceNumber{1});
  write(0, 2);  // in the same nanosecond of the clock
  EXPECT_EQ((*moment(now))->sequence, SequenceNumber{1});
  EXPECT_EQ((*moment({now.ns + 1}))->sequence, SequenceNumber{2});
  EXPECT_EQ((*moment({1}))->sequence, SequenceNumber{0});
}

TEST_F(SettledMoment, NoMomentIsOpenedOverWritesThatCannotSettle) {
  write(0, 1);
  rig_.log_disk().fail_writes(1000, test::FaultyDisk::Remains::kEverything);
  rig_.volume().live().write({0, kBlockBytes}, {Payload::zeroed(kBlockBytes), 0, kBlockBytes},
                             [](const Result<void>& r) { EXPECT_FALSE(r); });
  rig_.manual().run_ready();
  const auto refused = moment(rig_.executor().wall_time());
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace mariner::volume

// Long ranges of the same, which a live volume logs in pieces.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "server/volume/live_volume.h"
#include "tests/server/volume/sectors.h"
#include "tests/server/volume/volume_rig.h"

namespace mariner::volume {
namespace {

using test::Sectors;
using test::VolumeRig;

constexpr std::uint64_t kSector = test::kSectorBytes;

// What was submitted, answered one by one.
struct Submitted final : replication::Replicator, CurrentReader {
  void submit(replication::WriteRequest request, WriteDone done) override {
    extents.push_back(request.extent);
    pending = std::move(done);
  }
  void settle(SettleDone done) override { done({}); }
  void settle_moment(VersionTime, MomentDone) override {}
  [[nodiscard]] const replication::WriteCoordinator& coordinator() const override { return writes; }
  void read(BlockRange range, ReadDone done) override {
    done(PayloadSlice{Payload::zeroed(range.count.bytes()), 0, range.count.bytes()});
  }
  void answer(const Result<replication::Stamp>& stamp = replication::Stamp{}) {
    std::exchange(pending, nullptr)(stamp);
  }
  replication::WriteCoordinator writes{{VolumeId{1}, Epoch{1}, {}, {}, {}}, {}};
  std::vector<BlockRange> extents;
  WriteDone pending;
};

class LiveVolumePiecesTest : public ::testing::Test {
 protected:
  LiveVolumePiecesTest() { rig_.start(); }
  static constexpr std::uint64_t kPiece = LiveVolume::kPieceBytes;
  static constexpr std::uint64_t kPieceBlocks = kPiece / kBlockBytes;

  LiveVolume make(bool logs_what_zeros_replace) {
    return {
        4 * kPiece,
        {submitted_, submitted_, rig_.volume().logged().history(), true, logs_what_zeros_replace}};
  }
  Done count() {
    return [this](const Result<void>& r) { answered_ += r ? 1 : 100; };
  }

  VolumeRig rig_{{.blocks = 16}};
  Submitted submitted_;
  int answered_ = 0;
};

TEST_F(LiveVolumePiecesTest, ADiscardWhoseBlocksMustBeLoggedComesInPieces) {
  LiveVolume volume = make(true);
  volume.trim({kPiece - kBlockBytes, 2 * kPiece + 100}, TrimMode::kUnmap, count());
  submitted_.answer();
  EXPECT_FALSE(volume.idle());
  submitted_.answer();
  EXPECT_EQ(answered_, 0);
  submitted_.answer();
  EXPECT_EQ(answered_, 1);
  EXPECT_TRUE(volume.idle());
  EXPECT_EQ(submitted_.extents,
            (std::vector<BlockRange>{{{kPieceBlocks - 1}, {1}},
                                     {{kPieceBlocks}, {kPieceBlocks}},
                                     {{2 * kPieceBlocks}, {kPieceBlocks - 1}}}));
}

TEST_F(LiveVolumePiecesTest, NothingFollowsAPieceThatFailed) {
  LiveVolume volume = make(true);
  volume.trim({0, 4 * kPiece}, TrimMode::kZero, count());
  submitted_.answer();
  submitted_.answer(Error{ErrorCode::kNoSpace, "full"});
  EXPECT_EQ(answered_, 100);
  EXPECT_EQ(submitted_.extents.size(), 2u);
  EXPECT_TRUE(volume.idle());
}

TEST_F(LiveVolumePiecesTest, ADiscardThatLogsNothingIsOneRecordAndAPatternIsNot) {
  LiveVolume volume = make(false);
  volume.trim({0, 4 * kPiece}, TrimMode::kUnmap, count());
  EXPECT_EQ(submitted_.extents, (std::vector<BlockRange>{{{0}, {4 * kPieceBlocks}}}));
  submitted_.answer();
  submitted_.extents.clear();
  volume.write_same({0, 2 * kPiece}, {test::bytes_of(Sectors{7}), 0, kSector}, count());
  submitted_.answer();
  submitted_.answer();
  EXPECT_EQ(answered_, 2);
  EXPECT_EQ(submitted_.extents,
            (std::vector<BlockRange>{{{0}, {kPieceBlocks}}, {{kPieceBlocks}, {kPieceBlocks}}}));
}

}  // namespace
}  // namespace mariner::volume

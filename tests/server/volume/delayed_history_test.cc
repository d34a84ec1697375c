// A volume whose history is far from its storage and target: what happens while questions travel.
#include "tests/server/volume/delayed_history.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "tests/server/volume/sectors.h"
#include "tests/server/volume/volume_rig.h"

namespace mariner::test {
namespace {

using volume::TrimMode;

constexpr std::uint64_t kBase = 77;
constexpr std::uint64_t kBlocks = 16;

class FarHistory : public ::testing::Test {
 protected:
  // An imported volume. An answer takes four seconds and more only by chance, and nothing is
  // applied within five but what is asked for.
  void make(std::uint64_t unavailable_in = 0) {
    VolumeRig::Options options;
    options.blocks = kBlocks;
    options.base_in_image = true;
    const Payload base = bytes_of(Sectors(kBlocks * kSectorsPerBlock, kBase));
    options.base.assign(base.bytes().begin(), base.bytes().end());
    options.storage.apply_delay = std::chrono::seconds(5);
    options.far_history = DelayedHistory::Options{.delay_max = std::chrono::milliseconds(200),
                                                  .unavailable_in = unavailable_in};
    rig_ = std::make_unique<VolumeRig>(std::move(options));
    rig_->start();
  }
  void write(std::uint64_t block, std::uint64_t tag) {
    rig_->volume().live().write({block * kBlockBytes, kBlockBytes},
                                {bytes_of(Sectors(kSectorsPerBlock, tag)), 0, kBlockBytes},
                                [](const Result<void>& r) { EXPECT_TRUE(r); });
    rig_->manual().run_ready();
  }
  void trim(std::uint64_t block) {
    rig_->volume().live().trim({block * kBlockBytes, kBlockBytes}, TrimMode::kUnmap,
                               [](const Result<void>& r) { EXPECT_TRUE(r); });
    rig_->manual().run_ready();
  }
  void drain() {
    const auto drained = std::make_shared<bool>(false);
    rig_->volume().storage()->drain([drained](const Result<void>& r) { *drained = r.has_value(); });
    for (int i = 0; i < 100 && !*drained; ++i) rig_->manual().advance(std::chrono::seconds(1));
    EXPECT_TRUE(*drained);
  }
  void begin_read(std::uint64_t block) {
    read_.reset();
    rig_->volume().live().read({block * kBlockBytes, kBlockBytes},
                               [this](const Result<PayloadSlice>& read) {
                                 ASSERT_TRUE(read);
                                 std::uint64_t value = 0;
                                 std::memcpy(&value, read->bytes().data(), sizeof value);
                                 read_ = value;
                               });
  }

  std::unique_ptr<VolumeRig> rig_;
  std::optional<std::uint64_t> read_;
};

// The image keeps its base under zeros. Before the question comes to the history, the zeros are
// replaced, and given up: they have become the base's before-image.
TEST_F(FarHistory, ZerosThatMoveWhileTheirQuestionTravelsReadAsZeros) {
  make();
  trim(5);
  rig_->writer().leave_tracks();
  write(9, 1);
  drain();
  begin_read(5);
  rig_->manual().run_ready();
  EXPECT_FALSE(read_);
  write(5, 8);
  const VersionTime keep = rig_->answers().moment_of({3}).time;  // the zeros are still shown
  ASSERT_TRUE(rig_->reclaim([keep](VolumeId) { return keep; }));
  rig_->manual().run_ready();
  ASSERT_EQ(rig_->tracks_freed(), 1u);
  ASSERT_EQ(rig_->answers().locate({{5}, {1}}, {2})[0].source, index::LocatedRun::Source::kLog);
  rig_->manual().advance(std::chrono::milliseconds(4999));
  EXPECT_EQ(read_, 0u);
}

// The target of a rollback is held before anything is looked up, or the rollback is refused.
TEST_F(FarHistory, AMomentThatIsGivenUpWhileTheQuestionTravelsIsNoTarget) {
  make();
  write(5, 1);
  rig_->writer().leave_tracks();
  write(5, 2);
  drain();
  std::optional<Result<replication::Stamp>> answer;
  rig_->volume().live().rollback({SequenceNumber{0}, {}},
                                 [&](Result<replication::Stamp> r) { answer = std::move(r); });
  ASSERT_TRUE(rig_->reclaim([](VolumeId) { return VersionTime{UINT64_MAX}; }));
  rig_->manual().run_ready();
  ASSERT_EQ(rig_->tracks_freed(), 1u);
  rig_->manual().advance(std::chrono::seconds(5));
  ASSERT_TRUE(answer && !*answer);
  EXPECT_EQ(answer->error().code, ErrorCode::kOutsideWindow);
}

TEST_F(FarHistory, ATargetThatIsHeldStaysWhileWhatChangedIsAskedFor) {
  make();
  write(5, 1);
  rig_->writer().leave_tracks();
  write(5, 2);
  drain();
  std::optional<Result<replication::Stamp>> answer;
  rig_->volume().live().rollback({SequenceNumber{1}, {}},
                                 [&](Result<replication::Stamp> r) { answer = std::move(r); });
  for (int i = 0; i < 5000 && !rig_->volume().rolling_back(); ++i) {
    rig_->manual().advance(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(rig_->volume().rolling_back() && !answer);
  ASSERT_TRUE(rig_->reclaim([](VolumeId) { return VersionTime{UINT64_MAX}; }));
  rig_->manual().run_ready();
  EXPECT_LE(rig_->volume().index().oldest().sequence, SequenceNumber{1});
  rig_->manual().advance(std::chrono::seconds(12));
  ASSERT_TRUE(answer && *answer);
  begin_read(5);
  rig_->manual().advance(std::chrono::seconds(5));
  EXPECT_EQ(read_, 1u);
}

// Half of all questions are not answered, and yet everything comes to its place.
TEST_F(FarHistory, WhoIsOftenAwayIsAskedUntilHeAnswers) {
  make(2);
  for (std::uint64_t block = 0; block < kBlocks; block += 2) write(block, 1 + block);
  drain();
  EXPECT_EQ(rig_->early_overwrites(), 0u);
  EXPECT_GT(rig_->apply_failures(), 0u);
  for (std::uint64_t block = 0; block < kBlocks; ++block) {
    std::uint64_t value = 0;
    std::memcpy(&value, rig_->image_disk().bytes({block * kBlockBytes, 8}).data(), sizeof value);
    EXPECT_EQ(value, block % 2 == 0 ? 1 + block : kBase);
  }
}

}  // namespace
}  // namespace mariner::test

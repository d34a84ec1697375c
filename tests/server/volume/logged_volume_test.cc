#include "server/volume/logged_volume.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "tests/server/volume/logged_rig.h"

namespace mariner::volume {
namespace {

using test::LoggedRig;

// The storage of a logger's tests: a base of one character.
class LetterBase final : public Base {
 public:
  void read(BlockRange, std::span<std::byte> to, Done done) override {
    std::memset(to.data(), 'b', to.size());
    done({});
  }
  [[nodiscard]] bool may_move() const override { return true; }
};

// Without an image, a target, or anything else but a log and an index.
class LoggedVolumeTest : public ::testing::Test {
 protected:
  void make(LoggedVolume::Options options) {
    options.id = LoggedRig::kVolume;
    options.epoch = Epoch{1};
    options.index = rig_.index.shared();
    logged_ = std::make_unique<LoggedVolume>(
        std::move(options), LogParts{rig_.disks, rig_.writer, rig_.log_reader}, base_);
  }
  std::string read(BlockRange range, std::uint64_t at) {
    Payload to = Payload::allocate(range.count.bytes());
    bool done = false;
    logged_->reader().read(range, SequenceNumber{at}, to.bytes(),
                           [&](const Result<void>& r) { done = r.has_value(); });
    rig_.executor.run_ready();
    return done ? LoggedRig::text_of(to.bytes()) : "!";
  }
  void write(std::uint64_t sequence, BlockRange extent, char byte) {
    replication::WriteMessage message;
    message.volume = LoggedRig::kVolume;
    message.stamp = {Epoch{1}, SequenceNumber{sequence}, VersionTime{sequence}};
    message.write.extent = extent;
    message.write.payload = LoggedRig::blocks_of(byte, extent.count.value);
    logged_->log().log(message, [](const Result<void>& r) { EXPECT_TRUE(r); });
  }

  LoggedRig rig_{false};
  LetterBase base_;
  std::unique_ptr<LoggedVolume> logged_;
};

TEST_F(LoggedVolumeTest, LogsWritesAndServesEveryMomentOfThem) {
  make({.payload_bytes = 5, .based_everywhere = true});
  write(1, {{1}, {1}}, 'x');
  EXPECT_FALSE(logged_->idle());
  rig_.executor.run_ready();
  EXPECT_TRUE(logged_->idle());
  EXPECT_EQ(read({{0}, {3}}, 1), "bxb");
  EXPECT_EQ(read({{0}, {3}}, 0), "bbb");
  EXPECT_EQ(logged_->log().payload_bytes(), 5 + kBlockBytes);
  logged_->forget_through(SequenceNumber{0}, 0, kBlockBytes);
  EXPECT_EQ(logged_->log().payload_bytes(), 5u);
}

TEST_F(LoggedVolumeTest, TheBaseIsZerosButWhereThePagesSayOtherwise) {
  BaseMap map(false);
  map.add({{1}, {1}});
  make({.base_pages = map.changed()});
  EXPECT_EQ(read({{0}, {3}}, 0), "0b0");
}

TEST_F(LoggedVolumeTest, TellsTheOldestMomentThatSomebodyNeeds) {
  make({});
  EXPECT_EQ(logged_->oldest_pinned(), std::nullopt);
  History::Hold hold;
  logged_->history().hold(SequenceNumber{5}, [&](Result<History::Hold> r) { hold = *r; });
  EXPECT_EQ(logged_->oldest_pinned(), SequenceNumber{5});
  const SnapshotPins::Id pin = logged_->snapshots()->add(SequenceNumber{3});
  EXPECT_EQ(logged_->oldest_pinned(), SequenceNumber{3});
  logged_->close(Error{ErrorCode::kUnavailable, "closing"});
  EXPECT_FALSE(logged_->snapshots()->holds(pin));
  EXPECT_EQ(logged_->oldest_pinned(), SequenceNumber{5}) << "a rollback is let complete";
}

}  // namespace
}  // namespace mariner::volume

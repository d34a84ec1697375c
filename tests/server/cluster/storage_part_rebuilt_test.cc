// A storage node whose image is built anew while the other node's has not got as far, and what
// moments show there afterwards.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "server/cluster/storage_part.h"
#include "tests/server/cluster/letters_base.h"
#include "tests/server/cluster/memory_promises.h"
#include "tests/server/volume/inline_worker.h"
#include "tests/server/volume/logged_rig.h"
#include "tests/server/volume/telling_disk.h"

namespace mariner::cluster {
namespace {

using namespace std::chrono_literals;
using test::LoggedRig;

constexpr VolumeId kVolume = LoggedRig::kVolume;
constexpr Epoch kEpoch{5};
constexpr std::uint64_t kBlocks = 16;

// The log has given up what blocks 4 to 7 held, "EFGH", and has 'b' in block 6 since. The other
// node's image has nothing of that yet.
class RebuiltStoragePartTest : public ::testing::Test {
 protected:
  RebuiltStoragePartTest() {
    rig_.write(1, {{2}, {1}}, 'a');
    rig_.base.add({{4}, {4}});
    rig_.write(2, {{6}, {1}}, 'b');
  }
  ~RebuiltStoragePartTest() override { end(); }
  void end() {
    if (part_ == nullptr) return;
    part_->close();
    rig_.executor.advance(3s);
    EXPECT_TRUE(part_->idle());
    part_.reset();
  }
  // With what the store has kept; a coordinator comes for whom everything up to there is settled.
  void start(std::uint64_t settled) {
    end();
    StoragePart::Events events;
    events.durable = [this](SequenceNumber sequence, volume::Done kept) {
      durable_ = sequence;
      kept({});
    };
    part_ = std::make_unique<StoragePart>(
        std::make_unique<test::TellingDisk>(disk_, [](ByteRange, bool) {}),
        replication::StorageRole::Start{kVolume, {}, durable_}, volume::Storage::Options{},
        StoragePart::Parts{rig_.history, &other_, worker_, rig_.executor, promises_, nullptr,
                           nullptr, base_known_},
        std::move(events));
    to_ = part_->host().accept([](const replication::FromStorage&) {});
    tell(replication::OpenStorage{kVolume, kEpoch});
    tell(replication::Resume{kVolume, kEpoch, {settled}});
    rig_.executor.advance(10s);
  }
  void tell(replication::ToStorage message) {
    part_->host().received(to_, std::move(message));
    rig_.executor.run_ready();
  }
  void write(std::uint64_t sequence, BlockRange extent, char letter) {
    rig_.write(sequence, extent, letter);
    replication::WriteMessage message;
    message.volume = kVolume;
    message.stamp = {kEpoch, {sequence}, {sequence}};
    message.write.extent = extent;
    message.write.payload = LoggedRig::blocks_of(letter, extent.count.value);
    tell(std::move(message));
    tell(replication::CommitMessage{kVolume, kEpoch, {sequence}});
    rig_.executor.advance(10s);
  }
  // Blocks 4 to 7 as of then.
  std::string past(std::uint64_t at) {
    Payload to = Payload::zeroed(4 * kBlockBytes);
    std::string text = "nothing";
    part_->storage().past().read({{4}, {4}}, {at}, to.bytes(), [&](const Result<void>& r) {
      text = r ? LoggedRig::text_of(to.bytes()) : std::string(error_code_name(r.error().code));
    });
    rig_.executor.run_ready();
    return text;
  }
  // What an image holds that an earlier version has built anew. It did not log what 6 held.
  void built_before() {
    durable_ = {2};
    base_known_ = false;
    const std::string blocks = "aEFbH";
    for (std::uint64_t i = 0; i < blocks.size(); ++i) {
      disk_.overwrite((i == 0 ? 2 : 3 + i) * kBlockBytes,
                      LoggedRig::blocks_of(blocks[i], 1).bytes());
    }
    ASSERT_EQ(image(), "00a0EFbH");
  }
  std::string served() {
    Payload to = Payload::zeroed(4 * kBlockBytes);
    std::string text = "nothing";
    part_->image().read({{4}, {4}}, to.bytes(), [&](const Result<void>& r) {
      text = r ? LoggedRig::text_of(to.bytes()) : std::string(error_code_name(r.error().code));
    });
    rig_.executor.run_ready();
    return text;
  }
  [[nodiscard]] std::string image() const {
    return LoggedRig::text_of(disk_.bytes({0, 8 * kBlockBytes}));
  }

  LoggedRig rig_{false};
  test::LettersBase other_;
  test::FaultyDisk disk_{rig_.executor, {.size_bytes = kBlocks * kBlockBytes}};
  test::InlineWorker worker_{rig_.executor};
  MemoryPromises promises_{rig_.executor};
  SequenceNumber durable_;
  bool base_known_ = true;
  std::unique_ptr<StoragePart> part_;
  replication::ConnectionId to_;
};

TEST_F(RebuiltStoragePartTest, MomentsStayAsTheyWereBehindARestart) {
  start(2);
  ASSERT_EQ(durable_, SequenceNumber{2});
  EXPECT_EQ(image(), "00a0EFbH");
  EXPECT_EQ(past(1), "EFGH");
  start(2);
  EXPECT_EQ(past(1), "EFGH");
  EXPECT_EQ(past(2), "EFbH");
}

TEST_F(RebuiltStoragePartTest, WhatIsOverwrittenBehindARestartIsNotLoggedAsTheBase) {
  start(2);
  start(2);
  write(3, {{4}, {4}}, 'c');
  EXPECT_EQ(image(), "00a0cccc");
  EXPECT_EQ(past(1), "EFGH");
  EXPECT_EQ(past(2), "EFbH");
  EXPECT_EQ(past(3), "cccc");
}

TEST_F(RebuiltStoragePartTest, WhatIsWrittenWhileItIsBuiltIsGivenItsBaseToo) {
  other_.good = false;
  start(2);
  EXPECT_EQ(durable_, SequenceNumber{0});
  write(3, {{4}, {1}}, 'c');
  EXPECT_EQ(image(), "00000000") << "nothing goes where the base may be needed";
  other_.good = true;
  rig_.executor.advance(10s);
  ASSERT_EQ(durable_, SequenceNumber{3});
  start(3);
  EXPECT_EQ(image(), "00a0cFbH");
  EXPECT_EQ(past(1), "EFGH");
  EXPECT_EQ(past(2), "EFbH");
}

TEST_F(RebuiltStoragePartTest, ZerosDoNotHideTheBaseThatIsUnderThem) {
  rig_.write(3, {{7}, {1}}, 0, replication::WriteKind::kZero);
  start(3);
  ASSERT_EQ(durable_, SequenceNumber{3});
  EXPECT_EQ(image(), "00a0EFb0");
  EXPECT_EQ(past(2), "EFbH");
  start(3);
  EXPECT_EQ(past(2), "EFbH");
  EXPECT_EQ(past(3), "EFb0");
}

TEST_F(RebuiltStoragePartTest, WhatAnEarlierVersionHasBuiltIsPutRightBeforeItIsReliedOn) {
  built_before();
  other_.good = false;
  start(2);
  EXPECT_FALSE(part_->base_known());
  EXPECT_EQ(past(1), "unavailable");
  EXPECT_EQ(served(), "unavailable");
  write(3, {{4}, {4}}, 'c');
  EXPECT_EQ(image(), "00a0EFbH");
  other_.good = true;
  rig_.executor.advance(10s);
  EXPECT_TRUE(part_->base_known());
  EXPECT_EQ(image(), "00a0cccc");
  EXPECT_EQ(served(), "cccc");
  EXPECT_EQ(past(1), "EFGH");
  EXPECT_EQ(past(2), "EFbH");
}

TEST_F(RebuiltStoragePartTest, AnImageOfAnEarlierVersionThatLoggedTheBaseNeedsNoOther) {
  built_before();
  rig_.capture({{6}, {1}}, 'G');
  other_.good = false;
  start(2);
  EXPECT_TRUE(part_->base_known());
  EXPECT_EQ(served(), "EFbH");
  EXPECT_EQ(past(1), "EFGH");
}

TEST_F(RebuiltStoragePartTest, OneThatStartsOverIsBuiltAsAnyOther) {
  built_before();
  other_.good = false;
  start(2);
  tell(replication::Resume{kVolume, kEpoch, {2}, true});
  rig_.executor.advance(3s);
  EXPECT_EQ(durable_, SequenceNumber{0});
  EXPECT_TRUE(part_->base_known());
  other_.good = true;
  start(2);
  EXPECT_EQ(durable_, SequenceNumber{2});
  EXPECT_EQ(image(), "00a0EFbH");
  EXPECT_EQ(past(1), "EFGH");
}

}  // namespace
}  // namespace mariner::cluster

#include "logging/track_recycler.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "tests/logging/log_testing.h"

namespace mariner::logging {
namespace {

using test::FaultyDisk;
using test::LogRig;
using test::record_of;
using Urgency = LogWriter::Urgency;

// A disk that counts what it is told to forget, and does so: the range is garbage afterwards.
class ForgetfulDisk final : public Disk {
 public:
  ForgetfulDisk(FaultyDisk& below, Executor& executor) : below_(below), executor_(executor) {}

  [[nodiscard]] std::uint64_t size_bytes() const override { return below_.size_bytes(); }
  [[nodiscard]] std::uint32_t alignment() const override { return below_.alignment(); }
  Result<void> read(std::uint64_t offset, std::span<std::byte> to) override {
    return below_.read(offset, to);
  }
  Result<void> write(std::uint64_t offset, std::span<const ConstBytes> parts,
                     Durability durability) override {
    return below_.write(offset, parts, durability);
  }
  Result<void> flush() override { return below_.flush(); }
  Result<void> discard(ByteRange range) override { return below_.discard(range); }
  void async_read(std::uint64_t offset, std::span<std::byte> to, Completion done) override {
    below_.async_read(offset, to, std::move(done));
  }
  void async_write(std::uint64_t offset, std::vector<ConstBytes> parts, Durability durability,
                   Completion done) override {
    below_.async_write(offset, std::move(parts), durability, std::move(done));
  }
  [[nodiscard]] bool can_forget() const override { return true; }
  void async_forget(ByteRange range, Completion done) override {
    EXPECT_FALSE(std::exchange(busy_, true)) << "one at a time";
    forgotten.push_back(range);
    executor_.post([this, range, done = std::move(done)]() mutable {
      busy_ = false;
      if (refuses) return done(Error{ErrorCode::kIo, "refused"});
      below_.overwrite(range.offset, std::vector<std::byte>(range.length, std::byte{0xdb}));
      if (meanwhile) meanwhile();
      done(Result<void>{});
    });
  }

  std::vector<ByteRange> forgotten;
  bool refuses = false;
  std::function<void()> meanwhile;

 private:
  FaultyDisk& below_;
  Executor& executor_;
  bool busy_ = false;
};

class TrackRecyclerTest : public ::testing::Test {
 protected:
  void SetUp() override { open(); }
  void TearDown() override { close(); }

  void open() {
    ASSERT_TRUE(rig_.open());
    recycler_.emplace(*rig_.log_disk, *rig_.tracks, *rig_.writer);
  }
  void close() {
    rig_.executor.run_until_idle();
    recycler_.reset();
    rig_.close();
  }
  // Two records of 1,020 blocks fill a track.
  void fill(std::size_t tracks) {
    rig_.append_batches(next_, 2 * tracks, 1020);
    next_ += 2 * tracks;
  }
  Result<void> release(std::uint64_t oldest) {
    std::optional<Result<void>> done;
    recycler_->release(oldest, [&](Result<void> result) { done = std::move(result); });
    rig_.executor.run_until_idle();
    CHECK(done.has_value());
    return *std::move(done);
  }
  // The number of the last write of a page of the list.
  [[nodiscard]] std::size_t last_page_write() const {
    std::size_t found = 0;
    for (std::size_t i = 0; i < rig_.disk.writes().size(); ++i) {
      const std::uint64_t block = rig_.disk.writes()[i].offset / kBlockBytes;
      if (block >= kListFirstBlock && block < kListFirstBlock + rig_.superblock.list_blocks) {
        found = i;
      }
    }
    return found;
  }
  // Damage, then the sequence numbers of the log as it is found after a power cut.
  std::string reopened() {
    rig_.disk.cut_power();
    close();
    rig_.disk.restore_power();
    open();
    for (const test::Visited& v : rig_.visited) {
      EXPECT_TRUE(rig_.verify(v.record, v.location).has_value());
    }
    return test::damage_text(rig_.recovered) + "|" + test::sequences_text(rig_.visited);
  }

  // From here on the recycler's disk can forget.
  void make_forgetful() {
    close();
    forgetful_.emplace(rig_.disk, rig_.executor);
    rig_.through = &*forgetful_;
    open();
  }
  [[nodiscard]] ByteRange track_bytes(std::uint64_t track) const {
    return {rig_.superblock.track_first_sector(track) * kBlockBytes, test::kTrackBytes};
  }

  LogRig rig_;  // 6 tracks
  std::optional<ForgetfulDisk> forgetful_;
  std::optional<TrackRecycler> recycler_;
  std::uint64_t next_ = 1;
};

TEST_F(TrackRecyclerTest, ReleasedTracksAreFreeAndTheirRecordsGone) {
  fill(3);
  EXPECT_EQ(rig_.writer->free_tracks(), 3u);
  ASSERT_TRUE(release(3).has_value());
  EXPECT_EQ(rig_.writer->free_tracks(), 5u);
  EXPECT_EQ(reopened(), "|5 6");
  EXPECT_EQ(rig_.writer->free_tracks(), 5u);
}

TEST_F(TrackRecyclerTest, TheLogGoesRoundForEver) {
  for (std::uint64_t round = 0; round < 12; ++round) {
    fill(2);
    ASSERT_TRUE(release(rig_.log_disk->current_allocation()).has_value());
    const std::string last = std::to_string(next_ - 2) + " " + std::to_string(next_ - 1);
    EXPECT_EQ(reopened(), "|" + last) << "round " << round;
  }
  EXPECT_EQ(rig_.tracks->oldest(), 24u);
}

TEST_F(TrackRecyclerTest, AFailedReleaseLeavesTheListAsItWas) {
  fill(3);
  rig_.disk.fail_writes(1, FaultyDisk::Remains::kNothing);
  EXPECT_FALSE(release(3).has_value());
  EXPECT_EQ(rig_.writer->free_tracks(), 3u);
  EXPECT_EQ(reopened(), "|1 2 3 4 5 6");
  EXPECT_TRUE(release(3).has_value());
}

TEST_F(TrackRecyclerTest, APageThatTheDiskLosesOrMisdirectsIsNoRelease) {
  fill(3);
  rig_.disk.drop_next_write();
  EXPECT_EQ(release(3).error().code, ErrorCode::kCorrupt);
  rig_.disk.misdirect_next_write((kListFirstBlock - 2) * kBlockBytes);
  EXPECT_EQ(release(3).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(rig_.writer->free_tracks(), 3u);
  fill(1);
  EXPECT_EQ(reopened(), "|1 2 3 4 5 6 7 8");
}

TEST_F(TrackRecyclerTest, AWriterThatWaitsGoesOnWhenTracksAreFree) {
  fill(4);
  bool more = true;
  rig_.writer->set_full_gate([&] { return more; });
  rig_.append(record_of(1, 9, 1020));
  rig_.executor.run_until_idle();
  EXPECT_TRUE(rig_.outcomes.empty()) << "it waits";
  // A before-image may overtake it, into the reserve.
  Record before = record_of(2, 0, 8);
  before.type = RecordType::kBeforeImage;
  rig_.append(before, Urgency::kBeforeImage);
  rig_.executor.run_until_idle();
  ASSERT_EQ(rig_.outcomes.size(), 1u);
  EXPECT_TRUE(rig_.outcomes[0].result.has_value());
  ASSERT_TRUE(release(3).has_value());
  ASSERT_EQ(rig_.outcomes.size(), 2u);
  EXPECT_TRUE(rig_.outcomes[1].result.has_value());
  // Nothing more to come: it fails.
  more = false;
  for (std::uint64_t sequence = 10; sequence < 16; ++sequence) {
    rig_.append(record_of(1, sequence, 1020));
  }
  rig_.executor.run_until_idle();
  ASSERT_EQ(rig_.outcomes.size(), 8u);
  ASSERT_FALSE(rig_.outcomes.back().result.has_value());
  EXPECT_EQ(rig_.outcomes.back().result.error().code, ErrorCode::kNoSpace);
}

TEST_F(TrackRecyclerTest, AReaderIsNotMisledByWhatItReadBefore) {
  const auto read = [this](const LogLocation& at, std::uint64_t sequence) {
    Payload to = Payload::allocate(kBlockBytes);
    std::optional<Result<void>> done;
    rig_.reader->read({at, VolumeId{1}, SequenceNumber{sequence}, 0, to.bytes()},
                      [&](Result<void> result) { done = std::move(result); });
    rig_.executor.run_until_idle();
    return done->has_value();
  };
  const LogLocation old = rig_.append_batches(1, 1, 1020)[0];
  EXPECT_TRUE(read(old, 1));
  next_ = 2;
  // The same place again, under another number.
  LogLocation again;
  while (again.batch_sector != old.batch_sector) {
    again = rig_.append_batches(next_++, 1, 1020)[0];
    ASSERT_LT(next_, 30u);
    const std::uint64_t current = rig_.log_disk->current_allocation();
    if (current > rig_.tracks->oldest()) {
      ASSERT_TRUE(release(current).has_value());
    }
  }
  EXPECT_TRUE(read(again, next_ - 1));
  EXPECT_FALSE(read(old, 1)) << "gone is gone";
}

// Before-images have no sequence number, and those of one track's uses may look alike. Whether the
// second one is written, or the disk loses it: who asks for the first gets an error, or the first.
TEST_F(TrackRecyclerTest, AReaderOfABeforeImageIsNotMisledEither) {
  Record base = test::record_of(1, 0, 1020);
  base.type = RecordType::kBeforeImage;
  const auto read = [&](const LogLocation& at, std::uint64_t ordinal) {
    Payload to = Payload::allocate(kBlockBytes);
    std::optional<Result<void>> done;
    rig_.reader->read({at, VolumeId{1}, {}, 0, to.bytes(), ordinal},
                      [&](Result<void> result) { done = std::move(result); });
    rig_.executor.run_until_idle();
    return done->has_value();
  };
  std::uint64_t ordinal = 1;
  const LogLocation old = *rig_.append_now(base);
  EXPECT_TRUE(read(old, 1));
  LogLocation again;
  while (again.batch_sector != old.batch_sector) {
    again = *rig_.append_now(base);
    ASSERT_LT(++ordinal, 30u);
    const std::uint64_t current = rig_.log_disk->current_allocation();
    if (current > rig_.tracks->oldest()) {
      ASSERT_TRUE(release(current).has_value());
    }
  }
  EXPECT_TRUE(read(again, ordinal));
  EXPECT_FALSE(read(old, 1)) << "gone is gone";
}

TEST_F(TrackRecyclerTest, TheListIsRebuiltFromTheTracksWhenItIsDamaged) {
  fill(4);
  ASSERT_TRUE(release(3).has_value());
  fill(2);
  close();
  rig_.disk.overwrite(kListFirstBlock * kBlockBytes,
                      std::vector<std::byte>(rig_.superblock.list_blocks * kBlockBytes));
  open();
  // What was released and not written over yet is there again; nothing else changes.
  EXPECT_EQ(test::sequences_text(rig_.visited), "1 2 3 4 5 6 7 8 9 10 11 12");
  EXPECT_EQ(test::damage_text(rig_.recovered), "");
  ASSERT_TRUE(release(4).has_value());
  fill(1);
  EXPECT_EQ(reopened(), "|7 8 9 10 11 12 13 14");
}

TEST_F(TrackRecyclerTest, AnOlderPageDoesNotPassForTheNewestOneWhenThatIsDamaged) {
  fill(4);
  ASSERT_TRUE(release(4).has_value());
  fill(3);  // the last of them into a track that only the new page names
  rig_.disk.flip_bit(rig_.disk.writes()[last_page_write()].offset + 100, 3);
  EXPECT_EQ(reopened(), "|3 4 5 6 7 8 9 10 11 12 13 14");
}

TEST_F(TrackRecyclerTest, ADeviceIsToldToForgetTheTracksBeforeTheWriterMayHaveThem) {
  make_forgetful();
  fill(2);
  forgetful_->meanwhile = [this] { EXPECT_EQ(rig_.writer->free_tracks(), 4u); };
  ASSERT_TRUE(release(2).has_value());
  EXPECT_EQ(forgetful_->forgotten, std::vector<ByteRange>{track_bytes(0)});
  EXPECT_EQ(rig_.writer->free_tracks(), 5u);
  // What it left there misleads nobody, also where the track is in use again.
  EXPECT_EQ(reopened(), "|3 4");
  forgetful_->meanwhile = nullptr;
  for (int round = 0; round < 7; ++round) {
    fill(1);
    ASSERT_TRUE(release(rig_.log_disk->current_allocation()).has_value());
    const std::string last = std::to_string(next_ - 2) + " " + std::to_string(next_ - 1);
    EXPECT_EQ(reopened(), "|" + last) << "round " << round;
  }
  EXPECT_EQ(forgetful_->forgotten.size(), 1u + 7u);
}

TEST_F(TrackRecyclerTest, NothingIsForgottenBeforeItsReleaseIsDurable) {
  make_forgetful();
  fill(2);
  rig_.disk.fail_writes(1, FaultyDisk::Remains::kNothing);
  EXPECT_FALSE(release(2).has_value());
  EXPECT_TRUE(forgetful_->forgotten.empty());
  EXPECT_EQ(reopened(), "|1 2 3 4");
}

TEST_F(TrackRecyclerTest, AWriterInWantOfTracksDoesNotWaitForTheDevice) {
  make_forgetful();
  fill(3);  // three of six are left: two of reserve, and one
  ASSERT_TRUE(rig_.writer->short_of_tracks());
  ASSERT_TRUE(release(3).has_value());
  EXPECT_TRUE(forgetful_->forgotten.empty());
  EXPECT_EQ(rig_.writer->free_tracks(), 5u);
}

TEST_F(TrackRecyclerTest, ADeviceThatRefusesIsNotAskedAgainInARound) {
  make_forgetful();
  fill(2);
  forgetful_->refuses = true;
  ASSERT_TRUE(release(2).has_value());
  EXPECT_EQ(forgetful_->forgotten.size(), 1u);
  EXPECT_EQ(rig_.writer->free_tracks(), 5u);
  EXPECT_EQ(reopened(), "|3 4");
}

}  // namespace
}  // namespace mariner::logging

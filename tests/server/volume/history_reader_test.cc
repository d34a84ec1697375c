#include "server/volume/history_reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "logging/recovery.h"
#include "server/volume/volume_log.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/index_rig.h"
#include "tests/support/manual_executor.h"

namespace mariner::volume {
namespace {

// A base whose reads wait until the test answers them.
class SlowBase final : public Base {
 public:
  void read(BlockRange range, std::span<std::byte> to, Done done) override {
    ranges.push_back(range);
    to_ = to;
    done_ = std::move(done);
  }
  [[nodiscard]] bool may_move() const override { return moves; }
  void answer(char byte, const Result<void>& result = {}) {
    std::memset(to_.data(), byte, to_.size());
    std::exchange(done_, nullptr)(result);
  }

  bool moves = true;
  std::vector<BlockRange> ranges;

 private:
  std::span<std::byte> to_;
  Done done_;
};

class HistoryReaderTest : public ::testing::Test {
 protected:
  HistoryReaderTest() { writer_.add(log_disk_); }

  static PayloadSlice blocks_of(char byte, std::uint64_t blocks) {
    Payload payload = Payload::allocate(blocks * kBlockBytes);
    std::memset(payload.data(), byte, payload.size());
    return {payload, 0, payload.size()};
  }
  void write(std::uint64_t sequence, BlockRange extent, char byte,
             replication::WriteKind kind = replication::WriteKind::kData) {
    replication::WriteMessage message;
    message.volume = VolumeId{7};
    message.stamp = {Epoch{1}, SequenceNumber{sequence}, VersionTime{sequence}};
    message.write.kind = kind;
    message.write.extent = extent;
    const bool data = kind == replication::WriteKind::kData;
    if (kind != replication::WriteKind::kZero) {
      message.write.payload = blocks_of(byte, data ? extent.count.value : 1);
    }
    volume_log_.log(message, [](const Result<void>& r) { EXPECT_TRUE(r); });
    executor_.run_ready();
  }
  void capture(BlockRange range, char byte) {
    volume_log_.log_before_image(range, blocks_of(byte, range.count.value), false,
                                 [](const Result<void>& r) { EXPECT_TRUE(r); });
    executor_.run_ready();
  }
  void read(BlockRange range, std::uint64_t at) {
    to_ = Payload::allocate(range.count.bytes());
    result_.reset();
    reader_.read(range, SequenceNumber{at}, to_.bytes(),
                 [this](const Result<void>& r) { result_ = r; });
    executor_.run_ready();
  }
  // One character for each block; '?' for one that is not all of one.
  std::string text() const {
    std::string out;
    for (std::size_t at = 0; at < to_.size(); at += kBlockBytes) {
      const auto block = to_.bytes().subspan(at, kBlockBytes);
      const bool same =
          std::all_of(block.begin(), block.end(), [&](std::byte b) { return b == block[0]; });
      const char c = static_cast<char>(block[0]);
      out += !same ? '?' : c == 0 ? '0' : c;
    }
    return out;
  }

  test::ManualExecutor executor_;
  test::FaultyDisk disk_{
      executor_,
      {.size_bytes = logging::kReservedBytes + 4 * std::uint64_t{logging::kTrackBytesMin}}};
  logging::Superblock superblock_ =
      *logging::format_log(disk_, logging::LogId{}, 0, logging::kTrackBytesMin, 1);
  logging::TrackList tracks_{superblock_};
  logging::LogDisk log_disk_{{disk_, superblock_, tracks_}, {}};
  logging::LogWriter writer_{executor_, 1, {}};
  logging::LogDisks disks_{disk_, superblock_.batch_format()};
  logging::LogReader log_reader_{disks_};
  test::IndexRig index_{executor_};
  VolumeLog volume_log_{VolumeId{7}, Epoch{1}, writer_, index_.index()};
  SlowBase base_;
  HistoryReader reader_{VolumeId{7}, index_.index(), log_reader_, base_};
  Payload to_;
  std::optional<Result<void>> result_;
};

TEST_F(HistoryReaderTest, GathersFromLogZerosAndBase) {
  write(1, {{1}, {2}}, 'a');
  write(2, {{3}, {3}}, 'r', replication::WriteKind::kRepeated);
  write(3, {{2}, {1}}, 0, replication::WriteKind::kZero);
  read({{0}, {6}}, 3);
  EXPECT_FALSE(result_.has_value()) << "the base has not answered";
  EXPECT_EQ(reader_.in_flight(), 1u);
  base_.answer('b');
  executor_.run_ready();
  ASSERT_TRUE(result_.has_value() && *result_);
  EXPECT_EQ(text(), "ba0rrr");
  EXPECT_EQ(base_.ranges, (std::vector<BlockRange>{{{0}, {1}}}));
}

TEST_F(HistoryReaderTest, WhatMovesWhileItIsReadIsReadAgain) {
  read({{0}, {4}}, 0);
  capture({{1}, {2}}, 'm');
  base_.answer('x');  // the image has been overwritten by now
  EXPECT_FALSE(result_.has_value());
  executor_.run_ready();
  ASSERT_TRUE(result_.has_value() && *result_);
  EXPECT_EQ(text(), "xmmx");
}

TEST_F(HistoryReaderTest, ABaseThatCannotMoveIsReadOnce) {
  base_.moves = false;
  read({{0}, {2}}, 0);
  capture({{0}, {1}}, 'm');
  base_.answer('b');
  executor_.run_ready();
  EXPECT_EQ(text(), "bb");
}

TEST_F(HistoryReaderTest, OneErrorFailsTheWholeAfterAllHaveEnded) {
  write(1, {{1}, {1}}, 'a');
  read({{0}, {2}}, 1);
  EXPECT_FALSE(result_.has_value());
  base_.answer('b', Error{ErrorCode::kIo, "gone"});
  ASSERT_TRUE(result_.has_value());
  EXPECT_EQ(result_->error().message, "gone");
  EXPECT_EQ(reader_.in_flight(), 0u);
}

TEST_F(HistoryReaderTest, DamageOfTheLogIsFound) {
  write(1, {{0}, {1}}, 'a');
  const auto run = index_.answers().locate({{0}, {1}}, SequenceNumber{1})[0];
  disk_.flip_bit(run.location.payload_sector() * kBlockBytes, 0);
  read({{0}, {1}}, 1);
  EXPECT_EQ(result_->error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace mariner::volume

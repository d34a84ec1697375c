#include "server/volume/layer_copy.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/server/volume/inline_worker.h"
#include "tests/server/volume/telling_disk.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/manual_executor.h"
#include "tests/support/ram_layer.h"

namespace mariner::volume {
namespace {

constexpr std::uint64_t kSize = 200u << 20;

class LayerCopyTest : public ::testing::Test {
 protected:
  void write(std::uint64_t offset, std::uint64_t length, char byte) {
    Payload data = Payload::allocate(length);
    std::fill_n(data.data(), length, static_cast<std::byte>(byte));
    layer_->write({offset, length}, {data, 0, length},
                  [](const Result<void>& r) { ASSERT_TRUE(r); });
  }
  void begin(UniqueFunction<Result<void>()> may_go_on = {}) {
    copy_layer({.from = layer_,
                .to = watched_,
                .worker = worker_,
                .executor = executor_,
                .progress =
                    [this](std::uint64_t done, std::uint64_t all) {
                      EXPECT_EQ(all, kSize);
                      EXPECT_GE(done, progress_);
                      progress_ = done;
                    },
                .may_go_on = std::move(may_go_on)},
               [this](Result<void> r) {
                 EXPECT_FALSE(result_) << "answered twice";
                 result_ = std::move(r);
               });
  }
  void finish() {
    executor_.run_until_idle();
    ASSERT_TRUE(result_);
  }
  std::string on_disk(std::uint64_t offset, std::uint64_t length) {
    Payload bytes = Payload::allocate(length);
    EXPECT_TRUE(disk_.read(offset, bytes.bytes()));
    return {reinterpret_cast<const char*>(bytes.data()), length};
  }

  test::ManualExecutor executor_;
  test::InlineWorker worker_{executor_};
  std::shared_ptr<test::RamLayer> layer_ =
      std::make_shared<test::RamLayer>(test::RamLayer::Options{.size_bytes = kSize});
  test::FaultyDisk disk_{executor_, {.size_bytes = kSize}};
  std::uint64_t written_ = 0;
  std::uint64_t longest_ = 0;
  test::TellingDisk watched_{disk_, [this](ByteRange range, bool discards) {
                               EXPECT_FALSE(discards);
                               written_ += range.length;
                               longest_ = std::max(longest_, range.length);
                             }};
  std::uint64_t progress_ = 0;
  std::optional<Result<void>> result_;
};

TEST_F(LayerCopyTest, CopiesAllThatIsStored) {
  std::mt19937_64 random(7);
  std::map<std::uint64_t, char> model;  // by block
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t block = random() % (kSize / kBlockBytes - 64);
    const std::uint64_t count = 1 + random() % 64;
    const char byte = static_cast<char>('a' + i % 26);
    write(block * kBlockBytes, count * kBlockBytes, byte);
    for (std::uint64_t b = block; b < block + count; ++b) model[b] = byte;
  }
  write(kSize - kBlockBytes, kBlockBytes, 'z');
  model[kSize / kBlockBytes - 1] = 'z';
  begin();
  finish();
  EXPECT_TRUE(*result_);
  EXPECT_EQ(progress_, kSize);
  EXPECT_EQ(written_, model.size() * kBlockBytes) << "nothing else";
  disk_.cut_power();
  disk_.restore_power();
  for (const auto& [block, byte] : model) {
    ASSERT_EQ(on_disk(block * kBlockBytes, kBlockBytes), std::string(kBlockBytes, byte)) << block;
  }
}

TEST_F(LayerCopyTest, ZerosAreNotWritten) {
  write(0, 4 * kBlockBytes, '\0');
  write(kBlockBytes, kBlockBytes, 'a');
  begin();
  finish();
  EXPECT_TRUE(*result_);
  EXPECT_EQ(written_, kBlockBytes);
  EXPECT_EQ(on_disk(kBlockBytes, kBlockBytes), std::string(kBlockBytes, 'a'));
}

TEST_F(LayerCopyTest, AnEmptyLayerIsSoonCopied) {
  begin();
  finish();
  EXPECT_TRUE(*result_);
  EXPECT_EQ(progress_, kSize);
  EXPECT_EQ(written_, 0u);
}

TEST_F(LayerCopyTest, MemoryIsBounded) {
  write(0, 64u << 20, 'a');
  begin();
  const std::uint64_t before = Payload::total_bytes();
  std::uint64_t most = 0;
  while (!result_) {
    ASSERT_GT(executor_.turn(), 0u);
    most = std::max(most, Payload::total_bytes() - std::min(before, Payload::total_bytes()));
  }
  EXPECT_TRUE(*result_);
  EXPECT_LE(most, 2 * kCopyPortionBytes);
  EXPECT_LE(longest_, kCopyPortionBytes);
}

TEST_F(LayerCopyTest, WhatFailsEndsItOnce) {
  write(0, 40u << 20, 'a');
  layer_->fail_next({ErrorCode::kOutsideWindow, "gone"});
  begin();
  finish();
  EXPECT_EQ(result_->error().code, ErrorCode::kOutsideWindow) << "where it looks";
  result_.reset();
  disk_.fail_writes(1, test::FaultyDisk::Remains::kNothing);
  begin();
  finish();
  EXPECT_EQ(result_->error().code, ErrorCode::kIo) << "where it writes";
  result_.reset();
  begin();
  executor_.turn();
  layer_->fail_next({ErrorCode::kCorrupt, "damaged"});
  finish();
  EXPECT_EQ(result_->error().code, ErrorCode::kCorrupt) << "where it reads";
  EXPECT_EQ(layer_.use_count(), 1) << "and lets go of the moment";
}

TEST_F(LayerCopyTest, WaitsForWhatIsUnderWayWhenItEnds) {
  write(0, 40u << 20, 'a');
  begin();
  layer_->hold();
  executor_.run_until_idle();
  ASSERT_GT(layer_->held(), 0u);
  EXPECT_FALSE(result_);
  layer_->release();
  finish();
  EXPECT_TRUE(*result_);
}

TEST_F(LayerCopyTest, IsAskedWhetherItMayGoOn) {
  write(0, 100u << 20, 'a');
  int portions = 0;
  begin([&]() -> Result<void> {
    if (++portions < 4) return {};
    return Error{ErrorCode::kAborted, "stopped"};
  });
  finish();
  EXPECT_EQ(result_->error().code, ErrorCode::kAborted);
  EXPECT_GT(written_, 0u);
  EXPECT_LT(written_, 100u << 20);
}

}  // namespace
}  // namespace mariner::volume

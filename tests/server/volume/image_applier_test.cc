#include "server/volume/image_applier.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>

#include "tests/server/volume/asked_history.h"
#include "tests/server/volume/inline_worker.h"
#include "tests/server/volume/sectors.h"
#include "tests/server/volume/telling_disk.h"
#include "tests/server/volume/volume_rig.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/manual_executor.h"

namespace mariner::volume {
namespace {

using index::LocatedRun;
using test::AskedHistory;
using test::Sectors;
using test::VolumeRig;

constexpr std::uint64_t kBase = 77;

// An imported volume whose base is all of one number.
class ImageApplierTest : public ::testing::Test {
 protected:
  void make(std::uint64_t blocks,
            std::chrono::nanoseconds apply_delay = std::chrono::milliseconds(1)) {
    VolumeRig::Options options;
    options.blocks = blocks;
    options.base_in_image = true;
    const Payload base = test::bytes_of(Sectors(blocks * test::kSectorsPerBlock, kBase));
    options.base.assign(base.bytes().begin(), base.bytes().end());
    options.storage.apply_delay = apply_delay;
    rig_ = std::make_unique<VolumeRig>(std::move(options));
    rig_->start();
  }
  void write(std::uint64_t first, std::uint64_t blocks, std::uint64_t tag) {
    Payload data = test::bytes_of(Sectors(blocks * test::kSectorsPerBlock, tag));
    const std::size_t length = data.size();
    rig_->volume().live().write({first * kBlockBytes, length}, {std::move(data), 0, length},
                                [](const Result<void>& r) { EXPECT_TRUE(r); });
    rig_->manual().run_ready();
  }
  void trim(std::uint64_t first, std::uint64_t blocks) {
    rig_->volume().live().trim({first * kBlockBytes, blocks * kBlockBytes}, TrimMode::kUnmap,
                               [](const Result<void>& r) { EXPECT_TRUE(r); });
    rig_->manual().run_ready();
  }
  void roll_back(std::uint64_t target) {
    rig_->volume().live().rollback({SequenceNumber{target}, {}},
                                   [](const Result<replication::Stamp>& r) { EXPECT_TRUE(r); });
    rig_->manual().run_ready();
  }
  bool drain() {
    // Shared: what does not drain now is told when the rig stops.
    const auto drained = std::make_shared<bool>(false);
    rig_->volume().storage()->drain([drained](const Result<void>& r) { *drained = r.has_value(); });
    rig_->manual().advance(std::chrono::seconds(3));
    return *drained;
  }
  std::uint64_t in_image(std::uint64_t block) {
    const auto bytes = rig_->image_disk().bytes({block * kBlockBytes, 8});
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::uint64_t tag(Layer& layer, std::uint64_t block) {
    std::optional<std::uint64_t> found;
    layer.read({block * kBlockBytes, kBlockBytes}, [&](const Result<PayloadSlice>& read) {
      ASSERT_TRUE(read);
      std::uint64_t value = 0;
      std::memcpy(&value, read->bytes().data(), sizeof value);
      found = value;
    });
    rig_->manual().run_ready();
    return found.value_or(~0ull);
  }
  LocatedRun::Source base_of(std::uint64_t block) {
    return rig_->answers().locate({{block}, {1}}, SequenceNumber{0})[0].source;
  }

  std::unique_ptr<VolumeRig> rig_;
};

TEST_F(ImageApplierTest, LogsTheBaseBeforeItIsOverwritten) {
  make(16);
  write(4, 3, 5);
  ASSERT_TRUE(drain());
  EXPECT_EQ(in_image(5), 5u);
  EXPECT_EQ(base_of(5), LocatedRun::Source::kLog);
  EXPECT_EQ(base_of(7), LocatedRun::Source::kBase);
  EXPECT_EQ(rig_->early_overwrites(), 0u);
  const auto view = rig_->volume().view_layer(SequenceNumber{0});
  EXPECT_EQ(tag(*view, 5), kBase);
  EXPECT_EQ(tag(*view, 7), kBase);
}

TEST_F(ImageApplierTest, ATrimOfTheOnlyCopyKeepsItInTheImage) {
  make(16);
  trim(4, 4);
  ASSERT_TRUE(drain());
  EXPECT_EQ(in_image(5), kBase);
  EXPECT_EQ(tag(rig_->volume().live(), 5), 0u) << "and yet it reads as zero";
  EXPECT_EQ(tag(*rig_->volume().view_layer(SequenceNumber{0}), 5), kBase);
  roll_back(0);
  ASSERT_TRUE(drain());
  EXPECT_EQ(tag(rig_->volume().live(), 5), kBase);
  EXPECT_EQ(base_of(5), LocatedRun::Source::kBase) << "nothing had to be logged";
}

TEST_F(ImageApplierTest, ATrimOfWhatTheLogHoldsMakesAHole) {
  make(16);
  write(4, 4, 5);
  ASSERT_TRUE(drain());
  trim(5, 2);
  ASSERT_TRUE(drain());
  EXPECT_EQ(in_image(4), 5u);
  EXPECT_EQ(in_image(5), 0u);
  EXPECT_EQ(tag(*rig_->volume().view_layer(SequenceNumber{1}), 5), 5u);
}

TEST_F(ImageApplierTest, ALogThatIsFullKeepsTheImageAsItIs) {
  make(16);
  write(4, 1, 5);
  rig_->log_disk().fail_writes(2, test::FaultyDisk::Remains::kNothing);  // the log is dead after it
  EXPECT_FALSE(drain());
  EXPECT_EQ(in_image(4), kBase);
  EXPECT_EQ(rig_->early_overwrites(), 0u);
  EXPECT_GT(rig_->apply_failures(), 0u);
  EXPECT_EQ(tag(rig_->volume().live(), 4), 5u);
}

TEST_F(ImageApplierTest, MoreThanARecordHoldsAndMoreThanAChunk) {
  make(3000);
  for (std::uint64_t first = 0; first < 3000; first += 1000) write(first, 1000, 5 + first);
  ASSERT_TRUE(drain());
  EXPECT_EQ(rig_->early_overwrites(), 0u);
  for (const std::uint64_t block : {0u, 999u, 1000u, 2047u, 2048u, 2999u}) {
    EXPECT_EQ(in_image(block), 5 + block / 1000 * 1000);
    EXPECT_EQ(tag(*rig_->volume().view_layer(SequenceNumber{0}), block), kBase);
  }
}

// A rollback of an imported volume whose host discarded all of it: every chunk is in the image
// already. What is done for each must not pile up on the stack.
TEST_F(ImageApplierTest, AGreatMany8MiBWithoutAnythingToDo) {
  VolumeRig::Options options;
  options.blocks = std::uint64_t{1} << 28;  // 1 TiB
  options.base_in_image = true;
  options.storage.apply_delay = std::chrono::seconds(1);
  rig_ = std::make_unique<VolumeRig>(std::move(options));
  rig_->start();
  trim(0, std::uint64_t{1} << 28);
  roll_back(0);
  EXPECT_TRUE(drain());
  EXPECT_EQ(rig_->volume().storage()->durable(), SequenceNumber{2});
}

TEST_F(ImageApplierTest, StopsBetweenChunks) {
  make(3000, std::chrono::seconds(1));
  for (std::uint64_t first = 0; first < 3000; first += 1000) write(first, 1000, 5);
  std::optional<ErrorCode> ended;
  rig_->volume().storage()->drain([&](const Result<void>& r) { ended = r.error().code; });
  rig_->manual().turn();
  rig_->volume().storage()->stop();
  rig_->manual().advance(std::chrono::seconds(1));
  EXPECT_EQ(ended, ErrorCode::kAborted);
  EXPECT_TRUE(rig_->volume().storage()->idle());
  EXPECT_EQ(rig_->volume().storage()->durable(), SequenceNumber{0});
}

// A table of the past of which a chunk is written in a second, and zeros are all that it held.
class ImageApplierAheadTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kChunks = 8;
  static constexpr std::uint64_t kChunk = History::kBytesBlocksMax;

  void SetUp() override {
    worker_.set_duration([] { return std::chrono::seconds(1); });
    PendingContent past;
    past.kind = PendingContent::Kind::kHistory;
    past.at = {9};
    table_->put({{0}, {kChunks * kChunk}}, past);
    applier_.set_portion({kChunks * kChunk});
    applier_.start({.table = table_,
                    .flushed =
                        [this](const auto&, auto heard) {
                          ++flushes_;
                          heard();
                        },
                    .done = [this](const Result<void>& result) { ended_ = result; }});
    executor_.run_ready();
  }
  void TearDown() override {
    if (!ended_) applier_.stop();
    while (!ended_) {
      while (!history_.locates.empty()) answer();
      executor_.advance(std::chrono::seconds(1));
    }
  }
  void answer(std::size_t which = 0) {
    AskedHistory::Locate asked = std::move(history_.locates.at(which));
    history_.locates.erase(history_.locates.begin() + static_cast<std::ptrdiff_t>(which));
    History::Located found;
    for (const History::Lookup& lookup : asked.lookups) {
      found.runs.push_back({lookup.range, PastRun::Source::kZero, false, {1}});
    }
    asked.done(std::move(found));
    executor_.run_ready();
  }
  // Chunks that the image got, in this order.
  std::string written() const { return written_; }

  test::ManualExecutor executor_;
  test::InlineWorker worker_{executor_};
  AskedHistory history_;
  BaseMap base_{false};
  std::string written_;
  test::FaultyDisk disk_{executor_, {.size_bytes = kChunks * kChunk * kBlockBytes}};
  test::TellingDisk image_{disk_, [this](ByteRange range, bool) {
                             written_ += std::to_string(range.offset / kBlockBytes / kChunk);
                           }};
  std::shared_ptr<PendingTable> table_ = std::make_shared<PendingTable>();
  ImageApplier applier_{{image_, history_, worker_, &base_}};
  int flushes_ = 0;
  std::optional<Result<void>> ended_;
};

TEST_F(ImageApplierAheadTest, GetsSomeMoreOutOfThePastWhileOneIsWritten) {
  EXPECT_EQ(history_.locates.size(), 1u);
  answer();
  EXPECT_EQ(history_.locates.size(), 2u) << "so many questions at a time";
  answer();
  answer();
  EXPECT_EQ(history_.locates.size(), 1u) << "so many chunks ahead";
  answer();
  EXPECT_TRUE(history_.locates.empty());
  EXPECT_EQ(written(), "0");
  executor_.advance(std::chrono::seconds(1));
  EXPECT_EQ(written(), "01");
  EXPECT_EQ(history_.locates.size(), 1u);
  while (!ended_) {
    while (!history_.locates.empty()) answer();
    executor_.advance(std::chrono::seconds(1));
  }
  EXPECT_TRUE(*ended_);
  EXPECT_EQ(written(), "01234567");
  EXPECT_EQ(flushes_, 1);
}

TEST_F(ImageApplierAheadTest, AnAnswerThatOvertookAnotherWaitsForIt) {
  answer();
  answer(1);
  executor_.advance(std::chrono::seconds(2));
  EXPECT_EQ(written(), "0");
  answer();
  EXPECT_EQ(written(), "01");
  executor_.advance(std::chrono::seconds(1));
  EXPECT_EQ(written(), "012");
}

TEST_F(ImageApplierAheadTest, WhatCameAheadIsNotWrittenWhenItIsStopped) {
  answer();
  answer();
  applier_.stop();
  executor_.advance(std::chrono::seconds(1));
  EXPECT_EQ(history_.locates.size(), 2u);
  answer();
  EXPECT_FALSE(ended_) << "a question is under way";
  answer();
  ASSERT_TRUE(ended_ && !*ended_);
  EXPECT_EQ(ended_->error().code, ErrorCode::kAborted);
  EXPECT_EQ(written(), "0");
  EXPECT_EQ(flushes_, 0);
}

TEST_F(ImageApplierAheadTest, AnErrorEndsItWhenAllIsAnswered) {
  answer();
  AskedHistory::next(history_.locates).done(Error{ErrorCode::kUnavailable, "away"});
  executor_.advance(std::chrono::seconds(1));
  EXPECT_FALSE(ended_);
  answer();
  ASSERT_TRUE(ended_ && !*ended_);
  EXPECT_EQ(ended_->error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(written(), "0");
  EXPECT_EQ(flushes_, 0);
}

// How many pieces a table of 128 runs goes to the image in.
std::size_t pieces(double writes_at_once) {
  test::ManualExecutor executor;
  test::InlineWorker worker(executor);
  AskedHistory history;
  history.at_once = writes_at_once;
  BaseMap base(false);
  test::FaultyDisk disk(executor, {.size_bytes = 256 * kBlockBytes});
  const auto table = std::make_shared<PendingTable>();
  PendingContent content;
  content.kind = PendingContent::Kind::kMemory;
  content.payload = Payload::zeroed(kBlockBytes);
  for (std::uint64_t i = 0; i < 128; ++i) table->put({{2 * i}, {1}}, content);
  ImageApplier applier({disk, history, worker, &base});
  applier.set_portion({256});
  bool ended = false;
  applier.start({.table = table,
                 .flushed = [](const auto&, auto heard) { heard(); },
                 .done =
                     [&](const Result<void>& result) {
                       EXPECT_TRUE(result);
                       ended = true;
                     }});
  executor.run_until_idle();
  EXPECT_TRUE(ended);
  return worker.jobs() - 1;  // the flush
}

TEST(ImageApplierPieces, AreShortWhereHostsSendOneWriteAfterTheOther) {
  EXPECT_EQ(pieces(1), 4u);
  EXPECT_EQ(pieces(2), 2u);
  EXPECT_EQ(pieces(32), 1u);
  EXPECT_EQ(pieces(AskedHistory().at_once), 1u);
}

}  // namespace
}  // namespace mariner::volume

#include "server/scsi/copy_engine.h"

#include "proto/bytes.h"
#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using test::RamLayer;

class CopyEngineTest : public ::testing::Test {
 protected:
  CopyEngineTest() {
    DiskOptions options;
    options.identity = testing::example_identity();
    options.removable = true;
    unit_->disk = std::make_shared<Disk>(options, to_);
    unit_->reservations = std::make_shared<UnitReservations>(ReservationOptions{});
  }
  void fill(std::uint64_t offset, std::uint64_t bytes, char c) {
    from_->write({offset, bytes}, {Payload::copy_of(as_byte_span(std::string(bytes, c))), 0, bytes},
                 [](const Result<void>& r) { EXPECT_TRUE(r); });
  }
  CopyEngine::Run run(std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
    return {from_, from, unit_, to, bytes};
  }
  void start(std::vector<CopyEngine::Run> runs, bool background = false,
             std::optional<std::chrono::nanoseconds> time_max = {}) {
    end_.reset();
    CopyEngine::Job job;
    job.from = kHost;
    job.id = 7;
    job.tag = tag_;
    job.background = background;
    job.runs = std::move(runs);
    job.time_max = time_max;
    job.moved = [this](std::uint64_t bytes, bool complete) {
      moved_ += bytes;
      runs_done_ += complete ? 1 : 0;
      now_ += std::chrono::seconds(1);
    };
    job.done = [this](const CopyEngine::Ended& ended) {
      EXPECT_FALSE(end_) << "once";
      end_ = ended.how;
    };
    engine_->start(std::move(job));
  }

  inline static const NexusId kHost{{"iqn.2026-11.org.example:host", {}}, 1};
  std::chrono::nanoseconds now_{0};
  const std::shared_ptr<CopyEngine> engine_ = std::make_shared<CopyEngine>([this] { return now_; });
  const std::shared_ptr<RamLayer> from_ =
      std::make_shared<RamLayer>(RamLayer::Options{.size_bytes = 64 << 20});
  const std::shared_ptr<RamLayer> to_ =
      std::make_shared<RamLayer>(RamLayer::Options{.size_bytes = 64 << 20});
  const std::shared_ptr<CopyUnit> unit_ = std::make_shared<CopyUnit>();
  std::optional<TaskTag> tag_;
  std::optional<CopyEngine::End> end_;
  std::uint64_t moved_ = 0;
  int runs_done_ = 0;
};

TEST_F(CopyEngineTest, CopiesRunsInOrder) {
  fill(4096, 8192, 'a');
  start({run(4096, 20480, 4096), run(0, 0, 0), run(8192, 512, 512)});
  EXPECT_EQ(end_, CopyEngine::End::kDone);
  EXPECT_EQ(moved_, 4608u);
  EXPECT_EQ(runs_done_, 3);
  EXPECT_EQ(to_->text({20480, 4096}), std::string(4096, 'a'));
  EXPECT_EQ(to_->text({512, 512}), std::string(512, 'a'));
}

TEST_F(CopyEngineTest, LongRunsGoInPieces) {
  fill(0, 3 << 20, 'a');
  to_->record_calls();
  start({run(0, 0, 3 << 20)});
  EXPECT_EQ(to_->calls(), (std::vector<std::string>{"write 0+1048576", "write 1048576+1048576",
                                                    "write 2097152+1048576"}));
}

TEST_F(CopyEngineTest, WhatIsNotStoredIsTrimmed) {
  fill(1 << 20, 4096, 'a');
  to_->write({0, 4096}, {Payload::copy_of(as_byte_span(std::string(4096, 'x'))), 0, 4096},
             [](const Result<void>&) {});
  to_->record_calls();
  start({run(0, 0, 32 << 20)});
  EXPECT_EQ(end_, CopyEngine::End::kDone);
  EXPECT_EQ(to_->calls(),
            (std::vector<std::string>{"zero 0+1048576", "write 1048576+4096",
                                      "zero 1052672+15724544", "zero 16777216+16777216"}));
  EXPECT_EQ(to_->text({0, 4096}), std::string(4096, '\0'));
}

TEST_F(CopyEngineTest, ZerosComeFromNowhere) {
  fill(0, 4096, 'a');
  start({run(0, 4096, 4096)});
  to_->record_calls();
  start({{nullptr, 0, unit_, 4096, 8 << 20}});
  EXPECT_EQ(to_->calls(), (std::vector<std::string>{"zero 4096+8388608"}));
}

// Thousands of pieces that complete at once do not nest.
TEST_F(CopyEngineTest, ManyPieces) {
  for (std::uint64_t block = 0; block < 16384; block += 2) fill(block * 4096, 4096, 'a');
  start({run(0, 0, 64 << 20)});
  EXPECT_EQ(end_, CopyEngine::End::kDone);
  EXPECT_EQ(moved_, 64u << 20);
  EXPECT_EQ(to_->text({8192, 8192}), std::string(4096, 'a') + std::string(4096, '\0'));
}

TEST_F(CopyEngineTest, StopsBetweenPiecesWhenItsTimeIsOver) {
  fill(0, 4 << 20, 'a');
  start({run(0, 0, 4 << 20)}, false, std::chrono::seconds(2));
  EXPECT_EQ(end_, CopyEngine::End::kOutOfTime);
  EXPECT_EQ(moved_, 2u << 20);
}

TEST_F(CopyEngineTest, FailuresOfEitherSide) {
  fill(0, 4096, 'a');
  from_->fail_next({ErrorCode::kIo, "gone"});
  start({run(0, 0, 4096)});
  EXPECT_EQ(end_, CopyEngine::End::kUnreadable);
  to_->fail_next({ErrorCode::kNoSpace, "full"});
  start({run(0, 0, 4096)});
  EXPECT_EQ(end_, CopyEngine::End::kUnwritable);
}

TEST_F(CopyEngineTest, AnAbortedJobWritesNothingMore) {
  fill(0, 2 << 20, 'a');
  from_->hold();
  start({run(0, 0, 2 << 20)}, true);
  EXPECT_EQ(engine_->in_background(), 1u);
  const NexusId stranger{{"iqn.2026-11.org.example:stranger", {}}, 1};
  EXPECT_FALSE(engine_->abort({.from = &stranger}));
  EXPECT_FALSE(engine_->abort({.id = 8}));
  EXPECT_FALSE(engine_->abort({.background_too = false}));
  bool ended = false;
  EXPECT_TRUE(engine_->abort({.from = &kHost, .id = 7}, [&] { ended = true; }));
  EXPECT_FALSE(ended) << "it is being read for it";
  from_->release();
  EXPECT_TRUE(ended);
  EXPECT_EQ(end_, CopyEngine::End::kAborted);
  EXPECT_EQ(engine_->in_background(), 0u);
  EXPECT_EQ(to_->text({0, 4096}), std::string(4096, '\0'));
}

TEST_F(CopyEngineTest, AnAbortOfATagIsForThatOneAndForThoseWithoutATag) {
  const auto abort = [&](std::optional<TaskTag> of, TaskTag aborted) {
    tag_ = of;
    from_->hold();
    start({run(0, 0, 4096)});
    const bool any = engine_->abort({.tag = aborted});
    from_->release();
    EXPECT_EQ(end_, any ? CopyEngine::End::kAborted : CopyEngine::End::kDone);
    return any;
  };
  EXPECT_TRUE(abort(TaskTag{1}, TaskTag{1}));
  EXPECT_FALSE(abort(TaskTag{1}, TaskTag{2}));
  EXPECT_TRUE(abort(std::nullopt, TaskTag{2}));
}

TEST_F(CopyEngineTest, NothingMoreIsWrittenWithoutMedium) {
  from_->hold();
  start({run(0, 0, 4096)});
  EXPECT_FALSE(unit_->disk->medium().eject());
  to_->record_calls();
  from_->release();
  EXPECT_EQ(end_, CopyEngine::End::kNoMedium);
  EXPECT_TRUE(to_->calls().empty());
}
TEST_F(CopyEngineTest, WhoIsFencedOffMeanwhileWritesNothingMore) {
  const NexusId holder{{"iqn.2026-11.org.example:holder", {}}, 1};
  from_->hold();
  start({run(0, 0, 4096)});
  unit_->reservations->apply({.action = PersistentReserveOut::Action::kRegister, .action_key = 1},
                             holder, [](const Result<Reservations::Outcome>&) {});
  unit_->reservations->apply(
      {.action = PersistentReserveOut::Action::kReserve, .type = 1, .key = 1}, holder,
      [](const Result<Reservations::Outcome>&) {});
  to_->record_calls();
  from_->release();
  EXPECT_EQ(end_, CopyEngine::End::kFenced);
  EXPECT_TRUE(to_->calls().empty());
}

}  // namespace
}  // namespace mariner::scsi

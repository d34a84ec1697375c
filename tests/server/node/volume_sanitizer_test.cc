#include "server/node/volume_sanitizer.h"

#include <gtest/gtest.h>

#include <optional>

#include "server/node/local_keeper.h"
#include "tests/server/node/node_parts.h"

namespace mariner::node {
namespace {

using Left = scsi::Sanitizer::Left;
using Refusal = scsi::Sanitizer::Refusal;

class VolumeSanitizerTest : public ::testing::Test {
 protected:
  VolumeSanitizerTest() {
    parts_.create("db1").meta.set_sanitize(true);
    open();
  }
  ~VolumeSanitizerTest() override { close(); }

  // Sets of its own would be others: it is given the ones of the parts.
  void open() {
    volumes_.reset(&parts_.volumes());
    views_.reset(&parts_.views());
    keeper_ = std::make_unique<LocalKeeper>(parts_.volumes(), parts_.views(), parts_.store(),
                                            [](const std::string&) {});
    space_ = std::make_unique<LogSpace>(
        LogSpace::Parts{parts_.log_stack(), *keeper_, parts_.store(), parts_.worker(),
                        parts_.executor(), parts_.log()},
        OnFull::kStopWrites);
    sanitizer_.emplace(volume().meta.id(),
                       VolumeSanitizer::Parts{volumes_, views_, space_, parts_.store(),
                                              parts_.executor(), parts_.log()});
  }
  void close() {
    space_->stop();
    parts_.run_until([this] { return space_->idle(); });
    space_.reset();
    (void)volumes_.release();
    (void)views_.release();
  }
  ServedVolume& volume() { return *parts_.volumes().find("db1"); }
  void write(std::uint64_t block, char byte) {
    parts_.write(*volume().volume->live_layer(), block, byte);
  }
  void erase() {
    bool done = false;
    volume().volume->live_layer()->trim({0, testing::NodeParts::kVolumeBytes},
                                        volume::TrimMode::kZero,
                                        [&](const Result<void>& r) { done = r.has_value(); });
    parts_.run_until([&] { return done; });
  }
  Result<void> forget() {
    std::optional<Result<void>> out;
    sanitizer_->forget_past([&](Result<void> r) { out = std::move(r); });
    parts_.run_until([&] { return out.has_value(); });
    return *out;
  }
  void mark(const std::string& name, std::uint64_t locked_until_ns = 0) {
    const index::IndexMoment now = parts_.answers(volume()).moment_of(parts_.newest(volume()));
    meta::Mark mark;
    mark.set_volume_id(volume().meta.id());
    mark.set_name(name);
    mark.set_sequence(now.sequence.value);
    mark.set_time_ns(now.time.ns);
    mark.set_locked_until_ns(locked_until_ns);
    ASSERT_TRUE(parts_.store().put_mark(mark));
  }
  void expose(const std::string& name) {
    NewView view;
    view.name = name;
    view.at = parts_.answers(volume()).moment_of(parts_.newest(volume()));
    ASSERT_TRUE(parts_.views().expose(volume(), view));
  }

  testing::NodeParts parts_;
  std::unique_ptr<VolumeSet> volumes_;
  std::unique_ptr<ViewSet> views_;
  std::unique_ptr<LocalKeeper> keeper_;
  std::unique_ptr<LogSpace> space_;
  std::optional<VolumeSanitizer> sanitizer_;
};

TEST_F(VolumeSanitizerTest, IsPermittedWhereTheVolumeSaysSo) {
  EXPECT_TRUE(sanitizer_->permitted());
  volume().meta.set_sanitize(false);
  EXPECT_FALSE(sanitizer_->permitted());
}

TEST_F(VolumeSanitizerTest, ThePastCannotBeOpenedAnyMore) {
  write(1, 'a');
  const SequenceNumber secret = parts_.newest(volume());
  const auto kept = volume().volume->open_snapshot(secret);
  mark("before");
  erase();
  ASSERT_TRUE(forget());
  const SequenceNumber oldest = volume().volume->index().oldest().sequence;
  EXPECT_EQ(oldest, parts_.newest(volume()));
  EXPECT_FALSE(volume().volume->open_snapshot(secret));
  std::optional<ErrorCode> code;
  (*kept)->read({kBlockBytes, kBlockBytes},
                [&](const Result<PayloadSlice>& r) { code = r ? ErrorCode::kIo : r.error().code; });
  EXPECT_EQ(code, ErrorCode::kOutsideWindow);
  EXPECT_TRUE(parts_.store().marks()->empty());
  close();
  parts_.stop();
  parts_.start();
  open();
  EXPECT_EQ(volume().volume->index().oldest().sequence, oldest) << "nor after a restart";
  EXPECT_EQ(parts_.read(*volume().volume->live_layer(), 1), 0);
}

TEST_F(VolumeSanitizerTest, TheImageKeepsNothingOfIt) {
  write(1, 'a');
  // The log gives the record up: only the image has the block then.
  parts_.log_stack().writer().leave_tracks();
  write(2, 'b');
  space_->check();
  parts_.run_until([this] { return space_->tracks_freed() == 1; });
  erase();
  bool drained = false;
  volume().volume->storage()->drain([&](const Result<void>& r) { drained = r.has_value(); });
  parts_.run_until([&] { return drained; });
  EXPECT_GT(volume().image->allocated_bytes(), 0u) << "for the sake of the past";
  ASSERT_TRUE(forget());
  EXPECT_EQ(volume().image->allocated_bytes(), 0u);
  EXPECT_EQ(parts_.read(*volume().volume->live_layer(), 1), 0);
  write(1, 'c');
  EXPECT_EQ(parts_.read(*volume().volume->live_layer(), 1), 'c');
}

TEST_F(VolumeSanitizerTest, LockedMarksAndViewsStandInItsWay) {
  write(1, 'a');
  EXPECT_EQ(sanitizer_->refusal(), Refusal::kNone);
  mark("free");
  EXPECT_EQ(sanitizer_->refusal(), Refusal::kNone);
  expose("old");
  EXPECT_EQ(sanitizer_->refusal(), Refusal::kInUse);
  EXPECT_EQ(forget().error().code, ErrorCode::kBusy) << "also one that came meanwhile";
  ASSERT_TRUE(parts_.views().unexpose("old"));
  mark("kept", UINT64_MAX);
  EXPECT_EQ(sanitizer_->refusal(), Refusal::kLockedMark);
  EXPECT_EQ(forget().error().code, ErrorCode::kBusy);
  EXPECT_EQ(volume().volume->index().oldest().sequence, SequenceNumber{0});
}

TEST_F(VolumeSanitizerTest, ARollbackMeanwhileIsNotTakenForAnErasure) {
  write(1, 'a');
  const index::IndexMoment before = parts_.answers(volume()).moment_of(parts_.newest(volume()));
  ASSERT_TRUE(sanitizer_->set_left(Left::kRestricted));
  erase();
  bool back = false;
  volume().volume->live().rollback(
      before, [&](const Result<replication::Stamp>& r) { back = r.has_value(); });
  parts_.run_until([&] { return back; });
  EXPECT_EQ(forget().error().code, ErrorCode::kBusy);
  EXPECT_EQ(parts_.read(*volume().volume->live_layer(), 1), 'a');
}

TEST_F(VolumeSanitizerTest, WhatDidNotEndIsKnownAfterARestart) {
  EXPECT_EQ(sanitizer_->left(), Left::kNothing);
  ASSERT_TRUE(sanitizer_->set_left(Left::kUnrestricted));
  close();
  parts_.stop();
  parts_.start();
  open();
  EXPECT_EQ(sanitizer_->left(), Left::kUnrestricted);
  ASSERT_TRUE(sanitizer_->set_left(Left::kRestricted));
  EXPECT_EQ(sanitizer_->left(), Left::kRestricted);
  ASSERT_TRUE(sanitizer_->set_left(Left::kNothing));
}

}  // namespace
}  // namespace mariner::node

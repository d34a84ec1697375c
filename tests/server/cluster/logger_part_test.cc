#include "server/cluster/logger_part.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/server/cluster/memory_promises.h"
#include "tests/server/volume/logged_rig.h"

namespace mariner::cluster {
namespace {

using replication::ConnectionId;
using replication::FromLogger;
using replication::LoggerRole;
using replication::SequenceRange;
using test::LoggedRig;
using volume::VolumeHistory;

constexpr VolumeId kVolume = LoggedRig::kVolume;

LoggerRole::Start begin(const VolumeHistory& found, index::IndexMoment indexed = {}) {
  return begin_logging(kVolume, found, indexed, indexed.sequence, Epoch{4}, VersionTime{500});
}

VolumeHistory history(std::uint64_t last, std::uint64_t settled,
                      std::vector<VolumeHistory::Hole> holes = {}) {
  VolumeHistory found;
  found.last = {last};
  found.last_time = {1000 + last};
  found.settled = {settled};
  found.holes = std::move(holes);
  return found;
}

TEST(BeginLogging, ANewVolumeBeginsWithNothing) {
  const LoggerRole::Start start = begin({});
  EXPECT_EQ(start.volume, kVolume);
  EXPECT_EQ(start.promised, Epoch{4});
  EXPECT_EQ(start.floor, VersionTime{500});
  EXPECT_EQ(start.last, SequenceNumber{0});
  EXPECT_EQ(start.frontier, SequenceNumber{0});
  EXPECT_TRUE(start.holes.empty());
}

TEST(BeginLogging, TheEndIsThatOfTheLogOrOfTheIndex) {
  VolumeHistory found = history(20, 18);
  found.frontier = {7};
  EXPECT_EQ(begin(found, {{19}, {1019}}).last, SequenceNumber{20});
  EXPECT_EQ(begin(found, {{19}, {1019}}).last_time, VersionTime{1020});
  EXPECT_EQ(begin(found, {{25}, {1025}}).last, SequenceNumber{25}) << "the log has lost it since";
  EXPECT_EQ(begin(found, {{25}, {1025}}).last_time, VersionTime{1025});
  EXPECT_EQ(begin(found).frontier, SequenceNumber{7});
  found.frontier = {30};
  EXPECT_EQ(begin(found).frontier, SequenceNumber{20}) << "of what the log does not know";
}

TEST(BeginLogging, WhatIsMissingAboveWhatWasSettledIsAHole) {
  const auto found = history(20, 10, {{{3}, {4}}, {{9}, {10}}, {{12}, {13}}, {{15}, {15}}});
  EXPECT_EQ(begin(found).holes, (std::vector<SequenceRange>{{{12}, {13}}, {{15}, {15}}}))
      << "below, it is lost, and nobody can make it good";
}

TEST(BeginLogging, AHoleIsCutWhereWhatWasSettledEnds) {
  EXPECT_EQ(begin(history(20, 10, {{{8}, {13}}})).holes,
            (std::vector<SequenceRange>{{{11}, {13}}}));
}

// No coordinator has so many numbers in flight: the log is damaged.
TEST(BeginLogging, WhatIsMissingFarBelowTheEndIsNoHole) {
  constexpr std::uint64_t kFar = std::uint64_t{1} << 40;
  const std::vector<SequenceRange> near = {{{kFar - 9}, {kFar - 7}}};
  EXPECT_TRUE(begin(history(kFar, 10, {{{11}, {kFar - 1}}})).holes.empty());
  EXPECT_EQ(begin(history(kFar, 10, {{{11}, {kFar - 20}}, {{kFar - 9}, {kFar - 7}}})).holes, near);
  // A short one, below a long one: whoever went through all numbers above it would never end.
  const LoggerRole::Start start =
      begin(history(kFar, 10, {{{12}, {13}}, {{20}, {kFar - 20}}, {{kFar - 9}, {kFar - 7}}}));
  EXPECT_EQ(start.holes, near);
  EXPECT_EQ(LoggerRole(start).settled(), SequenceNumber{kFar - 10});
  EXPECT_EQ(begin(history(70'000, 10, {{{70'000 - 65'535}, {70'000 - 1}}})).holes.size(), 1u);
  EXPECT_TRUE(begin(history(70'000, 10, {{{70'000 - 65'536}, {70'000 - 1}}})).holes.empty());
}

TEST(BaseElsewhere, CannotBeRead) {
  BaseElsewhere base;
  std::vector<std::byte> to(kBlockBytes);
  std::optional<Error> error;
  base.read({{9}, {1}}, to, [&](const Result<void>& r) { error = r.error(); });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, ErrorCode::kUnavailable);
  EXPECT_NE(error->message.find("block 9"), std::string::npos);
  EXPECT_TRUE(base.may_move());
}

// A logger as a coordinator meets it, over a log and an index.
class LoggerPartTest : public ::testing::Test {
 protected:
  ~LoggerPartTest() override {
    if (part_ != nullptr) part_->close(Error{ErrorCode::kUnavailable, "closing"});
    rig_.disk.release();
    rig_.executor.run_ready();
  }
  void make(const VolumeHistory& found, Epoch promised = {}) {
    volume::LoggedVolume::Options options;
    options.id = kVolume;
    options.epoch = promised;
    options.index = rig_.index.shared();
    part_ = std::make_unique<LoggerPart>(
        std::move(options),
        begin_logging(kVolume, found, rig_.index.index().newest(), rig_.index.index().end(),
                      promised, {}),
        LoggerPart::Parts{{rig_.disks, rig_.writer, rig_.log_reader}, rig_.executor, promises_},
        journal_ ? LoggerPart::KeepBeginning()
                 : [this](volume::VolumeRelease release, volume::Done kept) {
                     kept_ = std::move(release);
                     rig_.executor.post([kept = std::move(kept)]() mutable { kept({}); });
                   });
    to_ = part_->host().accept([this](const FromLogger& message) { said_.push_back(message); });
  }
  void tell(replication::ToLogger message) {
    part_->host().received(to_, std::move(message));
    rig_.executor.run_ready();
  }
  void write(std::uint64_t sequence, BlockRange extent, char letter, std::uint64_t epoch = 1) {
    replication::WriteMessage message;
    message.volume = kVolume;
    message.stamp = {{epoch}, {sequence}, {sequence}};
    message.write.extent = extent;
    message.write.payload = LoggedRig::blocks_of(letter, extent.count.value);
    tell(std::move(message));
  }
  // The last that was said, if it was this.
  template <typename T>
  std::optional<T> said() const {
    const T* last = said_.empty() ? nullptr : std::get_if<T>(&said_.back());
    return last == nullptr ? std::nullopt : std::optional<T>(*last);
  }
  std::string read(BlockRange range, std::uint64_t at) {
    Payload to = Payload::allocate(range.count.bytes());
    std::string text = "nothing";
    part_->logged().reader().read(range, {at}, to.bytes(), [&](const Result<void>& r) {
      text = r ? LoggedRig::text_of(to.bytes()) : std::string(error_code_name(r.error().code));
    });
    rig_.executor.run_ready();
    return text;
  }

  LoggedRig rig_{false};
  MemoryPromises promises_{rig_.executor};
  bool journal_ = false;
  std::optional<volume::VolumeRelease> kept_;
  std::unique_ptr<LoggerPart> part_;
  ConnectionId to_;
  std::vector<FromLogger> said_;
};

TEST_F(LoggerPartTest, LogsWhatACoordinatorSendsAndServesItsHistory) {
  make({});
  tell(replication::OpenLog{kVolume, {1}});
  ASSERT_TRUE(said<replication::LogOpened>().has_value());
  EXPECT_EQ(promises_.epoch(), Epoch{1}) << "durable before it is told";
  write(1, {{0}, {2}}, 'a');
  write(2, {{1}, {2}}, 'b');
  EXPECT_EQ(said<replication::Logged>()->through, SequenceNumber{2});
  EXPECT_EQ(read({{0}, {4}}, 1), "aa00");
  EXPECT_EQ(read({{0}, {4}}, 2), "abb0");
  EXPECT_EQ(part_->host().role().settled(), SequenceNumber{2});
  EXPECT_TRUE(part_->idle());
}

TEST_F(LoggerPartTest, NothingIsAcknowledgedBeforeItIsOnTheDisk) {
  make({});
  tell(replication::OpenLog{kVolume, {1}});
  rig_.disk.hold();
  write(1, {{0}, {1}}, 'a');
  EXPECT_FALSE(said<replication::Logged>().has_value());
  EXPECT_FALSE(part_->idle());
  part_->close(Error{ErrorCode::kUnavailable, "closing"});
  EXPECT_FALSE(part_->idle()) << "what the disk has is waited for";
  rig_.disk.release();
  rig_.executor.run_ready();
  EXPECT_TRUE(said<replication::Logged>().has_value());
  EXPECT_TRUE(part_->idle());
}

TEST_F(LoggerPartTest, APromiseThatIsBeingMadeIsUnderWay) {
  make({});
  promises_.hold();
  tell(replication::OpenLog{kVolume, {1}});
  EXPECT_TRUE(said_.empty());
  EXPECT_FALSE(part_->idle());
  promises_.release();
  rig_.executor.run_ready();
  EXPECT_TRUE(said<replication::LogOpened>().has_value());
  EXPECT_TRUE(part_->idle());
}

TEST_F(LoggerPartTest, WhatIsAskedOfTheHistoryIsUnderWay) {
  make({});
  rig_.disk.hold();
  bool done = false;
  part_->logged().history().log_before_image({{0}, {1}}, LoggedRig::blocks_of('b', 1),
                                             [&](const Result<void>& r) { done = r.has_value(); });
  rig_.executor.run_ready();
  EXPECT_FALSE(part_->idle());
  rig_.disk.release();
  rig_.executor.run_ready();
  EXPECT_TRUE(done);
  EXPECT_TRUE(part_->idle());
}

TEST_F(LoggerPartTest, BeginsWhereRecoveryEndedWithItsHolesAndItsPromise) {
  rig_.write(1, {{0}, {1}}, 'a');
  rig_.write(2, {{1}, {1}}, 'b');
  make(history(6, 2, {{{3}, {4}}}), Epoch{5});
  tell(replication::OpenLog{kVolume, {4}});
  EXPECT_EQ(said<replication::Refused>()->promised, Epoch{5});
  tell(replication::OpenLog{kVolume, {6}});
  const auto opened = said<replication::LogOpened>();
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ(opened->last, SequenceNumber{6});
  EXPECT_EQ(opened->holes, (std::vector<SequenceRange>{{{3}, {4}}}));
  EXPECT_EQ(opened->floor, VersionTime{1006});
  EXPECT_EQ(part_->host().role().settled(), SequenceNumber{2});
  tell(replication::VoidMessage{kVolume, {6}, {3}, {4}});
  EXPECT_EQ(said<replication::Logged>()->through, SequenceNumber{6});
  EXPECT_EQ(read({{0}, {2}}, 6), "ab");
}

// Nothing of it is left: the images hold what the volume was.
TEST_F(LoggerPartTest, WhereTheLogWasLostTheHistoryBeginsAnewOverTheImages) {
  make({});
  tell(replication::OpenLog{kVolume, {2}});
  tell(replication::BeginAnew{kVolume, {2}, {100}, {5000}});
  EXPECT_EQ(said<replication::Logged>()->through, SequenceNumber{100});
  ASSERT_TRUE(kept_.has_value());
  EXPECT_EQ(kept_->volume, kVolume);
  EXPECT_EQ(kept_->horizon.moment.sequence, SequenceNumber{100});
  EXPECT_EQ(kept_->horizon.moment.time, VersionTime{5000});
  EXPECT_EQ(kept_->horizon.last, SequenceNumber{100});
  EXPECT_EQ(kept_->horizon.frontier, SequenceNumber{100});
  EXPECT_EQ(kept_->horizon.given_up, SequenceNumber{100});
  EXPECT_TRUE(kept_->based_everywhere);
  EXPECT_EQ(part_->logged().index().oldest().sequence, SequenceNumber{100});
  replication::WriteMessage message;
  message.volume = kVolume;
  message.stamp = {{2}, {101}, {6000}};
  message.write.extent = {{3}, {1}};
  message.write.payload = LoggedRig::blocks_of('a', 1);
  tell(std::move(message));
  EXPECT_EQ(read({{3}, {1}}, 101), "a");
  EXPECT_EQ(read({{4}, {1}}, 101), "unavailable") << "it stands in the images";
  std::optional<volume::History::Moment> found;
  part_->logged().history().moment(
      SequenceNumber{99}, [&](const Result<volume::History::Moment>& moment) { found = *moment; });
  rig_.executor.run_ready();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->oldest.sequence, SequenceNumber{100}) << "before that nothing can be opened";
  std::optional<ErrorCode> code;
  part_->logged().history().changed(
      SequenceNumber{99}, SequenceNumber{101}, [](std::span<const BlockRange>) {},
      [&](const Result<void>& r) { code = r.error().code; });
  rig_.executor.run_ready();
  EXPECT_EQ(code, ErrorCode::kOutsideWindow) << "what an image missed, nobody knows";
}

TEST_F(LoggerPartTest, AJournalHasNoHistoryToBegin) {
  journal_ = true;
  make({});
  tell(replication::OpenLog{kVolume, {2}});
  tell(replication::BeginAnew{kVolume, {2}, {100}, {5000}});
  EXPECT_EQ(said<replication::Refused>()->error.code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace mariner::cluster

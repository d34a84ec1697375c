#include "server/cluster/storage_part.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/server/cluster/letters_base.h"
#include "tests/server/cluster/memory_promises.h"
#include "tests/server/volume/asked_history.h"
#include "tests/server/volume/inline_worker.h"
#include "tests/server/volume/logged_rig.h"
#include "tests/server/volume/telling_disk.h"

namespace mariner::cluster {
namespace {

using namespace std::chrono_literals;
using replication::ConnectionId;
using replication::FromStorage;
using test::AskedHistory;
using test::LoggedRig;

constexpr VolumeId kVolume = LoggedRig::kVolume;
constexpr Epoch kEpoch{5};
constexpr std::uint64_t kBlocks = 16;

// A storage node as a coordinator meets it, over an image in memory. What it wants to know of the
// past, it asks the test.
class StoragePartTest : public ::testing::Test {
 protected:
  ~StoragePartTest() override {
    if (part_ == nullptr) return;
    part_->close();
    disk_.release();
    advance(1s);
    executor_.run_until_idle();
    EXPECT_TRUE(part_->idle());
  }
  void make(std::uint64_t durable = 0, Epoch promised = {}) {
    volume::Storage::Options options;
    options.lag_bytes_max = 64 * kBlockBytes;
    StoragePart::Events events;
    events.durable = [this](SequenceNumber sequence, volume::Done kept) {
      durable_ = sequence;
      if (keep_fails_) return kept(Error{ErrorCode::kIo, "the store is full"});
      kept({});
    };
    events.apply_failed = [this](const Error&) { ++failures_; };
    events.starts_over = [this] { ++starts_over_; };
    part_ = std::make_unique<StoragePart>(
        std::make_unique<test::TellingDisk>(disk_, [](ByteRange, bool) {}),
        replication::StorageRole::Start{kVolume, promised, {durable}}, options,
        StoragePart::Parts{history_, &other_, worker_, executor_, promises_}, std::move(events));
    to_ = part_->host().accept([this](const FromStorage& message) { said_.push_back(message); });
  }
  void tell(replication::ToStorage message) {
    part_->host().received(to_, std::move(message));
    executor_.run_ready();
  }
  void resume(std::uint64_t settled) {
    tell(replication::OpenStorage{kVolume, kEpoch});
    ASSERT_TRUE(said<replication::StorageOpened>().has_value());
    tell(replication::Resume{kVolume, kEpoch, {settled}});
  }
  void write(std::uint64_t sequence, BlockRange extent, char letter) {
    replication::WriteMessage message;
    message.volume = kVolume;
    message.stamp = {kEpoch, {sequence}, {sequence}};
    message.write.extent = extent;
    message.write.payload = LoggedRig::blocks_of(letter, extent.count.value);
    tell(std::move(message));
  }
  void commit(std::uint64_t settled) {
    tell(replication::CommitMessage{kVolume, kEpoch, {settled}});
  }
  // The newest of these that was said.
  template <typename T>
  [[nodiscard]] std::optional<T> said() const {
    std::optional<T> found;
    for (const FromStorage& message : said_) {
      if (const T* one = std::get_if<T>(&message)) found = *one;
    }
    return found;
  }
  // What it is about to overwrite is nobody's base.
  void advance(std::chrono::milliseconds time) {
    constexpr auto kStep = 100ms;
    for (; time.count() > 0; time -= kStep) {
      executor_.advance(std::min(time, std::chrono::milliseconds(kStep)));
      while (!history_.locates.empty()) {
        AskedHistory::Locate asked = AskedHistory::next(history_.locates);
        volume::History::Located none;
        for (const volume::History::Lookup& lookup : asked.lookups) {
          EXPECT_EQ(lookup.at, SequenceNumber{0});
          EXPECT_FALSE(lookup.with_bytes);
          none.runs.push_back({lookup.range, volume::PastRun::Source::kZero, false, {}});
        }
        asked.done(std::move(none));
        executor_.run_ready();
      }
    }
  }
  std::string read(BlockRange range) {
    std::string text = "nothing";
    part_->storage().read(range, [&](const Result<PayloadSlice>& r) {
      text = r ? LoggedRig::text_of(r->bytes()) : std::string(error_code_name(r.error().code));
    });
    executor_.run_ready();
    return text;
  }
  [[nodiscard]] std::string image() const {
    return LoggedRig::text_of(disk_.bytes({0, 4 * kBlockBytes}));
  }

  test::ManualExecutor executor_;
  test::FaultyDisk disk_{executor_, {.size_bytes = kBlocks * kBlockBytes}};
  test::InlineWorker worker_{executor_};
  AskedHistory history_;
  test::LettersBase other_;
  MemoryPromises promises_{executor_};
  std::unique_ptr<StoragePart> part_;
  ConnectionId to_;
  std::vector<FromStorage> said_;
  SequenceNumber durable_;
  int failures_ = 0;
  int starts_over_ = 0;
  bool keep_fails_ = false;
};

TEST_F(StoragePartTest, WhatIsCommittedIsReadAndComesToTheImage) {
  make();
  resume(0);
  EXPECT_EQ(promises_.epoch(), kEpoch);
  EXPECT_EQ(said<replication::CaughtUp>()->through, SequenceNumber{0});
  write(1, {{0}, {2}}, 'a');
  write(2, {{1}, {2}}, 'b');
  EXPECT_EQ(read({{0}, {4}}), "0000");
  commit(1);
  EXPECT_EQ(read({{0}, {4}}), "aa00");
  commit(2);
  EXPECT_EQ(read({{0}, {4}}), "abb0");
  EXPECT_EQ(image(), "0000");
  advance(5s);
  EXPECT_EQ(image(), "abb0");
  EXPECT_EQ(durable_, SequenceNumber{2});
  EXPECT_EQ(said<replication::StorageProgress>()->durable, SequenceNumber{2});
  EXPECT_EQ(read({{0}, {4}}), "abb0");
}

TEST_F(StoragePartTest, TheCoordinatorIsToldWhatIsGranted) {
  make();
  resume(0);
  const auto at_first = said<replication::StorageProgress>();
  ASSERT_TRUE(at_first.has_value());
  EXPECT_EQ(at_first->granted, part_->storage().granted_bytes());
  EXPECT_GE(at_first->granted, 64 * kBlockBytes);
  for (std::uint64_t sequence = 1; sequence <= 4; ++sequence) write(sequence, {{0}, {16}}, 'a');
  commit(4);
  advance(30s);
  EXPECT_EQ(durable_, SequenceNumber{4});
  EXPECT_GE(said<replication::StorageProgress>()->granted, 128 * kBlockBytes)
      << "as much again as was applied";
}

TEST_F(StoragePartTest, WhatCameSinceTheImageTheHistoryTells) {
  disk_.overwrite(0, LoggedRig::blocks_of('i', 4).bytes());
  make(7, Epoch{4});
  resume(20);
  EXPECT_EQ(said<replication::StorageOpened>()->committed, SequenceNumber{7});
  EXPECT_EQ(said<replication::StorageOpened>()->durable, SequenceNumber{7});
  EXPECT_FALSE(said<replication::CaughtUp>().has_value());
  AskedHistory::Changed asked = AskedHistory::next(history_.changes);
  EXPECT_EQ(asked.from, SequenceNumber{7});
  EXPECT_EQ(asked.to, SequenceNumber{20});
  EXPECT_FALSE(part_->idle());
  write(21, {{0}, {1}}, 'a');
  commit(21);
  EXPECT_EQ(read({{0}, {4}}), "iiii") << "behind what is caught up with";
  asked.portion(std::vector<BlockRange>{{{2}, {1}}});
  asked.done({});
  executor_.run_ready();
  EXPECT_EQ(said<replication::CaughtUp>()->through, SequenceNumber{20});
  EXPECT_EQ(read({{0}, {2}}), "ai");
  std::optional<std::string> text;
  part_->storage().read(
      {{2}, {1}}, [&](const Result<PayloadSlice>& r) { text = LoggedRig::text_of(r->bytes()); });
  AskedHistory::Read past = AskedHistory::next(history_.reads);
  EXPECT_EQ(past.at, SequenceNumber{20});
  std::ranges::fill(past.to, std::byte{'h'});
  past.done(std::vector<BlockRange>{});
  executor_.run_ready();
  EXPECT_EQ(text, "h");
}

TEST_F(StoragePartTest, WhatIsNotInTheHistoryAnyMoreIsBuiltAnew) {
  disk_.overwrite(0, LoggedRig::blocks_of('i', 4).bytes());
  make(7, Epoch{4});
  resume(20);
  AskedHistory::Changed asked = AskedHistory::next(history_.changes);
  asked.portion(std::vector<BlockRange>{{{2}, {1}}});
  keep_fails_ = true;
  asked.done(Error{ErrorCode::kOutsideWindow, "it begins at #15"});
  executor_.run_ready();
  EXPECT_EQ(said<replication::Refused>()->error.code, ErrorCode::kUnavailable);
  EXPECT_EQ(starts_over_, 0) << "that is its coordinator's to say";
  tell(replication::OpenStorage{kVolume, kEpoch});
  tell(replication::Resume{kVolume, kEpoch, {20}, true});
  EXPECT_EQ(starts_over_, 1);
  EXPECT_EQ(image(), "iiii") << "before it is kept that nothing is there";
  std::string served = "nothing";
  Payload to = Payload::allocate(kBlockBytes);
  part_->image().read({{0}, {1}}, to.bytes(), [&](const Result<void>& r) {
    served = r ? "something" : error_code_name(r.error().code);
  });
  EXPECT_EQ(served, error_code_name(ErrorCode::kUnavailable)) << "nobody is given any of it";
  keep_fails_ = false;
  durable_ = {99};
  advance(2s);
  EXPECT_EQ(durable_, SequenceNumber{0});
  EXPECT_EQ(image(), "0000");
  EXPECT_EQ(part_->storage().lag_bytes(), 0u);

  resume(30);
  EXPECT_EQ(said<replication::StorageOpened>()->durable, SequenceNumber{0});
  AskedHistory::Locate stored = AskedHistory::next(history_.locates);
  ASSERT_EQ(stored.lookups.size(), 2u);
  EXPECT_EQ(stored.lookups[0].at, SequenceNumber{30}) << "what is stored at all";
  EXPECT_EQ(stored.lookups[1].at, SequenceNumber{0}) << "or was";
  volume::History::Located nothing;
  for (const volume::History::Lookup& lookup : stored.lookups) {
    nothing.runs.push_back({lookup.range, volume::PastRun::Source::kZero, false, {}});
  }
  stored.done(std::move(nothing));
  executor_.run_ready();
  EXPECT_EQ(said<replication::CaughtUp>()->through, SequenceNumber{30});
  advance(3s);
  EXPECT_EQ(durable_, SequenceNumber{30});
}

// The applier is at it, and waits for the history.
TEST_F(StoragePartTest, WhoIsToldToStartOverDropsWhatItHad) {
  make(7, Epoch{4});
  resume(7);
  write(8, {{0}, {1}}, 'a');
  commit(8);
  executor_.advance(3s);
  AskedHistory::Locate base = AskedHistory::next(history_.locates);
  tell(replication::Resume{kVolume, kEpoch, {20}, true});
  EXPECT_EQ(starts_over_, 1);
  EXPECT_FALSE(part_->idle());
  volume::History::Located none;
  none.runs.push_back({base.lookups[0].range, volume::PastRun::Source::kZero, false, {}});
  base.done(std::move(none));
  advance(3s);
  EXPECT_EQ(image(), "0000");
  EXPECT_EQ(durable_, SequenceNumber{0});
  resume(20);
  EXPECT_EQ(said<replication::StorageOpened>()->committed, SequenceNumber{0});
  AskedHistory::Locate stored = AskedHistory::next(history_.locates);
  EXPECT_EQ(stored.lookups[0].at, SequenceNumber{20});
  stored.done(Error{ErrorCode::kUnavailable, "the log is away"});
}

// ... and ends before that can be kept. A start would take an emptied image for what it was.
TEST_F(StoragePartTest, AnImageIsNotEmptiedBeforeThatIsKept) {
  disk_.overwrite(0, LoggedRig::blocks_of('i', 4).bytes());
  make(7, Epoch{4});
  resume(7);
  write(8, {{0}, {1}}, 'a');
  commit(8);
  executor_.advance(3s);
  AskedHistory::Locate base = AskedHistory::next(history_.locates);
  keep_fails_ = true;
  tell(replication::Resume{kVolume, kEpoch, {20}, true});
  volume::History::Located none;
  none.runs.push_back({base.lookups[0].range, volume::PastRun::Source::kZero, false, {}});
  base.done(std::move(none));
  executor_.run_ready();
  EXPECT_EQ(image(), "iiii");
  keep_fails_ = false;
  advance(3s);
  EXPECT_EQ(durable_, SequenceNumber{0});
  EXPECT_EQ(image(), "0000");
  tell(replication::OpenStorage{kVolume, kEpoch});
  EXPECT_EQ(said<replication::StorageOpened>()->durable, SequenceNumber{0});
}

TEST_F(StoragePartTest, AnImageThatCannotBeWrittenIsSaidAndTriedAgain) {
  make();
  resume(0);
  write(1, {{0}, {1}}, 'a');
  commit(1);
  disk_.fail_writes(1, test::FaultyDisk::Remains::kNothing);
  advance(2500ms);
  EXPECT_EQ(failures_, 1);
  EXPECT_EQ(durable_, SequenceNumber{0});
  EXPECT_EQ(said<replication::StorageProgress>()->durable, SequenceNumber{0});
  EXPECT_EQ(read({{0}, {1}}), "a");
  advance(30s);
  EXPECT_EQ(durable_, SequenceNumber{1});
  EXPECT_EQ(image(), "a000");
}

TEST_F(StoragePartTest, ADiskThatFailsAgainAndAgainIsToldOf) {
  make();
  resume(0);
  write(1, {{0}, {1}}, 'a');
  commit(1);
  disk_.fail_writes(1000, test::FaultyDisk::Remains::kNothing);
  advance(9s);
  EXPECT_FALSE(said<replication::StorageProgress>()->failed);
  advance(6s);
  ASSERT_TRUE(said<replication::StorageProgress>()->failed);
  EXPECT_EQ(said<replication::StorageProgress>()->failed->code, ErrorCode::kIo);
  EXPECT_TRUE(part_->host().image_failure());
  disk_.fail_writes(0, test::FaultyDisk::Remains::kNothing);
  advance(2s);
  EXPECT_EQ(durable_, SequenceNumber{1});
  EXPECT_FALSE(said<replication::StorageProgress>()->failed);
  EXPECT_FALSE(part_->host().image_failure());
}

// That is just when no image must be done without.
TEST_F(StoragePartTest, ALogThatTakesNoBeforeImagesIsNoFaultOfTheImage) {
  disk_.overwrite(0, LoggedRig::blocks_of('i', 4).bytes());
  make(7, Epoch{4});
  resume(7);
  write(8, {{1}, {1}}, 'a');
  commit(8);
  for (int second = 0; second < 60; ++second) {
    executor_.advance(1s);
    while (!history_.locates.empty()) {
      AskedHistory::next(history_.locates)
          .done(volume::History::Located{{{{{1}, {1}}, volume::PastRun::Source::kBase, false, {}}},
                                         {}});
      executor_.run_ready();
    }
    while (!history_.before_images.empty()) {
      AskedHistory::next(history_.before_images)
          .done(Error{ErrorCode::kNoSpace, "the log is full"});
      executor_.run_ready();
    }
  }
  EXPECT_GT(failures_, 10);
  EXPECT_FALSE(part_->host().image_failure());
  EXPECT_FALSE(said<replication::StorageProgress>()->failed);
}

// Nor is a logger that is away, or does not answer.
TEST_F(StoragePartTest, AHistoryThatIsAwayIsNoFaultOfTheImage) {
  make(7, Epoch{4});
  resume(7);
  write(8, {{1}, {1}}, 'a');
  commit(8);
  for (int second = 0; second < 60; ++second) {
    executor_.advance(1s);
    while (!history_.locates.empty()) {
      AskedHistory::next(history_.locates).done(Error{ErrorCode::kUnavailable, "it is away"});
      executor_.run_ready();
    }
  }
  EXPECT_FALSE(part_->host().image_failure());
  advance(3s);
}

TEST_F(StoragePartTest, WhatIsUnderWayIsWaitedForAtTheEnd) {
  make();
  resume(0);
  write(1, {{0}, {1}}, 'a');
  commit(1);
  worker_.set_duration([] { return 1s; });
  advance(2500ms);
  EXPECT_FALSE(part_->idle());
  part_->close();
  EXPECT_FALSE(part_->idle());
  advance(10s);
  EXPECT_TRUE(part_->idle());
}

TEST_F(StoragePartTest, WhatOnlyTheImageHoldsIsLoggedBeforeItIsOverwritten) {
  disk_.overwrite(0, LoggedRig::blocks_of('i', 4).bytes());
  make(7, Epoch{4});
  resume(7);
  write(8, {{1}, {2}}, 'a');
  commit(8);
  executor_.advance(2500ms);
  AskedHistory::Locate asked = AskedHistory::next(history_.locates);
  ASSERT_EQ(asked.lookups.size(), 1u);
  asked.done(volume::History::Located{{{{{1}, {1}}, volume::PastRun::Source::kZero, false, {}},
                                       {{{2}, {1}}, volume::PastRun::Source::kBase, false, {}}},
                                      {}});
  executor_.run_ready();
  EXPECT_EQ(image(), "iiii");
  AskedHistory::BeforeImage kept = AskedHistory::next(history_.before_images);
  EXPECT_EQ(kept.range, (BlockRange{{2}, {1}}));
  EXPECT_EQ(LoggedRig::text_of(kept.bytes.bytes()), "i");
  kept.done({});
  executor_.run_ready();
  EXPECT_EQ(image(), "iaai");
}

TEST_F(StoragePartTest, ACoordinatorElsewhereReadsWhatIsCommittedAsSoonAsItIs) {
  make(7, Epoch{4});
  resume(7);
  write(8, {{1}, {2}}, 'a');
  std::string text;
  const auto ask = [&](SequenceNumber at) {
    part_->current().read({{{0}, {4}}, at, kEpoch}, [&](const Result<PayloadSlice>& r) {
      text = r ? LoggedRig::text_of(r->bytes()) : std::string(error_code_name(r.error().code));
    });
    executor_.run_ready();
  };
  ask({8});
  EXPECT_EQ(text, "");
  commit(8);
  EXPECT_EQ(text, "0aa0");
  text.clear();
  ask({9});
  EXPECT_EQ(text, "");
  EXPECT_FALSE(part_->idle());
  part_->close();
  EXPECT_EQ(text, "unavailable");
}

TEST_F(StoragePartTest, OthersReadTheImageOnceItIsBuilt) {
  disk_.overwrite(0, LoggedRig::blocks_of('i', 4).bytes());
  const auto seen = [this](BlockRange range) {
    Payload to = Payload::zeroed(range.count.bytes());
    std::string text = "nothing";
    part_->image().read(range, to.bytes(), [&](const Result<void>& r) {
      text = r ? LoggedRig::text_of(to.bytes()) : std::string(error_code_name(r.error().code));
    });
    executor_.run_ready();
    return text;
  };
  make(7);
  EXPECT_EQ(seen({{1}, {2}}), "ii");
  EXPECT_EQ(seen({{kBlocks - 1}, {2}}), "invalid-argument");
  part_->close();
  make(0);
  EXPECT_EQ(seen({{1}, {2}}), "unavailable");
}

TEST_F(StoragePartTest, WhatIsNotKeptIsNotTold) {
  make();
  resume(0);
  keep_fails_ = true;
  write(1, {{0}, {1}}, 'a');
  commit(1);
  advance(5s);
  EXPECT_EQ(durable_, SequenceNumber{1});
  EXPECT_EQ(said<replication::StorageProgress>()->durable, SequenceNumber{0});
  keep_fails_ = false;
  write(2, {{0}, {1}}, 'b');
  commit(2);
  advance(5s);
  EXPECT_EQ(said<replication::StorageProgress>()->durable, SequenceNumber{2});
}

TEST_F(StoragePartTest, AnOlderEpochThanWasPromisedIsNotHeard) {
  make(0, Epoch{6});
  tell(replication::OpenStorage{kVolume, kEpoch});
  const auto refused = said<replication::Refused>();
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->promised, Epoch{6});
}

}  // namespace
}  // namespace mariner::cluster

#include "server/volume/stored_volume.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/server/volume/asked_history.h"
#include "tests/server/volume/inline_worker.h"
#include "tests/server/volume/watched_disk.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/manual_executor.h"

namespace mariner::volume {
namespace {

using replication::WriteKind;
using replication::WriteMessage;
using test::AskedHistory;
using Source = PastRun::Source;

constexpr std::uint64_t kBlocks = 16;

// Bytes of the past that came with an answer.
class LetterBytes final : public PastBytes {
 public:
  LetterBytes(char letter, std::uint64_t blocks) : letter_(letter), blocks_(blocks) {}
  [[nodiscard]] Result<PayloadSlice> get() const override {
    Payload payload = Payload::allocate(blocks_ * kBlockBytes);
    std::memset(payload.data(), letter_, payload.size());
    return PayloadSlice{payload, 0, payload.size()};
  }

 private:
  const char letter_;
  const std::uint64_t blocks_;
};

PastRun run(BlockRange range, Source source, char letter = 0) {
  return {range,
          source,
          false,
          {},
          letter == 0 ? nullptr : std::make_shared<LetterBytes>(letter, range.count.value)};
}

// An image of 'i's, without a log or an index: what the storage wants to know of the past, it asks.
class StoredVolumeTest : public ::testing::Test {
 protected:
  StoredVolumeTest() {
    const std::vector<std::byte> bytes(kBlocks * kBlockBytes, std::byte{'i'});
    disk_.overwrite(0, bytes);
  }
  ~StoredVolumeTest() override {
    if (stored_ != nullptr) stored_->close();
    executor_.run_until_idle();
  }
  void all_in_base() {
    base_.add({{0}, {kBlocks}});
    base_.stored();
  }
  void make(Storage::Found found = {}, Storage::Options options = {}) {
    Storage::Events events;
    events.durable = [this](SequenceNumber sequence) { durable_ = sequence; };
    events.apply_failed = [this](const Error&) { ++failures_; };
    stored_ = std::make_unique<StoredVolume>(
        std::make_unique<test::WatchedDisk>(disk_, [](ByteRange, bool) {}),
        StoredVolume::Parts{history_, &base_, worker_, executor_}, options, std::move(found),
        std::move(events));
  }
  void write(std::uint64_t sequence, BlockRange extent, char letter) {
    WriteMessage message;
    message.stamp = {Epoch{1}, SequenceNumber{sequence}, VersionTime{sequence}};
    message.write.extent = extent;
    if (letter == 0) {
      message.write.kind = WriteKind::kZero;
    } else {
      Payload payload = Payload::allocate(extent.count.bytes());
      std::memset(payload.data(), letter, payload.size());
      message.write.payload = {payload, 0, payload.size()};
    }
    stored_->storage().prepare(message);
    stored_->storage().commit(SequenceNumber{sequence});
  }
  void apply() { executor_.advance(std::chrono::seconds(2)); }
  void begin_read(BlockRange range) {
    read_.reset();
    stored_->storage().read(range, [this](const Result<PayloadSlice>& r) {
      read_ = r ? text_of(r->bytes()) : std::string(error_code_name(r.error().code));
    });
    executor_.run_ready();
  }
  static std::string text_of(std::span<const std::byte> bytes) {
    std::string out;
    for (std::size_t at = 0; at < bytes.size(); at += kBlockBytes) {
      out += bytes[at] == std::byte{0} ? '0' : static_cast<char>(bytes[at]);
    }
    return out;
  }
  std::string image() { return text_of(disk_.bytes({0, kBlocks * kBlockBytes})).substr(0, 6); }
  void answer(std::vector<PastRun> runs, std::uint64_t newest = 0) {
    AskedHistory::next(history_.locates)
        .done(History::Located{std::move(runs), SequenceNumber{newest}});
    executor_.run_ready();
  }

  test::ManualExecutor executor_;
  test::FaultyDisk disk_{executor_, {.size_bytes = kBlocks * kBlockBytes}};
  test::InlineWorker worker_{executor_};
  AskedHistory history_;
  BaseMap base_{false};
  std::unique_ptr<StoredVolume> stored_;
  std::optional<std::string> read_;
  SequenceNumber durable_;
  int failures_ = 0;
};

TEST_F(StoredVolumeTest, WhatIsInMemoryIsAppliedWithoutAQuestion) {
  make();
  write(1, {{1}, {2}}, 'a');
  apply();
  EXPECT_EQ(image(), "iaaiii");
  EXPECT_EQ(durable_, SequenceNumber{1});
  EXPECT_TRUE(history_.locates.empty());
}

TEST_F(StoredVolumeTest, WhatAStartFindsIsAskedForWithItsBytes) {
  make({.frontier = {3}, .last = {9}, .unapplied = {{{1}, {4}}}, .unapplied_since = {1}});
  apply();
  ASSERT_EQ(history_.locates.size(), 1u);
  const History::Lookup asked = history_.locates.front().lookups.at(0);
  EXPECT_EQ(asked.range, (BlockRange{{1}, {4}}));
  EXPECT_EQ(asked.at, SequenceNumber{9});
  EXPECT_TRUE(asked.with_bytes);
  answer({run({{1}, {1}}, Source::kLog, 'x'), run({{2}, {1}}, Source::kZero)});
  EXPECT_EQ(image(), "iiiiii") << "the rest is still to be answered";
  answer({run({{3}, {1}}, Source::kBase), run({{4}, {1}}, Source::kLog, 'y')});
  EXPECT_EQ(image(), "ix0iyi");
  EXPECT_EQ(durable_, SequenceNumber{9});
}

TEST_F(StoredVolumeTest, TheBaseIsCapturedBeforeItIsOverwrittenAndKeptUnderZeros) {
  all_in_base();
  make();
  write(1, {{1}, {2}}, 'a');
  write(2, {{4}, {2}}, 0);
  apply();
  ASSERT_EQ(history_.locates.front().lookups.size(), 2u);
  EXPECT_EQ(history_.locates.front().lookups[0].at, SequenceNumber{0});
  answer({run({{1}, {1}}, Source::kLog), run({{2}, {1}}, Source::kBase),
          run({{4}, {1}}, Source::kBase), run({{5}, {1}}, Source::kLog)});
  AskedHistory::BeforeImage captured = AskedHistory::next(history_.before_images);
  EXPECT_EQ(captured.range, (BlockRange{{2}, {1}}));
  EXPECT_EQ(text_of(captured.bytes.bytes()), "i");
  EXPECT_EQ(image(), "iiiiii") << "not before it is durable";
  captured.done({});
  executor_.run_ready();
  EXPECT_EQ(image(), "iaaii0");
}

// After a crash nobody would know that the image shows what should read as zeros.
TEST_F(StoredVolumeTest, WhatIsNotStoredAsBaseYetIsNotKeptUnderZeros) {
  base_.add({{0}, {kBlocks}});
  make();
  write(1, {{1}, {2}}, 0);
  apply();
  answer({run({{1}, {1}}, Source::kBase), run({{2}, {1}}, Source::kLog)});
  AskedHistory::BeforeImage captured = AskedHistory::next(history_.before_images);
  EXPECT_EQ(captured.range, (BlockRange{{1}, {1}}));
  captured.done({});
  executor_.run_ready();
  EXPECT_EQ(image(), "i00iii");
}

TEST_F(StoredVolumeTest, AHistoryThatIsAwayIsAskedAgain) {
  all_in_base();
  make();
  write(1, {{1}, {1}}, 'a');
  apply();
  const Error away{ErrorCode::kUnavailable, "the logger is away"};
  AskedHistory::next(history_.locates).done(away);
  EXPECT_EQ(failures_, 1);
  apply();
  answer({run({{1}, {1}}, Source::kBase)});
  AskedHistory::next(history_.before_images).done(away);
  executor_.run_ready();
  EXPECT_EQ(failures_, 1) << "told once";
  EXPECT_EQ(image(), "iiiiii");
  apply();
  answer({run({{1}, {1}}, Source::kLog)});  // that was done, but not told
  EXPECT_EQ(image(), "iaiiii");
  EXPECT_EQ(durable_, SequenceNumber{1});
}

TEST_F(StoredVolumeTest, AReadBesideTheBaseShowsZerosThatTheImageDoesNot) {
  all_in_base();
  make({.frontier = {5}, .last = {5}});
  begin_read({{0}, {3}});
  EXPECT_EQ(history_.locates.front().lookups.at(0).at, SequenceNumber{5});
  answer({run({{0}, {1}}, Source::kBase), run({{1}, {1}}, Source::kZero),
          run({{2}, {1}}, Source::kLog)},
         5);
  EXPECT_EQ(read_, "i0i");
}

// The answer is made after a newer write, for which the log has taken the zeros into a
// before-image: the image shows what was below them.
TEST_F(StoredVolumeTest, ABeforeImageForTheSakeOfANewerWriteIsReadFromTheHistory) {
  all_in_base();
  make({.frontier = {5}, .last = {5}});
  begin_read({{0}, {2}});
  answer({run({{0}, {1}}, Source::kLog), run({{1}, {1}}, Source::kBase)}, 6);
  EXPECT_FALSE(read_);
  AskedHistory::Read asked = AskedHistory::next(history_.reads);
  EXPECT_EQ(asked.range, (BlockRange{{0}, {1}}));
  EXPECT_EQ(asked.at, SequenceNumber{5});
  std::memset(asked.to.data(), 0, asked.to.size());
  asked.done(std::vector<BlockRange>{});
  EXPECT_EQ(read_, "0i");
}

// A late answer: what it is about has been applied meanwhile.
TEST_F(StoredVolumeTest, AnAnswerFromBeforeATableWasFrozenDoesNotCount) {
  all_in_base();
  make({.frontier = {5}, .last = {5}});
  begin_read({{1}, {1}});
  write(6, {{1}, {1}}, 'a');
  apply();
  AskedHistory::Locate late = AskedHistory::next(history_.locates);
  answer({run({{1}, {1}}, Source::kBase)});
  AskedHistory::next(history_.before_images).done({});
  executor_.run_ready();
  EXPECT_EQ(image(), "iaiiii");
  late.done(History::Located{{run({{1}, {1}}, Source::kZero)}, SequenceNumber{5}});
  EXPECT_FALSE(read_) << "it looks again";
  answer({run({{1}, {1}}, Source::kLog)}, 6);
  EXPECT_EQ(read_, "a");
}

TEST_F(StoredVolumeTest, WhatWasMissedIsWhatTheHistorySays) {
  make({.frontier = {5}, .last = {5}});
  bool caught_up = false;
  stored_->storage().catch_up({5}, {20}, {20}, [&] { caught_up = true; });
  AskedHistory::Changed asked = AskedHistory::next(history_.changes);
  EXPECT_EQ(asked.from, SequenceNumber{5});
  EXPECT_EQ(asked.to, SequenceNumber{20});
  const std::vector<BlockRange> extents{{{1}, {2}}, {{4}, {1}}};
  asked.portion(std::span(extents).first(1));
  // It breaks off, and is asked again.
  asked.done(Error{ErrorCode::kUnavailable, "away"});
  EXPECT_FALSE(caught_up);
  EXPECT_TRUE(history_.changes.empty());
  executor_.advance(std::chrono::milliseconds(1100));
  asked = AskedHistory::next(history_.changes);
  asked.portion(extents);
  asked.done({});
  EXPECT_TRUE(caught_up);
  write(21, {{2}, {1}}, 'n');
  begin_read({{1}, {1}});
  AskedHistory::Read read = AskedHistory::next(history_.reads);
  EXPECT_EQ(read.at, SequenceNumber{20});
  std::memset(read.to.data(), 'h', read.to.size());
  read.done(std::vector<BlockRange>{});
  executor_.run_ready();
  EXPECT_EQ(read_, "h");
  apply();
  EXPECT_EQ(history_.locates.front().lookups.at(0).at, SequenceNumber{20});
  answer({run({{1}, {1}}, Source::kLog, 'h'), run({{4}, {1}}, Source::kLog, 'g')}, 21);
  EXPECT_EQ(image(), "ihnigi");
  EXPECT_EQ(durable_, SequenceNumber{21});
}

TEST_F(StoredVolumeTest, WhatIsForgottenIsNeverSeenAndGrantedAnew) {
  make({.frontier = {5}, .last = {5}});
  const std::uint64_t granted = stored_->storage().granted_bytes();
  WriteMessage message;
  message.stamp = {Epoch{1}, SequenceNumber{6}, VersionTime{6}};
  message.write.kind = WriteKind::kZero;
  message.write.extent = {{1}, {1}};
  stored_->storage().prepare(message);
  stored_->storage().forget();
  EXPECT_EQ(stored_->storage().granted_bytes(), granted + kBlockBytes);
  // The numbers go on behind what the next coordinator has voided.
  stored_->storage().catch_up({5}, {70}, {70}, [] {});
  AskedHistory::next(history_.changes).done({});
  write(71, {{2}, {1}}, 'n');
  apply();
  EXPECT_EQ(image(), "iiniii");
}

TEST_F(StoredVolumeTest, WhoStopsIsNotCaughtUpAnyMore) {
  make({.frontier = {5}, .last = {5}});
  bool caught_up = false;
  stored_->storage().catch_up({5}, {20}, {20}, [&] { caught_up = true; });
  EXPECT_FALSE(stored_->idle());
  stored_->close();
  AskedHistory::next(history_.changes).done({});
  EXPECT_TRUE(stored_->idle());
  EXPECT_FALSE(caught_up);
}

TEST_F(StoredVolumeTest, WhatIsPendingInThePastAloneIsLookedForAgainAfterAFreeze) {
  make({.frontier = {3}, .last = {6}, .unapplied = {{{1}, {1}}}, .unapplied_since = {1}});
  begin_read({{1}, {1}});
  AskedHistory::next(history_.reads).done(Error{ErrorCode::kUnavailable, "away"});
  EXPECT_EQ(read_, "unavailable") << "it is nowhere else";
  begin_read({{1}, {1}});
  AskedHistory::Read late = AskedHistory::next(history_.reads);
  EXPECT_EQ(late.at, SequenceNumber{6});
  apply();
  answer({run({{1}, {1}}, Source::kLog, 'a')});
  EXPECT_EQ(image(), "iaiiii");
  late.done(Error{ErrorCode::kCorrupt, "the log has given it up since"});
  executor_.run_ready();
  EXPECT_EQ(read_, "a") << "from the image";
}

TEST_F(StoredVolumeTest, APunchAsksForWhatIsCommittedAndNothingIsAppliedUntilItIsDone) {
  all_in_base();
  make({.frontier = {5}, .last = {5}});
  std::optional<bool> punched;
  write(6, {{5}, {1}}, 'a');
  stored_->storage().punch({{{1}, {3}}}, [&](const Result<void>& r) { punched = r.has_value(); });
  EXPECT_EQ(history_.locates.front().lookups.at(0).at, SequenceNumber{6});
  write(7, {{1}, {2}}, 'a');
  apply();
  EXPECT_EQ(history_.locates.size(), 1u) << "the image stands still";
  answer({run({{1}, {1}}, Source::kZero), run({{2}, {1}}, Source::kLog),
          run({{3}, {1}}, Source::kZero)});
  EXPECT_EQ(punched, true);
  answer({run({{1}, {2}}, Source::kLog), run({{5}, {1}}, Source::kLog)});
  EXPECT_EQ(image(), "iaa0ia");
}

TEST_F(StoredVolumeTest, APunchThatCannotAskIsToldAndHoldsNothingUp) {
  all_in_base();
  make({.frontier = {5}, .last = {5}});
  std::optional<ErrorCode> code;
  stored_->storage().punch({{{1}, {3}}}, [&](const Result<void>& r) { code = r.error().code; });
  AskedHistory::next(history_.locates).done(Error{ErrorCode::kUnavailable, "away"});
  EXPECT_EQ(code, ErrorCode::kUnavailable);
  write(6, {{1}, {1}}, 'a');
  apply();
  answer({run({{1}, {1}}, Source::kLog)});
  EXPECT_EQ(image(), "iaiiii");
}

}  // namespace
}  // namespace mariner::volume

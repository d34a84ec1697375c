// A storage node that goes on while the log is away.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/cluster/storage_part.h"
#include "tests/logging/temporary_directory.h"
#include "tests/server/cluster/journal_rig.h"
#include "tests/server/volume/asked_history.h"
#include "tests/server/volume/inline_worker.h"
#include "tests/server/volume/telling_disk.h"

namespace mariner::cluster {
namespace {

using namespace std::chrono_literals;
using replication::FromStorage;
using test::AskedHistory;
using test::LoggedRig;

constexpr VolumeId kVolume = LoggedRig::kVolume;
constexpr std::uint64_t kBlocks = 16;

// An image of 'i's that holds everything up to #5, and a journal. The log is the test's to answer
// for; what the node is told reaches its journal, too.
class UnloggedStoragePartTest : public ::testing::Test {
 protected:
  UnloggedStoragePartTest() { disk_.overwrite(0, LoggedRig::blocks_of('i', kBlocks).bytes()); }
  ~UnloggedStoragePartTest() override { end(); }
  void end() {
    if (part_ == nullptr) return;
    part_->close();
    const Error ended{ErrorCode::kAborted, "the test is over"};
    while (!log_.locates.empty()) AskedHistory::next(log_.locates).done(ended);
    while (!log_.changes.empty()) AskedHistory::next(log_.changes).done(ended);
    executor_.run_until_idle();
    EXPECT_TRUE(part_->idle());
    part_.reset();
  }
  void start(std::uint64_t durable = 5, bool with_journal = true) {
    end();
    auto spilled = spill_.read({kBlocks});
    ASSERT_TRUE(spilled);
    volume::Storage::Options options;
    options.pending_memory_max = memory_max_;
    StoragePart::Events events;
    events.durable = [this](SequenceNumber sequence, volume::Done kept) {
      durable_ = sequence;
      if (keeps_) return kept({});
      kept(Error{ErrorCode::kIo, "the store is full"});
    };
    part_ = std::make_unique<StoragePart>(
        std::make_unique<test::TellingDisk>(disk_, [](ByteRange, bool) {}),
        replication::StorageRole::Start{kVolume, {}, {durable}}, options,
        StoragePart::Parts{log_, nullptr, worker_, executor_, promises_,
                           with_journal ? journal_.part.get() : nullptr, &spill_},
        std::move(events), *std::move(spilled));
    executor_.run_ready();
    to_ = part_->host().accept([this](const FromStorage& message) {
      if (const auto* said = std::get_if<replication::Hardened>(&message)) hardened_ = *said;
      if (const auto* said = std::get_if<replication::StorageProgress>(&message)) progress_ = *said;
    });
    open(part_->storage().hardened().value);
  }
  void tell(replication::ToStorage message) {
    part_->host().received(to_, std::move(message));
    executor_.run_ready();
  }
  // A coordinator comes for whom everything at or below is settled; above `since` without the log.
  void open(std::uint64_t settled, std::optional<std::uint64_t> since = std::nullopt) {
    replication::OpenStorage open{kVolume, {++epoch_}};
    if (since) open.away_since = SequenceNumber{*since};
    tell(open);
    tell(replication::Resume{kVolume, {epoch_}, {settled}});
  }
  [[nodiscard]] std::uint64_t committed() const { return part_->host().role().committed().value; }
  std::string harden() {
    hardened_.reset();
    tell(replication::Harden{kVolume, {epoch_}, {committed()}});
    if (!hardened_) return "nothing";
    return hardened_->failed ? to_string(*hardened_->failed) : "hard";
  }
  void enter(std::uint64_t since) {
    open(since, since);
    if (journal_.part->settled().value < since) {
      journal_.skip(journal_.part->settled().value + 1, since);
    }
  }
  void write(std::uint64_t sequence, BlockRange extent, char letter, bool journaled = true) {
    replication::WriteMessage message;
    message.volume = kVolume;
    message.stamp = {{epoch_}, {sequence}, {1000 + sequence}};
    message.write.extent = extent;
    message.write.payload = LoggedRig::blocks_of(letter, extent.count.value);
    tell(message);
    if (journaled) journal_.write(sequence, extent, letter);
    tell(replication::CommitMessage{kVolume, {epoch_}, {sequence}});
  }
  std::string read(BlockRange range = {{0}, {8}}) {
    std::string text = "nothing";
    part_->storage().read(range, [&](const Result<PayloadSlice>& r) {
      text = r ? LoggedRig::text_of(r->bytes()) : to_string(r.error());
    });
    executor_.run_ready();
    return text;
  }
  // The log has no base, and of the past what `letters` say of each block.
  void log_answers(const std::string& letters) {
    for (int i = 0; i < 50; ++i) {
      executor_.advance(100ms);
      while (!log_.locates.empty()) {
        AskedHistory::Locate asked = AskedHistory::next(log_.locates);
        volume::History::Located found;
        for (const volume::History::Lookup& lookup : asked.lookups) {
          for (std::uint64_t at = lookup.range.first.value; at < lookup.range.end().value; ++at) {
            volume::PastRun run{{{at}, {1}}, volume::PastRun::Source::kZero, false, {}};
            if (lookup.with_bytes) {
              run.source = volume::PastRun::Source::kLog;
              run.bytes = LoggedRig::blocks_of(letters.at(at), 1);
            }
            found.runs.push_back(std::move(run));
          }
        }
        asked.done(std::move(found));
        executor_.run_ready();
      }
    }
  }
  [[nodiscard]] std::string image() const {
    return LoggedRig::text_of(disk_.bytes({0, 8 * kBlockBytes}));
  }
  [[nodiscard]] bool spilled() const { return *spill_.read({kBlocks}) != std::nullopt; }

  test::JournalRig journal_;
  test::ManualExecutor& executor_ = journal_.logged.executor;
  test::FaultyDisk disk_{executor_, {.size_bytes = kBlocks * kBlockBytes}};
  test::InlineWorker worker_{executor_};
  MemoryPromises promises_{executor_};
  logging::test::TemporaryDirectory folder_;
  volume::Spill spill_{folder_.file("7.spill"), kVolume, worker_};
  AskedHistory log_;
  std::uint64_t memory_max_ = 1u << 20;
  std::unique_ptr<StoragePart> part_;
  replication::ConnectionId to_;
  std::uint64_t epoch_ = 0;
  std::optional<replication::Hardened> hardened_;
  std::optional<replication::StorageProgress> progress_;
  SequenceNumber durable_;
  bool keeps_ = true;
};

TEST_F(UnloggedStoragePartTest, AWholeTimeWithoutALog) {
  start();
  write(6, {{0}, {2}}, 'a', false);
  EXPECT_EQ(harden(), "hard");
  enter(6);
  write(7, {{1}, {2}}, 'b');
  executor_.advance(10s);
  EXPECT_EQ(read(), "abbiiiii");
  EXPECT_EQ(image(), "iiiiiiii") << "as it was";
  EXPECT_TRUE(log_.locates.empty()) << "nobody asks who is away";
  EXPECT_TRUE(log_.before_images.empty());

  start();  // everything in memory is gone
  open(7, 6);
  EXPECT_EQ(committed(), 7u);
  EXPECT_EQ(read(), "abbiiiii");
  EXPECT_EQ(harden(), "hard") << "what is pending stands in the journal";
  write(8, {{7}, {1}}, 'c');
  executor_.advance(10s);
  EXPECT_EQ(image(), "iiiiiiii");

  open(8);
  log_answers("abbiiiic");
  EXPECT_EQ(image(), "abbiiiic");
  EXPECT_EQ(durable_, SequenceNumber{8});
  EXPECT_FALSE(spilled());
  EXPECT_EQ(read(), "abbiiiic");
}

TEST_F(UnloggedStoragePartTest, WhatMemoryCannotHoldStandsInTheJournal) {
  memory_max_ = 2 * kBlockBytes;
  start();
  write(6, {{0}, {1}}, 'a', false);
  EXPECT_EQ(harden(), "hard");
  enter(6);
  for (std::uint64_t i = 0; i < 6; ++i) write(7 + i, {{1 + i}, {1}}, static_cast<char>('b' + i));
  EXPECT_EQ(read(), "abcdefgi");
  EXPECT_EQ(image(), "iiiiiiii");
}

// What was missed is not in memory, however little there may be of it: nobody goes on without the
// log then. What is written meanwhile is granted as ever.
TEST_F(UnloggedStoragePartTest, WhoCatchesUpGrantsAsEverAndGoesOnWithTheLogAlone) {
  memory_max_ = 4 * kBlockBytes;
  start();
  EXPECT_EQ(progress_->granted, 3 * kBlockBytes);
  open(9);
  AskedHistory::Changed asked = AskedHistory::next(log_.changes);
  asked.portion(std::vector<BlockRange>{{{0}, {8}}});
  asked.done({});
  executor_.run_ready();
  EXPECT_EQ(progress_->granted, 3 * kBlockBytes);
  EXPECT_EQ(harden().substr(0, 11), "unavailable") << "it is known by its place alone";
  log_answers("abcdefgh");
  EXPECT_EQ(image(), "abcdefgh");
  EXPECT_EQ(harden(), "hard");
}

TEST_F(UnloggedStoragePartTest, CatchingUpWaitsForTheJournal) {
  start();
  write(6, {{0}, {1}}, 'a', false);
  EXPECT_EQ(harden(), "hard");
  enter(6);
  open(7, 6);
  executor_.advance(3s);
  EXPECT_EQ(committed(), 6u);
  journal_.write(7, {{3}, {1}}, 'b');
  executor_.advance(1s);
  EXPECT_EQ(committed(), 7u);
  EXPECT_EQ(read(), "aiibiiii");
}

TEST_F(UnloggedStoragePartTest, AnAnswerOfTheLogMayComeLate) {
  start();
  open(6);
  AskedHistory::Changed asked = AskedHistory::next(log_.changes);
  open(6, 6);
  EXPECT_EQ(committed(), 5u);
  asked.done({});
  EXPECT_EQ(committed(), 6u);
}

TEST_F(UnloggedStoragePartTest, ThePastOfTheLogIsUnavailable) {
  start();
  enter(5);
  write(6, {{0}, {1}}, 'a');
  Payload to = Payload::allocate(kBlockBytes);
  std::optional<Result<void>> result;
  part_->storage().past().read({{0}, {1}}, {4}, to.bytes(),
                               [&](Result<void> r) { result = std::move(r); });
  executor_.run_ready();
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->error().code, ErrorCode::kUnavailable);
}

TEST_F(UnloggedStoragePartTest, ThePlaceInTheJournalIsHeldUntilTheLogIsBack) {
  start();
  enter(5);
  EXPECT_EQ(journal_.part->oldest_pinned(), SequenceNumber{5});
  open(5, 5);
  EXPECT_EQ(journal_.part->oldest_pinned(), SequenceNumber{5});
  open(5);
  EXPECT_FALSE(journal_.part->oldest_pinned().has_value());
}

TEST_F(UnloggedStoragePartTest, OneWithoutAJournalCannotAndIsFrozenIfItIsTold) {
  start(5, false);
  write(6, {{0}, {1}}, 'a', false);
  EXPECT_EQ(harden(), "unavailable: this node has no journal to keep writes in");
  open(6, 6);
  executor_.advance(10s);
  EXPECT_TRUE(log_.locates.empty());
  EXPECT_EQ(image(), "iiiiiiii");
  EXPECT_EQ(read(), "aiiiiiii");
}

TEST_F(UnloggedStoragePartTest, AnImageThatIsBeingBuiltCannotBeHardened) {
  start(0);
  EXPECT_EQ(harden().substr(0, 11), "unavailable");
}

TEST_F(UnloggedStoragePartTest, ItWasNotHardenedThroughSince) {
  start();
  write(6, {{0}, {1}}, 'a', false);
  open(6, 6);
  EXPECT_EQ(harden(), "hard") << "late, but it can be";
  EXPECT_TRUE(spilled());
}

// How far the image is, the node must know after a crash; until then the spill is needed.
TEST_F(UnloggedStoragePartTest, TheSpillStaysUntilTheImagesProgressIsKept) {
  start();
  write(6, {{0}, {1}}, 'a', false);
  EXPECT_EQ(harden(), "hard");
  keeps_ = false;
  log_answers("aiiiiiii");
  EXPECT_EQ(durable_, SequenceNumber{6});
  EXPECT_TRUE(spilled());
  start();
  EXPECT_EQ(read(), "aiiiiiii");
  keeps_ = true;
  write(7, {{1}, {1}}, 'b', false);
  log_answers("abiiiiii");
  EXPECT_EQ(durable_, SequenceNumber{7});
  EXPECT_FALSE(spilled());
}

// The image may get on before a coordinator has come.
TEST_F(UnloggedStoragePartTest, WhatWasSpilledIsCommittedFromTheBeginning) {
  start();
  write(6, {{0}, {1}}, 'a', false);
  EXPECT_EQ(harden(), "hard");
  start();
  log_answers("aiiiiiii");
  EXPECT_EQ(durable_, SequenceNumber{6});
  open(6);
  EXPECT_TRUE(log_.changes.empty()) << "nothing is to be caught up with";
  ASSERT_TRUE(progress_.has_value());
  EXPECT_EQ(progress_->durable, SequenceNumber{6});
}

// The journal goes on behind what the image holds then; what came since is not in it.
TEST_F(UnloggedStoragePartTest, WhenTheLogIsLostTheImageHoldsWhatWasSpilled) {
  start();
  write(6, {{0}, {2}}, 'a', false);
  EXPECT_EQ(harden(), "hard");
  enter(6);
  write(7, {{1}, {2}}, 'b');
  tell(replication::LogLost{kVolume, {epoch_}, {6}});
  executor_.advance(2s);
  EXPECT_EQ(image(), "aaiiiiii");
  EXPECT_EQ(durable_, SequenceNumber{6});
  EXPECT_EQ(progress_->durable, SequenceNumber{6});
  EXPECT_FALSE(spilled());
  EXPECT_EQ(read(), "abbiiiii");
  start(6);
  open(7, 6);
  EXPECT_EQ(read(), "abbiiiii");
  open(7);
  log_answers("abbiiiii");
  EXPECT_EQ(image(), "abbiiiii");
}

}  // namespace
}  // namespace mariner::cluster

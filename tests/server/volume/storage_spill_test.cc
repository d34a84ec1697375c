// What a storage keeps without its history, and what a start makes of it.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/volume/stored_volume.h"
#include "tests/logging/temporary_directory.h"
#include "tests/server/volume/asked_history.h"
#include "tests/server/volume/inline_worker.h"
#include "tests/server/volume/letter_write.h"
#include "tests/server/volume/telling_disk.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/manual_executor.h"

namespace mariner::volume {
namespace {

using test::AskedHistory;

constexpr std::uint64_t kBlocks = 16;
constexpr VolumeId kVolume{7};

// An image of 'i's that holds everything up to #5. The history answers when the test does.
class StorageSpillTest : public ::testing::Test {
 protected:
  StorageSpillTest() {
    const std::vector<std::byte> bytes(kBlocks * kBlockBytes, std::byte{'i'});
    disk_.overwrite(0, bytes);
  }
  ~StorageSpillTest() override { end(); }
  void end() {
    if (stored_ == nullptr) return;
    stored_->close();
    const Error ended{ErrorCode::kAborted, "the test is over"};
    while (!history_.locates.empty()) AskedHistory::next(history_.locates).done(ended);
    while (!history_.changes.empty()) AskedHistory::next(history_.changes).done(ended);
    executor_.run_until_idle();
    stored_.reset();
  }
  void make(std::uint64_t durable = 5, bool with_spill = true) {
    end();
    Result<std::optional<Spill::Contents>> found = spill_.read({kBlocks});
    ASSERT_TRUE(found);
    Storage::Events events;
    events.apply_failed = [this](const Error& error) { failures_.push_back(error); };
    stored_ = std::make_unique<StoredVolume>(
        std::make_unique<test::TellingDisk>(disk_, [](ByteRange, bool) {}),
        StoredVolume::Parts{history_, nullptr, worker_, executor_, with_spill ? &spill_ : nullptr},
        options_, Storage::Found{{durable}, {durable}, {}, {}, *std::move(found)},
        std::move(events));
    executor_.run_ready();
  }
  Storage& storage() { return stored_->storage(); }
  void write(std::uint64_t sequence, BlockRange extent, char letter) {
    storage().prepare(test::letter_write(sequence, extent, letter));
    storage().commit(SequenceNumber{sequence});
  }
  void apply() { executor_.advance(std::chrono::seconds(2)); }
  // What is about to be overwritten is nobody's base.
  void answer() {
    AskedHistory::Locate asked = AskedHistory::next(history_.locates);
    History::Located none;
    for (const History::Lookup& lookup : asked.lookups) {
      none.runs.push_back({lookup.range, PastRun::Source::kZero, false, {}});
    }
    asked.done(std::move(none));
    executor_.run_ready();
  }
  void away() {
    AskedHistory::next(history_.locates).done(Error{ErrorCode::kUnavailable, "away"});
    executor_.run_ready();
  }
  // "hard", or why it is not.
  std::string harden() {
    // (The answer may come when nobody waits for it any longer.)
    const auto said = std::make_shared<std::string>("nothing");
    storage().harden([said](const Result<void>& r) { *said = r ? "hard" : to_string(r.error()); });
    EXPECT_EQ(*said, "nothing") << "not before the call has returned";
    executor_.run_ready();
    return *said;
  }
  std::string spilled() {
    const auto found = spill_.read({kBlocks});
    if (!found || !*found) return found ? "none" : to_string(found.error());
    std::string text(kBlocks, '.');
    for (const PendingTable::Run& run : (*found)->runs) {
      for (std::uint64_t i = 0; i < run.range.count.value; ++i) {
        const bool zero = run.content.kind == PendingContent::Kind::kZero;
        text[run.range.first.value + i] =
            zero ? '0' : static_cast<char>(run.content.payload.bytes()[i * kBlockBytes]);
      }
    }
    return std::to_string((*found)->durable.value) + "-" +
           std::to_string((*found)->committed.value) + " " + text.substr(0, 8);
  }
  std::string image() {
    std::string text;
    for (std::uint64_t block = 0; block < 8; ++block) {
      const auto byte = static_cast<char>(disk_.bytes({block * kBlockBytes, 1})[0]);
      text += byte == 0 ? '0' : byte;
    }
    return text;
  }
  std::string read() {
    std::string text = "nothing";
    storage().read({{0}, {8}}, [&](const Result<PayloadSlice>& r) {
      text.clear();
      for (std::size_t at = 0; at < r->length; at += kBlockBytes) {
        const auto byte = static_cast<char>(r->bytes()[at]);
        text += byte == 0 ? '0' : byte;
      }
    });
    executor_.run_ready();
    return text;
  }

  test::ManualExecutor executor_;
  test::FaultyDisk disk_{executor_, {.size_bytes = kBlocks * kBlockBytes}};
  test::InlineWorker worker_{executor_};
  logging::test::TemporaryDirectory folder_;
  Spill spill_{folder_.file("7.spill"), kVolume, worker_};
  AskedHistory history_;
  Storage::Options options_;
  std::unique_ptr<StoredVolume> stored_;
  std::vector<Error> failures_;
};

TEST_F(StorageSpillTest, TheNewestOfWhatIsPendingIsKept) {
  make();
  write(6, {{0}, {4}}, 'a');
  apply();  // the history does not answer: what is frozen stays
  write(7, {{1}, {1}}, 'b');
  write(8, {{3}, {2}}, 0);
  EXPECT_EQ(storage().hardened(), SequenceNumber{5});
  EXPECT_EQ(harden(), "hard");
  EXPECT_EQ(storage().hardened(), SequenceNumber{8});
  EXPECT_EQ(spilled(), "5-8 aba00...");
  make();
  EXPECT_EQ(storage().hardened(), SequenceNumber{8});
  EXPECT_EQ(storage().durable(), SequenceNumber{5});
  EXPECT_EQ(read(), "aba00iii");
}

TEST_F(StorageSpillTest, WhatWasFlushedBeforeIsInTheImage) {
  options_.portion_bytes_max = kBlockBytes;
  make();
  write(6, {{0}, {3}}, 'a');
  apply();
  answer();  // of the first portion
  write(7, {{4}, {1}}, 'b');
  EXPECT_EQ(harden(), "hard");
  EXPECT_EQ(spilled(), "5-7 .aa.b...");
  write(8, {{6}, {1}}, 'c');
  EXPECT_EQ(storage().durable(), SequenceNumber{5});
  answer();  // half of what was spilled is applied when the power goes
  disk_.cut_power();
  stored_->close();
  executor_.run_until_idle();
  disk_.restore_power();
  make();
  EXPECT_EQ(read(), "aaaibiii");
}

TEST_F(StorageSpillTest, WhatOnlyTheHistoryHasCannotBeHardened) {
  options_.pending_memory_max = 2 * kBlockBytes;
  make();
  write(6, {{0}, {2}}, 'a');
  write(7, {{4}, {1}}, 'b');
  EXPECT_EQ(harden(),
            "unavailable: what was written to block 4 is known by its place in the log alone");
  EXPECT_EQ(spilled(), "none");
  write(8, {{4}, {1}}, 0);
  EXPECT_EQ(harden(), "hard") << "it was overwritten";
  EXPECT_EQ(spilled(), "5-8 aa..0...");
}

TEST_F(StorageSpillTest, WhatIsMissedCannotBeHardened) {
  make();
  bool caught_up = false;
  storage().catch_up({5}, {9}, {9}, [&] { caught_up = true; });
  EXPECT_EQ(harden().substr(0, 11), "unavailable");
  AskedHistory::next(history_.changes).done(Error{ErrorCode::kUnavailable, "away"});
  EXPECT_EQ(harden().substr(0, 11), "unavailable") << "it will be asked again";
  executor_.advance(std::chrono::seconds(1));
  AskedHistory::next(history_.changes).done({});
  EXPECT_TRUE(caught_up);
  EXPECT_EQ(harden(), "hard");
  EXPECT_EQ(spilled(), "5-9 ........") << "voids alone";
}

TEST_F(StorageSpillTest, OnlyWhoHasASpillAndAnImageCanBeHardened) {
  make(5, false);
  EXPECT_EQ(harden(), "unavailable: this node cannot keep writes by itself");
  make(0);
  EXPECT_EQ(harden(), "unavailable: nothing is durable in this node's image yet");
}

TEST_F(StorageSpillTest, WhatTheImageHoldsIsHardAlready) {
  make();
  EXPECT_EQ(harden(), "hard");
  EXPECT_EQ(spilled(), "none");
  write(6, {{0}, {1}}, 'a');
  EXPECT_EQ(harden(), "hard");
  const std::size_t jobs = worker_.jobs();
  EXPECT_EQ(harden(), "hard");
  EXPECT_EQ(worker_.jobs(), jobs) << "as it was spilled before";
}

TEST_F(StorageSpillTest, OneAtATimeAndAFailureIsTold) {
  make();
  write(6, {{0}, {1}}, 'a');
  worker_.set_duration([] { return std::chrono::milliseconds(10); });
  EXPECT_EQ(harden(), "nothing");
  EXPECT_FALSE(stored_->idle());
  EXPECT_EQ(harden().substr(0, 11), "unavailable");
  executor_.advance(std::chrono::milliseconds(10));
  EXPECT_EQ(storage().hardened(), SequenceNumber{6});
  worker_.set_duration(nullptr);
  std::filesystem::create_directory(folder_.file("7.spill.tmp"));
  write(7, {{0}, {1}}, 'b');
  EXPECT_EQ(harden().substr(0, 3), "io:");
  EXPECT_EQ(storage().hardened(), SequenceNumber{6});
  EXPECT_EQ(spilled(), "5-6 a.......");
}

TEST_F(StorageSpillTest, WhatIsSpilledOfAnImageThatBeginsAnewMeanwhileIsNotHard) {
  make();
  write(6, {{0}, {1}}, 'a');
  worker_.set_duration([] { return std::chrono::milliseconds(10); });
  std::string said;
  storage().harden([&](const Result<void>& r) { said = r ? "hard" : to_string(r.error()); });
  bool empty = false;
  storage().start_over([&] { empty = true; });
  executor_.advance(std::chrono::milliseconds(100));
  EXPECT_EQ(said, "unavailable: this node's image begins anew");
  EXPECT_TRUE(empty);
  EXPECT_EQ(storage().hardened(), SequenceNumber{0});
  EXPECT_EQ(spilled(), "none");
}

TEST_F(StorageSpillTest, ItGoesWhenTheImageIsKnownToHoldAsMuch) {
  make();
  write(6, {{0}, {1}}, 'a');
  write(7, {{1}, {1}}, 'b');
  EXPECT_EQ(harden(), "hard");
  make();
  write(8, {{2}, {1}}, 'c');
  apply();
  answer();
  EXPECT_EQ(storage().durable(), SequenceNumber{8});
  EXPECT_NE(spilled(), "none") << "nobody has kept that yet";
  storage().kept({6});
  executor_.run_ready();
  EXPECT_NE(spilled(), "none");
  storage().kept({8});
  executor_.run_ready();
  EXPECT_EQ(spilled(), "none");
  EXPECT_EQ(storage().hardened(), SequenceNumber{8});
  EXPECT_EQ(read(), "abciiiii");
}

TEST_F(StorageSpillTest, OneThatIsOfNoUseIsRemovedAtTheStart) {
  for (const std::uint64_t durable : {7u, 6u, 0u}) {
    make();
    write(6, {{0}, {1}}, 'a');
    EXPECT_EQ(harden(), "hard");
    make(durable);
    EXPECT_EQ(spilled(), "none") << "beside an image of #" << durable;
    EXPECT_EQ(storage().hardened(), SequenceNumber{durable});
    EXPECT_EQ(read(), "iiiiiiii");
  }
}

// The image was further than whoever keeps that had heard.
TEST_F(StorageSpillTest, OneOfAnImageThatWasGivenUpMeanwhileDoesNotCount) {
  make();
  write(6, {{1}, {1}}, 'a');
  storage().harden([](const Result<void>&) {});
  storage().start_over([] {});
  executor_.run_ready();
  EXPECT_EQ(storage().hardened(), SequenceNumber{});
  EXPECT_EQ(spilled(), "none");
}

TEST_F(StorageSpillTest, TheSpillKnowsHowFarTheImageWas) {
  make();
  write(6, {{0}, {1}}, 'a');
  EXPECT_EQ(harden(), "hard");
  make(3);
  EXPECT_EQ(storage().durable(), SequenceNumber{5});
  EXPECT_EQ(read(), "aiiiiiii");
}

// The log is away, and somebody writes more than what is applied at once.
TEST_F(StorageSpillTest, WhatIsAwayIsToldOnceAndAskedOnceASecond) {
  options_.lag_bytes_max = 2 * kBlockBytes;
  make();
  for (std::uint64_t sequence = 6; sequence < 20; ++sequence) {
    write(sequence, {{0}, {1}}, 'a');
    executor_.run_ready();
    while (!history_.locates.empty()) away();
  }
  const std::size_t before = worker_.jobs();
  std::size_t asked = 0;
  for (int i = 0; i < 100; ++i) {
    executor_.advance(std::chrono::milliseconds(100));
    for (; !history_.locates.empty(); ++asked) away();
  }
  EXPECT_LE(asked, 12u);
  EXPECT_GE(asked, 9u);
  EXPECT_EQ(worker_.jobs(), before) << "the image is left alone";
  EXPECT_EQ(failures_.size(), 1u);
  executor_.advance(std::chrono::seconds(1));
  answer();
  while (!history_.locates.empty()) answer();
  apply();
  while (!history_.locates.empty()) answer();
  EXPECT_EQ(storage().durable(), SequenceNumber{19});
}

// ---- the log is lost

TEST_F(StorageSpillTest, WhatIsSpilledGoesIntoTheImageWithoutAQuestion) {
  make();
  write(6, {{0}, {2}}, 'a');
  write(7, {{3}, {2}}, 0);
  EXPECT_EQ(harden(), "hard");
  write(8, {{1}, {1}}, 'b');  // what came since is not to be in the image
  storage().put_spilled();
  executor_.run_ready();
  EXPECT_TRUE(history_.locates.empty());
  EXPECT_EQ(image(), "aai00iii");
  EXPECT_EQ(storage().durable(), SequenceNumber{7});
  EXPECT_EQ(read(), "abi00iii");
  storage().put_spilled();
  executor_.run_ready();
  storage().kept({7});
  executor_.run_ready();
  EXPECT_EQ(spilled(), "none");
  // What is pending still goes there as ever, when the log is back.
  apply();
  answer();
  EXPECT_EQ(image(), "abi00iii");
  EXPECT_EQ(storage().durable(), SequenceNumber{8});
}

TEST_F(StorageSpillTest, AfterARestartToo) {
  make();
  write(6, {{0}, {2}}, 'a');
  EXPECT_EQ(harden(), "hard");
  make();
  storage().put_spilled();
  executor_.run_ready();
  EXPECT_EQ(image(), "aaiiiiii");
  EXPECT_EQ(storage().durable(), SequenceNumber{6});
}

TEST_F(StorageSpillTest, WhatCannotBePutIsTriedAgain) {
  make();
  write(6, {{0}, {1}}, 'a');
  EXPECT_EQ(harden(), "hard");
  disk_.fail_writes(1, test::FaultyDisk::Remains::kNothing);
  storage().put_spilled();
  executor_.run_ready();
  EXPECT_EQ(failures_.size(), 1u);
  EXPECT_EQ(storage().durable(), SequenceNumber{5});
  executor_.advance(std::chrono::milliseconds(1100));
  EXPECT_EQ(storage().durable(), SequenceNumber{6});
  EXPECT_EQ(image(), "aiiiiiii");
}

TEST_F(StorageSpillTest, WhatIsBeingAppliedComesFirst) {
  make();
  write(6, {{0}, {1}}, 'a');
  EXPECT_EQ(harden(), "hard");
  apply();
  ASSERT_EQ(history_.locates.size(), 1u);
  storage().put_spilled();
  executor_.run_ready();
  EXPECT_EQ(image(), "iiiiiiii");
  away();
  executor_.advance(std::chrono::milliseconds(2100));
  while (!history_.locates.empty()) away();
  executor_.advance(std::chrono::milliseconds(2100));
  EXPECT_EQ(image(), "aiiiiiii");
  while (!history_.locates.empty()) away();
}

}  // namespace
}  // namespace mariner::volume

#include "server/node/index_repair.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/server/node/index_stack_fixture.h"

namespace mariner::node {
namespace {

// More leaves than a start reads, all of them damaged on disk; each block's versions, in order.
class IndexRepairTest : public testing::IndexStackFixture {
 protected:
  static constexpr std::uint64_t kBlocks = 256;

  IndexRepairTest() {
    for (std::uint64_t i = 0; i < 1'500; ++i) write_next(i % kBlocks);
    commit();
    parts_.stop();
    look_at_file();
    parts_.start();
    spoil_blocks();
  }
  void write_next(std::uint64_t block) {
    ++written_;
    versions_[block].push_back(write(block, static_cast<char>('a' + versions_[block].size())));
  }
  // The versions that block has had, as read from the views; "" when they are right.
  std::string compare() {
    std::string wrong;
    const test::IndexAnswers answers = parts_.answers(volume());
    for (const auto& [block, expected] : versions_) {
      const auto last = volume().volume->index().newest().sequence;
      if (answers.versions(Lbn{block}, {}, last) != expected) wrong += " " + std::to_string(block);
      if (read_at(expected.front(), block) != 'a') wrong += " bytes of " + std::to_string(block);
    }
    std::uint64_t writes = 0;  // by time
    answers.for_each({}, volume().volume->index().newest().sequence,
                     [&](const index::IndexedWrite&) { return ++writes > 0; });
    if (writes != written_) wrong += " " + std::to_string(writes) + " writes";
    return wrong;
  }
  const IndexRepair& repair() { return *parts_.indexes().repair(); }
  void mend() {
    parts_.run_until([&] { return repair().idle() && !repair().progress(); });
  }

  std::map<std::uint64_t, std::vector<SequenceNumber>> versions_;
  std::uint64_t written_ = 0;
};

TEST_F(IndexRepairTest, WhoMeetsItWaitsWhileItIsMadeAgainFromTheLog) {
  EXPECT_EQ(read_at(versions_[0].front(), 0), 'a');
  EXPECT_GT(repair().repaired(), 0u);
  EXPECT_FALSE(parts_.indexes().is_damaged());
  for (std::uint64_t block = 0; block < kBlocks; ++block) {
    EXPECT_EQ(read_at(versions_[block].front(), block), 'a');
  }
  mend();
  EXPECT_EQ(compare(), "");
  commit();
  EXPECT_FALSE(parts_.store().index_file()->file().empty());  // the next start may use it
  restart();
  EXPECT_EQ(compare(), "");
}

TEST_F(IndexRepairTest, WhatIsWrittenMeanwhileIsThereToo) {
  int waiting = 0;
  for (std::uint64_t block = 0; block < kBlocks; block += 16) {
    ++waiting;
    volume().volume->index().consult(
        [block, last = versions_[block].back()](const index::VersionLookup& lookup) {
          static_cast<void>(lookup.locate({Lbn{block}, BlockCount{16}}, last));
        },
        [&](const Result<void>& looked) {
          EXPECT_TRUE(looked.has_value());
          --waiting;
        });
  }
  for (std::uint64_t i = 0; i < 300; ++i) write_next(i * 7 % kBlocks);
  parts_.run_until([&] { return waiting == 0; });
  mend();
  EXPECT_GT(repair().repaired(), 0u);
  EXPECT_EQ(compare(), "");
  commit();
  restart();
  EXPECT_EQ(compare(), "");
}

TEST_F(IndexRepairTest, CommitsMeetItAndItIsMended) {
  for (std::uint64_t block = 0; block < kBlocks; ++block) write_next(block);
  volume().volume->index().flush();
  bool ended = false;
  parts_.indexes().store().commit_all([&](const Result<void>&) { ended = true; });
  parts_.run_until([&] { return ended; });
  parts_.run_until([&] { return repair().repaired() > 0; });
  mend();
  EXPECT_EQ(compare(), "");
}

TEST_F(IndexRepairTest, ACrashMeanwhileLosesNothing) {
  bool looked = false;
  volume().volume->index().consult(
      [](const index::VersionLookup& lookup) {
        static_cast<void>(lookup.locate({Lbn{0}, BlockCount{1}}, {1}));
      },
      [&](const Result<void>&) { looked = true; });
  parts_.run_until([&] { return repair().progress().has_value(); });
  EXPECT_FALSE(looked);
  restart();  // stops it where it is
  EXPECT_EQ(compare(), "");
}

TEST_F(IndexRepairTest, AVolumeMayGoMeanwhile) {
  write_next(0);
  volume().volume->index().flush();
  parts_.indexes().store().commit_all([](const Result<void>&) {});
  parts_.run_until([&] { return repair().progress().has_value(); });
  EXPECT_TRUE(parts_.remove("db1"));
  mend();
}

TEST_F(IndexRepairTest, WhatCannotBeMendedIsAnErrorAndNotAskedForEver) {
  const IndexRepair::Indexes none;  // of no volume that anybody knows
  bool given_up = false;
  IndexRepair other({parts_.indexes().store(), none, parts_.log_stack().array(), parts_.worker(),
                     parts_.executor(), parts_.log()},
                    [&] { given_up = true; });
  other.damaged({0});
  parts_.run_until([&] { return !other.progress(); });
  EXPECT_FALSE(given_up);  // it might have been given back
  other.damaged({0});
  EXPECT_TRUE(given_up);
  std::optional<ErrorCode> code;
  const auto view = volume().volume->view_layer(versions_[0].front());
  view->read({0, kBlockBytes}, [&](const Result<PayloadSlice>& r) {
    code = r ? ErrorCode::kAborted : r.error().code;
  });
  parts_.run_until([&] { return code.has_value(); });
  EXPECT_EQ(code, ErrorCode::kCorrupt);
}

// Its next jobs fail as those of a disk that is away.
class FailingWorker final : public volume::Worker {
 public:
  FailingWorker(volume::Worker& below, Executor& executor) : below_(below), executor_(executor) {}
  void run(UniqueFunction<Result<void>()> job, UniqueFunction<void(Result<void>)> done) override {
    if (failures == 0) return below_.run(std::move(job), std::move(done));
    --failures;
    executor_.post([done = std::move(done)]() mutable {
      done(Error{ErrorCode::kIo, "the disk is away"});
    });
  }
  int failures = 0;

 private:
  volume::Worker& below_;
  Executor& executor_;
};

using IndexRepairOfGoodLeavesTest = testing::IndexStackFixture;

TEST_F(IndexRepairOfGoodLeavesTest, ATrackThatCannotBeReadNowIsReadLater) {
  constexpr std::uint64_t kBlocks = 16;
  std::map<std::uint64_t, std::vector<SequenceNumber>> versions;
  for (std::uint64_t i = 0; i < 8 * kBlocks; ++i) {
    versions[i % kBlocks].push_back(write(i % kBlocks, 'a'));
  }
  commit();
  index::Bosc& store = parts_.indexes().store();
  const IndexRepair::Indexes indexes{
      {VolumeId{volume().meta.id()},
       std::shared_ptr<index::StoredIndex>(volume().volume, &volume().volume->index())}};
  FailingWorker worker(parts_.worker(), parts_.executor());
  worker.failures = 2;
  IndexRepair repair(
      {store, indexes, parts_.log_stack().array(), worker, parts_.executor(), parts_.log()},
      [] { ADD_FAILURE() << "a leaf can be made again"; });
  for (std::uint32_t address = 0; address < 16; ++address) {
    const index::BlockAddress block{address};
    if (store.is_allocated(block) && store.on_disk(block)) repair.damaged(block);
  }
  parts_.run_until([&] { return repair.idle() && !repair.progress(); });
  EXPECT_GT(repair.repaired(), 0u);
  EXPECT_EQ(worker.failures, 0);
  const test::IndexAnswers answers = parts_.answers(volume());
  const SequenceNumber last = volume().volume->index().newest().sequence;
  for (const auto& [block, expected] : versions) {
    EXPECT_EQ(answers.versions(Lbn{block}, {}, last), expected) << "block " << block;
  }
}

}  // namespace
}  // namespace mariner::node

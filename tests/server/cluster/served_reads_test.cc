#include "server/cluster/served_reads.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/cluster/memory_promises.h"
#include "tests/server/volume/logged_rig.h"
#include "tests/support/manual_executor.h"

namespace mariner::cluster {
namespace {

using namespace std::chrono_literals;
using replication::ConnectionId;
using test::LoggedRig;

constexpr VolumeId kVolume{7};
constexpr Epoch kEpoch{5};

// A storage whose blocks all have one letter, and which answers when the test says so.
struct LetterStorage final : public replication::ClusterStorageParticipant,
                             public volume::CurrentReader {
  void prepare(const replication::WriteMessage& /*message*/) override {}
  void drop(const replication::VoidMessage& /*message*/) override {}
  void commit(SequenceNumber /*settled*/) override { reads->look(); }
  void forget() override { reads->look(); }
  void catch_up(SequenceNumber /*from*/, SequenceNumber /*to*/, SequenceNumber /*at*/,
                UniqueFunction<void()> done) override {
    caught_up = std::move(done);
  }
  void start_over(UniqueFunction<void()> done) override {
    reads->look();
    started_over = std::move(done);
  }
  void harden(volume::Done done) override { done({}); }
  void log_away(std::optional<SequenceNumber> /*since*/) override {}
  void log_lost() override {}

  void read(BlockRange range, volume::ReadDone done) override {
    asked.emplace_back([this, range, done = std::move(done)]() mutable {
      if (fails) return done(Error{ErrorCode::kUnavailable, "the logger is away"});
      done(LoggedRig::blocks_of('a', range.count.value));
    });
    if (!holds) answer();
  }
  void answer() {
    for (auto& each : std::exchange(asked, {})) each();
  }

  ServedReads* reads = nullptr;
  bool fails = false;
  bool holds = false;
  std::vector<UniqueFunction<void()>> asked;
  UniqueFunction<void()> caught_up;
  UniqueFunction<void()> started_over;
};

class ServedReadsTest : public ::testing::Test {
 protected:
  ServedReadsTest() { storage_.reads = &reads_; }
  ~ServedReadsTest() override {
    storage_.answer();
    reads_.close();
    EXPECT_TRUE(reads_.idle());
  }
  ConnectionId open(Epoch epoch, std::uint64_t settled) {
    const ConnectionId from = host_.accept([](const replication::FromStorage&) {});
    tell(from, replication::OpenStorage{kVolume, epoch});
    tell(from, replication::Resume{kVolume, epoch, {settled}});
    return from;
  }
  void tell(ConnectionId from, replication::ToStorage message) {
    host_.received(from, std::move(message));
    executor_.run_ready();
  }
  void commit(ConnectionId from, std::uint64_t settled) {
    tell(from, replication::CommitMessage{kVolume, kEpoch, {settled}});
  }
  void caught_up() {
    storage_.caught_up();
    reads_.look();
  }
  std::shared_ptr<std::string> read(std::uint64_t at, Epoch epoch = kEpoch,
                                    BlockRange range = {{1}, {2}}) {
    auto text = std::make_shared<std::string>();
    reads_.read({range, {at}, epoch}, [text](const Result<PayloadSlice>& r) {
      *text += r ? LoggedRig::text_of(r->bytes()) : std::string(error_code_name(r.error().code));
    });
    return text;
  }

  test::ManualExecutor executor_;
  LetterStorage storage_;
  MemoryPromises promises_{executor_};
  replication::StorageHost host_{{kVolume, {}, {10}}, executor_, storage_, promises_};
  ServedReads reads_{storage_, host_, executor_, {16}};
};

TEST_F(ServedReadsTest, AnswersTheCoordinatorOfItsEpochAlone) {
  EXPECT_EQ(*read(10), "unavailable") << "nobody coordinates";
  const ConnectionId from = open(kEpoch, 10);
  EXPECT_EQ(*read(10), "aa");
  EXPECT_EQ(*read(9), "aa");
  EXPECT_EQ(*read(10, Epoch{4}), "unavailable");
  EXPECT_EQ(*read(10, Epoch{6}), "unavailable");
  EXPECT_EQ(*read(10, kEpoch, {{15}, {2}}), "invalid-argument");
  host_.closed(from);
  EXPECT_EQ(*read(10), "unavailable") << "it has left";
}

TEST_F(ServedReadsTest, WhatIsNotCommittedYetIsWaitedFor) {
  const ConnectionId from = open(kEpoch, 10);
  const auto one = read(12);
  const auto two = read(11);
  EXPECT_EQ(*one + *two, "");
  commit(from, 11);
  EXPECT_EQ(*two, "aa");
  EXPECT_EQ(*one, "");
  commit(from, 12);
  EXPECT_EQ(*one, "aa");
  executor_.advance(5s);
  EXPECT_EQ(*one + *two, "aaaa") << "once";
}

TEST_F(ServedReadsTest, NobodyWaitsForEver) {
  open(kEpoch, 10);
  const auto one = read(11);
  executor_.advance(ServedReads::kWaitMax / 2);
  const auto two = read(11);
  executor_.advance(ServedReads::kWaitMax / 2);
  EXPECT_EQ(*one, "unavailable");
  EXPECT_EQ(*two, "");
  executor_.advance(ServedReads::kWaitMax / 2);
  EXPECT_EQ(*two, "unavailable");
  EXPECT_TRUE(reads_.idle());
}

TEST_F(ServedReadsTest, WhileItCatchesUpReadsWait) {
  open(kEpoch, 20);
  const auto text = read(20);
  EXPECT_EQ(*text, "");
  caught_up();
  EXPECT_EQ(*text, "aa");
}

TEST_F(ServedReadsTest, ANewerEpochEndsWhatWaitsAndWhatIsUnderWay) {
  open(kEpoch, 10);
  storage_.holds = true;
  const auto under_way = read(10);
  const auto waits = read(11);
  open(Epoch{6}, 10);
  EXPECT_EQ(*waits, "unavailable");
  EXPECT_EQ(*under_way, "");
  storage_.answer();
  EXPECT_EQ(*under_way, "unavailable") << "it may be newer than the older coordinator knows";
  EXPECT_EQ(*read(10), "unavailable");
}

TEST_F(ServedReadsTest, AnImageThatIsMadeAnewIsNotRead) {
  const ConnectionId from = open(kEpoch, 10);
  storage_.holds = true;
  const auto under_way = read(10);
  tell(from, replication::Resume{kVolume, kEpoch, {10}, true});
  ASSERT_TRUE(static_cast<bool>(storage_.started_over));
  storage_.started_over();
  open(kEpoch, 10);
  ASSERT_TRUE(static_cast<bool>(storage_.caught_up));
  caught_up();
  storage_.answer();
  EXPECT_EQ(*under_way, "unavailable") << "it may be of the empty image";
  storage_.holds = false;
  EXPECT_EQ(*read(10), "aa");
}

TEST_F(ServedReadsTest, WhatTheStorageSaysIsPassedOn) {
  open(kEpoch, 10);
  storage_.fails = true;
  EXPECT_EQ(*read(10), "unavailable");
}

TEST_F(ServedReadsTest, SoManyWaitAndNoMore) {
  open(kEpoch, 10);
  for (std::size_t i = 0; i < ServedReads::kWaitingMax; ++i) EXPECT_EQ(*read(11), "");
  EXPECT_EQ(*read(11), "unavailable");
  EXPECT_EQ(*read(10), "aa");
}

TEST_F(ServedReadsTest, ClosedItAnswersNobody) {
  open(kEpoch, 10);
  const auto waits = read(11);
  storage_.holds = true;
  const auto under_way = read(10);
  reads_.close();
  EXPECT_EQ(*waits, "unavailable");
  EXPECT_FALSE(reads_.idle());
  storage_.answer();
  EXPECT_TRUE(reads_.idle());
  EXPECT_EQ(*under_way, "unavailable");
  EXPECT_EQ(*read(10), "unavailable");
}

}  // namespace
}  // namespace mariner::cluster

#include "replication/storage_host.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/manual_executor.h"

namespace mariner::replication {
namespace {

constexpr VolumeId kVolume{1};
using Words = std::vector<std::string>;

// A storage that writes down what it is told, and promises at once.
struct Storage final : ClusterStorageParticipant, PromiseStore {
  explicit Storage(Executor& executor_in) : executor(executor_in) {}
  void prepare(const WriteMessage& message) override { note("prepare", message.stamp.sequence); }
  void drop(const VoidMessage& message) override { note("drop", message.first); }
  void commit(SequenceNumber settled) override { note("commit", settled); }
  void start_over(UniqueFunction<void()> done) override { done(); }
  void harden(UniqueFunction<void(Result<void>)> done) override { done({}); }
  void log_away(std::optional<SequenceNumber> /*since*/) override {}
  void log_lost() override { heard.emplace_back("log lost"); }
  void forget() override { heard.emplace_back("forget"); }
  void catch_up(SequenceNumber from, SequenceNumber to, SequenceNumber at,
                UniqueFunction<void()> done) override {
    note("from", from);
    note("to", to);
    note("at", at);
    caught_up = std::move(done);
  }
  void promise(VolumeId, Epoch epoch, VersionTime,
               UniqueFunction<void(Result<void>)> done) override {
    heard.push_back("promise " + std::to_string(epoch.value));
    executor.post([done = std::move(done)]() mutable { done({}); });
  }
  void note(const std::string& word, SequenceNumber number) {
    heard.push_back(word + " " + std::to_string(number.value));
  }
  Words take() { return std::exchange(heard, {}); }

  Executor& executor;
  Words heard;
  UniqueFunction<void()> caught_up;
};

TEST(StorageHost, CarriesOutWhatTheRoleWants) {
  test::ManualExecutor executor;
  Storage storage(executor);
  StorageHost host({kVolume, {1}, {10}}, executor, storage, storage);
  Words said;
  const ConnectionId peer = host.accept([&said](const FromStorage& message) {
    if (const auto* opened = std::get_if<StorageOpened>(&message)) {
      said.push_back("opened " + std::to_string(opened->durable.value));
    } else if (const auto* caught_up = std::get_if<CaughtUp>(&message)) {
      said.push_back("caught up " + std::to_string(caught_up->through.value));
    } else if (const auto* progress = std::get_if<StorageProgress>(&message)) {
      said.push_back("durable " + std::to_string(progress->durable.value) + " granted " +
                     std::to_string(progress->granted));
    }
  });
  host.received(peer, OpenStorage{kVolume, {2}});
  executor.run_ready();
  EXPECT_EQ(storage.take(), Words{"promise 2"});
  EXPECT_EQ(std::exchange(said, {}), Words{"opened 10"});

  host.granted(9 * kBlockBytes);
  host.received(peer, Resume{kVolume, {2}, {20}});
  EXPECT_EQ(storage.take(), (Words{"forget", "from 10", "to 20", "at 20"}));
  WriteMessage write;
  write.volume = kVolume;
  write.stamp = {{2}, {21}, {1}};
  write.write.kind = WriteKind::kZero;
  write.settled = {20};
  host.received(peer, write);
  host.received(peer, CommitMessage{kVolume, {2}, {21}});
  EXPECT_EQ(storage.take(), Words{"prepare 21"});
  executor.run_ready();
  EXPECT_EQ(std::exchange(said, {}),
            Words{"durable 10 granted " + std::to_string(9 * kBlockBytes)});
  storage.caught_up();
  EXPECT_EQ(storage.take(), Words{"commit 21"});
  EXPECT_EQ(std::exchange(said, {}), Words{"caught up 20"});
  host.durable({21});
  executor.run_ready();
  EXPECT_EQ(std::exchange(said, {}),
            Words{"durable 21 granted " + std::to_string(9 * kBlockBytes)});
  host.received(peer, VoidMessage{kVolume, {2}, {22}, {22}});
  EXPECT_EQ(storage.take(), Words{"drop 22"});
  host.closed(peer);
  host.durable({21});
  executor.run_ready();
  EXPECT_EQ(said, Words{});
}

class FailingImage : public ::testing::Test {
 protected:
  void open() {
    peer_ = host_.accept([this](const FromStorage& message) { said_.push_back(message); });
    host_.received(peer_, OpenStorage{kVolume, {2}});
    executor_.run_ready();
  }
  void fail_for(std::chrono::seconds time) {
    for (; time.count() > 0; time -= std::chrono::seconds(1)) {
      host_.image_failed({ErrorCode::kIo, "broken"});
      executor_.advance(std::chrono::seconds(1));
    }
  }
  template <typename T>
  [[nodiscard]] const T& last() const {
    return std::get<T>(said_.back());
  }

  test::ManualExecutor executor_;
  Storage storage_{executor_};
  StorageHost host_{{kVolume, {1}, {10}}, executor_, storage_, storage_};
  ConnectionId peer_;
  std::vector<FromStorage> said_;
};

TEST_F(FailingImage, IsToldOfAndStaysSoWhileItIsNeeded) {
  open();
  host_.received(peer_, Resume{kVolume, {2}, {12}});
  storage_.caught_up();
  fail_for(std::chrono::seconds(5));
  EXPECT_FALSE(host_.image_failure());
  fail_for(std::chrono::seconds(7));
  EXPECT_TRUE(host_.image_failure());
  EXPECT_EQ(last<StorageProgress>().failed->message, "broken");
  executor_.advance(std::chrono::hours(2));
  EXPECT_TRUE(host_.image_failure()) << "it is written to all the time";
  host_.durable({12});
  executor_.run_ready();
  EXPECT_FALSE(host_.image_failure());
  EXPECT_FALSE(last<StorageProgress>().failed);
  EXPECT_EQ(last<StorageProgress>().durable, SequenceNumber{12});
}

TEST_F(FailingImage, ThatIsLeftAloneIsTriedAgain) {
  fail_for(std::chrono::seconds(12));
  EXPECT_TRUE(host_.image_failure());
  open();
  EXPECT_EQ(last<StorageOpened>().failed->message, "broken");
  executor_.advance(std::chrono::seconds(15));
  EXPECT_EQ(last<Refused>().error.code, ErrorCode::kUnavailable);
  EXPECT_FALSE(host_.image_failure());
  host_.closed(peer_);
  open();
  EXPECT_FALSE(last<StorageOpened>().failed);
  fail_for(std::chrono::seconds(1));
  EXPECT_TRUE(host_.image_failure()) << "one more is enough";
  executor_.advance(std::chrono::seconds(20));
  EXPECT_TRUE(host_.image_failure()) << "it is left alone for longer";
  executor_.advance(std::chrono::seconds(20));
  EXPECT_FALSE(host_.image_failure());
}

}  // namespace
}  // namespace mariner::replication

#include "replication/coordinator_host.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/manual_executor.h"

namespace mariner::replication {
namespace {

using namespace std::chrono_literals;
constexpr VolumeId kVolume{1};
constexpr Epoch kEpoch{5};
constexpr NodeId kOwn{1};
constexpr NodeId kLogger{3};
using Words = std::vector<std::string>;

class CoordinatorHostTest : public ::testing::Test, private CoordinatorHost::Transport {
 protected:
  void send_log(NodeId /*node*/, const ToLogger& message) override {
    if (std::holds_alternative<OpenLog>(message)) said_.emplace_back("open log");
    if (const auto* write = std::get_if<WriteMessage>(&message)) {
      said_.push_back("log " + std::to_string(write->stamp.sequence.value));
    }
    if (std::holds_alternative<RaiseFloor>(message)) said_.emplace_back("raise floor");
  }
  void send_storage(NodeId node, const ToStorage& message) override {
    const std::string to = " to " + std::to_string(node.value);
    if (std::holds_alternative<OpenStorage>(message)) said_.push_back("open" + to);
    if (std::holds_alternative<Resume>(message)) said_.push_back("resume" + to);
    if (std::holds_alternative<WriteMessage>(message)) said_.push_back("write" + to);
    if (const auto* commit = std::get_if<CommitMessage>(&message)) {
      said_.push_back("commit " + std::to_string(commit->settled.value) + to);
    }
  }
  void reopen_log(NodeId, const Error&) override { said_.emplace_back("reopen log"); }
  void reopen_storage(NodeId node, const Error&) override {
    said_.push_back("reopen " + std::to_string(node.value));
  }
  void fetch(SequenceNumber from, SequenceNumber to,
             UniqueFunction<void(Result<LogSource::Portion>)> done) override {
    said_.push_back("fetch " + std::to_string(from.value) + " to " + std::to_string(to.value));
    fetched_ = std::move(done);
  }
  Words said() {
    executor_.run_ready();
    return std::exchange(said_, {});
  }
  void serve() {
    host_->logger_connected(kLogger);
    host_->received(kLogger, LogOpened{kVolume, kEpoch, {10}, {}, {5000}, {}});
    host_->received(kLogger, Logged{kVolume, kEpoch, {10 + 8}});
    host_->storage_connected(kOwn);
    host_->received(kOwn, StorageOpened{kVolume, kEpoch, {10}, {10}});
    ASSERT_TRUE(host_->ready());
    said();
  }
  void begin_again(std::vector<NodeId> storages) {
    host_.emplace(CoordinatorRole::Start{kVolume, kEpoch, std::move(storages), kOwn, kLogger},
                  CoordinatorRole::Options{.limits = {.writes_in_flight_max = 8}, .void_margin = 8},
                  executor_, static_cast<CoordinatorHost::Transport&>(*this),
                  CoordinatorHost::Events{});
  }
  void submit(const std::string& name) {
    WriteRequest request;
    request.kind = WriteKind::kZero;
    request.extent = {{0}, {1}};
    host_->submit(std::move(request), [this, name](const Result<Stamp>& result) {
      said_.push_back(name +
                      (result ? " done" : " " + std::string(error_code_name(result.error().code))));
    });
  }

  test::ManualExecutor executor_;
  Words said_;
  UniqueFunction<void(Result<LogSource::Portion>)> fetched_;
  bool may_answer_ = true;
  std::optional<CoordinatorHost> host_{
      std::in_place,
      CoordinatorRole::Start{kVolume, kEpoch, {kOwn}, kOwn, kLogger},
      CoordinatorRole::Options{.limits = {.writes_in_flight_max = 8}, .void_margin = 8},
      executor_,
      static_cast<CoordinatorHost::Transport&>(*this),
      CoordinatorHost::Events{
          .ready = [this] { said_.emplace_back("ready"); },
          .superseded =
              [this](Epoch by) { said_.push_back("superseded " + std::to_string(by.value)); },
          .may_answer = [this] { return may_answer_; }}};
};

TEST_F(CoordinatorHostTest, CarriesOutWhatTheRoleWants) {
  host_->logger_connected(kLogger);
  EXPECT_EQ(said(), Words{"open log"});
  submit("early");
  EXPECT_EQ(said(), Words{"early unavailable"});
  host_->received(kLogger, LogOpened{kVolume, kEpoch, {10}, {}, {5000}, {}});
  host_->storage_connected(kOwn);
  host_->received(kLogger, Logged{kVolume, kEpoch, {18}});
  EXPECT_EQ(said(), (Words{"ready", "open to 1"}));
  host_->received(kOwn, StorageOpened{kVolume, kEpoch, {10}, {10}});
  EXPECT_EQ(said(), Words{"resume to 1"});
  submit("a");
  EXPECT_EQ(said(), (Words{"log 19", "write to 1"}));
  host_->received(kLogger, Logged{kVolume, kEpoch, {19}});
  EXPECT_EQ(said(), (Words{"commit 19 to 1", "a done"})) << "reads are served there";
}

TEST_F(CoordinatorHostTest, WhoIsNotReadFromHearsWithTheNextWriteOrSoon) {
  constexpr NodeId kOther{2};
  begin_again({kOwn, kOther});
  serve();
  host_->storage_connected(kOther);
  host_->received(kOther, StorageOpened{kVolume, kEpoch, {10}, {10}});
  EXPECT_EQ(said(), (Words{"open to 2", "resume to 2"}));
  submit("a");
  host_->received(kLogger, Logged{kVolume, kEpoch, {19}});
  EXPECT_EQ(said(), (Words{"log 19", "write to 1", "write to 2", "commit 19 to 1", "a done"}));
  submit("b");
  executor_.advance(10ms);
  EXPECT_EQ(said(), (Words{"log 20", "write to 1", "write to 2"})) << "it carried the commit";
  host_->received(kLogger, Logged{kVolume, kEpoch, {20}});
  EXPECT_EQ(said(), (Words{"commit 20 to 1", "b done"}));
  executor_.advance(10ms);
  EXPECT_EQ(said(), Words{"commit 20 to 2"}) << "nothing came to carry it";
}

TEST_F(CoordinatorHostTest, KnowsHowLongAnImageHasBeenBehind) {
  serve();
  host_->received(kOwn, StorageProgress{kVolume, kEpoch, {18}, {18}, 1u << 20});
  EXPECT_EQ(host_->lag(kOwn), 0s);
  submit("a");
  host_->received(kLogger, Logged{kVolume, kEpoch, {19}});
  executor_.advance(1s);
  EXPECT_GE(host_->lag(kOwn), 900ms);
  EXPECT_LE(host_->lag(kOwn), 1s);
  EXPECT_EQ(host_->lag({2}), host_->lag(kOwn)) << "of an image that holds nothing";
  host_->received(kOwn, StorageProgress{kVolume, kEpoch, {18}, {19}, 1u << 20});
  EXPECT_EQ(host_->lag(kOwn), 0s);
}

TEST_F(CoordinatorHostTest, WhoWaitsHearsOfTheEnd) {
  serve();
  submit("a");
  host_->settle([this](SequenceNumber settled) {
    said_.push_back("settled " + std::to_string(settled.value));
  });
  host_->settle_moment({99'000'000}, [this](const Result<SequenceNumber>& at) {
    said_.emplace_back(at ? "opened" : "no moment");
  });
  said();
  host_->received(kLogger, FromLogger{Refused{kVolume, {6}, {ErrorCode::kStaleEpoch, "over"}}});
  EXPECT_EQ(said(), (Words{"a unavailable", "no moment", "settled 18", "superseded 6"}));
  submit("late");
  host_->received(kLogger, Logged{kVolume, kEpoch, {19}});
  EXPECT_EQ(said(), Words{"late unavailable"});
}

TEST_F(CoordinatorHostTest, WithoutTheLeaseNothingIsAcknowledged) {
  serve();
  submit("a");
  submit("b");
  said();
  may_answer_ = false;
  host_->received(kLogger, Logged{kVolume, kEpoch, {19}});
  EXPECT_EQ(said(), (Words{"commit 19 to 1", "a unavailable"}));
  host_->received(kLogger, LogFailed{kVolume, kEpoch, {20}, {ErrorCode::kNoSpace, "full"}});
  EXPECT_EQ(said()[0], "b no-space") << "a failure may be told";
}

TEST_F(CoordinatorHostTest, MomentsAreSettledOnes) {
  serve();
  host_->settle_moment({99'000'000}, [this](const Result<SequenceNumber>& at) {
    said_.push_back("opened " + std::to_string(at->value));
  });
  EXPECT_EQ(said(), Words{"raise floor"});
  host_->received(kLogger, FloorRaised{kVolume, kEpoch, {99'000'000}});
  EXPECT_EQ(said(), Words{"opened 18"});
}

TEST_F(CoordinatorHostTest, NonsenseOfAParticipantReopensIt) {
  serve();
  host_->received(kLogger, Logged{kVolume, kEpoch, {99}});
  EXPECT_EQ(said(), Words{"reopen log"});
  host_->received(kOwn, StorageProgress{kVolume, kEpoch, {18}, {99}, 0});
  EXPECT_EQ(said(), Words{"reopen 1"});
}

TEST_F(CoordinatorHostTest, MayBeDestroyedByWhatItTells) {
  serve();
  host_->submit(
      [] {
        WriteRequest request;
        request.kind = WriteKind::kZero;
        request.extent = {{0}, {1}};
        return request;
      }(),
      [this](const Result<Stamp>&) { host_.reset(); });
  said();
  host_->received(kLogger, Logged{kVolume, kEpoch, {19}});
  EXPECT_EQ(said(), Words{"commit 19 to 1"});
  EXPECT_FALSE(host_.has_value());
  executor_.advance(10s);
}

}  // namespace
}  // namespace mariner::replication

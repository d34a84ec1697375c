#include "replication/logger_host.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/manual_executor.h"

namespace mariner::replication {
namespace {

constexpr VolumeId kVolume{1};

// A log and a store of promises that a test answers for.
struct Disk final : ClusterLoggerParticipant, PromiseStore {
  void log(const WriteMessage& message, UniqueFunction<void(Result<void>)> done) override {
    heard.push_back("log " + std::to_string(message.stamp.sequence.value));
    pending.push_back(std::move(done));
  }
  void log_void(const VoidMessage& message, UniqueFunction<void(Result<void>)> done) override {
    heard.push_back("void " + std::to_string(message.first.value));
    pending.push_back(std::move(done));
  }
  void applied(SequenceNumber through) override {
    heard.push_back("applied " + std::to_string(through.value));
  }
  void begin_anew(SequenceNumber at, VersionTime time,
                  UniqueFunction<void(Result<void>)> done) override {
    heard.push_back("begin " + std::to_string(at.value) + " " + std::to_string(time.ns));
    pending.push_back(std::move(done));
  }
  void promise(VolumeId, Epoch epoch, VersionTime floor,
               UniqueFunction<void(Result<void>)> done) override {
    heard.push_back("promise " + std::to_string(epoch.value) + " " + std::to_string(floor.ns));
    pending.push_back(std::move(done));
  }
  void answer(const Result<void>& result = {}) {
    auto done = std::move(pending.front());
    pending.erase(pending.begin());
    done(result);
  }
  std::vector<std::string> heard;
  std::vector<UniqueFunction<void(Result<void>)>> pending;
};

class LoggerHostTest : public ::testing::Test {
 protected:
  WriteMessage write_of(std::uint64_t sequence) {
    WriteMessage message;
    message.volume = kVolume;
    message.stamp = {{2}, {sequence}, {1000 + sequence}};
    return message;
  }
  std::vector<std::string> said() {
    executor_.run_ready();
    return std::exchange(said_, {});
  }
  void note(const FromLogger& message) {
    if (const auto* opened = std::get_if<LogOpened>(&message)) {
      said_.push_back("opened " + std::to_string(opened->last.value));
    } else if (const auto* logged = std::get_if<Logged>(&message)) {
      said_.push_back("logged " + std::to_string(logged->through.value));
    } else if (const auto* failed = std::get_if<LogFailed>(&message)) {
      said_.push_back("failed " + std::to_string(failed->sequence.value));
    } else if (std::holds_alternative<Refused>(message)) {
      said_.push_back("refused");
    }
  }

  test::ManualExecutor executor_;
  Disk disk_;
  LoggerHost host_{{kVolume, {1}, {10}, {1010}, {}, {}}, executor_, disk_, disk_};
  std::vector<std::string> said_;
};

using Words = std::vector<std::string>;

TEST_F(LoggerHostTest, CarriesOutWhatTheRoleWants) {
  const ConnectionId peer = host_.accept([this](const FromLogger& message) { note(message); });
  host_.received(peer, OpenLog{kVolume, {2}});
  EXPECT_EQ(disk_.heard, Words{"promise 2 1010"});
  EXPECT_EQ(said(), Words{});
  disk_.answer();
  EXPECT_EQ(said(), Words{"opened 10"});
  for (std::uint64_t s = 11; s <= 13; ++s) host_.received(peer, write_of(s));
  EXPECT_EQ(disk_.heard, (Words{"promise 2 1010", "log 11", "log 12", "log 13"}));
  disk_.answer();
  disk_.answer();
  EXPECT_EQ(said(), Words{"logged 12"}) << "what a turn has settled is one message";
  disk_.answer(Error{ErrorCode::kNoSpace, "full"});
  EXPECT_EQ(said(), Words{"failed 13"});
  host_.received(peer, VoidMessage{kVolume, {2}, {13}, {13}});
  disk_.answer();
  EXPECT_EQ(said(), Words{"logged 13"});
}

TEST_F(LoggerHostTest, TellsTheLogOnceHowFarTheFurthestImageIs) {
  const ConnectionId peer = host_.accept([this](const FromLogger& message) { note(message); });
  host_.received(peer, OpenLog{kVolume, {2}});
  disk_.answer();
  disk_.heard.clear();
  host_.received(peer, FrontierMessage{kVolume, {2}, {7}, {9}});
  host_.received(peer, FrontierMessage{kVolume, {2}, {8}, {9}});
  host_.received(peer, FrontierMessage{kVolume, {2}, {10}, {}});  // of one who does not say it
  EXPECT_EQ(disk_.heard, (Words{"applied 9", "applied 10"}));
  EXPECT_EQ(host_.role().frontier(), SequenceNumber{10});
}

TEST_F(LoggerHostTest, WhoIsGoneIsNotAnswered) {
  const ConnectionId peer = host_.accept([this](const FromLogger& message) { note(message); });
  host_.received(peer, OpenLog{kVolume, {2}});
  disk_.answer();
  host_.received(peer, write_of(11));
  host_.closed(peer);
  said_.clear();
  disk_.answer();
  EXPECT_EQ(said(), Words{});
  EXPECT_EQ(host_.role().settled(), SequenceNumber{11});
}

TEST_F(LoggerHostTest, ALogThatIsLostBeginsWhereItIsTold) {
  Disk disk;
  LoggerHost host({kVolume, {}, {}, {}, {}, {}}, executor_, disk, disk);
  std::vector<FromLogger> said;
  const ConnectionId one = host.accept([&](const FromLogger& message) { said.push_back(message); });
  host.received(one, OpenLog{kVolume, {2}});
  disk.answer();
  host.received(one, BeginAnew{kVolume, {2}, {100}, {5000}});
  executor_.run_ready();
  EXPECT_EQ(disk.heard.back(), "begin 100 5000");
  EXPECT_EQ(said.size(), 1u) << "that it is open, and nothing more yet";
  disk.answer();
  executor_.run_ready();
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(std::get<Logged>(said.back()).through, SequenceNumber{100});
}

}  // namespace
}  // namespace mariner::replication

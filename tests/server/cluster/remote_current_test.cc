#include "server/cluster/remote_current.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/cluster/history_link.h"
#include "tests/server/volume/logged_rig.h"
#include "tests/support/manual_executor.h"

namespace mariner::cluster {
namespace {

using namespace std::chrono_literals;
using replication::CoordinatorHost;
using replication::NodeId;
using test::LoggedRig;

constexpr VolumeId kVolume{7};
constexpr Epoch kEpoch{1};
constexpr NodeId kFirst{1};
constexpr NodeId kSecond{2};
constexpr NodeId kLogger{3};

// Nobody is at the other end: the test says what the participants say.
struct DeafTransport final : public CoordinatorHost::Transport {
  void send_log(NodeId, const replication::ToLogger&) override {}
  void send_storage(NodeId, const replication::ToStorage&) override {}
  void reopen_log(NodeId, const Error&) override {}
  void reopen_storage(NodeId, const Error&) override {}
  void fetch(SequenceNumber, SequenceNumber,
             UniqueFunction<void(Result<replication::LogSource::Portion>)> done) override {
    done(Error{ErrorCode::kNotFound, "no journal"});
  }
};

class RemoteCurrentTest : public ::testing::Test {
 protected:
  RemoteCurrentTest() {
    host_.logger_connected(kLogger);
    host_.received(kLogger, replication::LogOpened{kVolume, kEpoch, {}, {}, {}, {}});
    for (const NodeId node : {kFirst, kSecond}) {
      ways_.emplace(node, kVolume);
      come(node);
    }
  }
  ~RemoteCurrentTest() override {
    host_.end();
    for (auto& [node, way] : ways_) way.down();
    executor_.advance(1s);
    EXPECT_EQ(under_way_, 0);
  }
  // The storage node has caught up, and can be asked.
  void come(NodeId node) {
    ways_.at(node).up([this, node](const HistoryFrame& frame) {
      auto question = decode_question(frame.header, {});
      EXPECT_TRUE(question.has_value());
      asked_[node].push_back(*std::move(question));
      return true;
    });
    host_.storage_connected(node);
    host_.received(node, replication::StorageOpened{kVolume, kEpoch, {}, {}});
    host_.received(node, replication::CaughtUp{kVolume, kEpoch, host_.role().settled()});
  }
  // As a connection that breaks is told of.
  void go(NodeId node) {
    host_.storage_disconnected(node);
    ways_.at(node).down();
  }
  std::shared_ptr<std::string> read(BlockRange range = {{3}, {2}}) {
    auto text = std::make_shared<std::string>();
    ++under_way_;
    current_.read(range, [this, text](const Result<PayloadSlice>& r) {
      --under_way_;
      *text += r ? LoggedRig::text_of(r->bytes()) : std::string(error_code_name(r.error().code));
    });
    return text;
  }
  CurrentQuestion answer(NodeId node, char letter) {
    const HistoryQuestion question = take(node);
    const auto what = std::get<CurrentQuestion>(question.what);
    EXPECT_TRUE(ways_.at(node).received(
        {kVolume, question.id,
         ReadAnswer{{}, LoggedRig::blocks_of(letter, what.range.count.value)}}));
    return what;
  }
  void fail(NodeId node, ErrorCode code) {
    const HistoryQuestion question = take(node);
    EXPECT_TRUE(
        ways_.at(node).received({kVolume, question.id, FailureAnswer{Error{code, "it is so"}}}));
  }
  HistoryQuestion take(NodeId node) {
    CHECK(!asked_[node].empty());
    HistoryQuestion question = std::move(asked_[node].front());
    asked_[node].erase(asked_[node].begin());
    return question;
  }
  void write(std::uint64_t number) {
    replication::WriteRequest request;
    request.kind = replication::WriteKind::kZero;
    request.extent = {{0}, {1}};
    host_.submit(std::move(request), [](const Result<replication::Stamp>&) {});
    host_.received(kLogger, replication::Logged{kVolume, kEpoch, {number}});
  }

  test::ManualExecutor executor_;
  DeafTransport transport_;
  CoordinatorHost host_{
      {kVolume, kEpoch, {kFirst, kSecond}, {}, kLogger}, {}, executor_, transport_, {}};
  std::map<NodeId, RemoteHistory> ways_;
  std::map<NodeId, std::vector<HistoryQuestion>> asked_;
  int under_way_ = 0;
  RemoteCurrent current_{host_, executor_,
                         [this](NodeId node) -> RemoteHistory& { return ways_.at(node); }};
};

TEST_F(RemoteCurrentTest, AsksForWhatWasSettledWhenTheReadCame) {
  write(1);
  const auto text = read();
  write(2);
  const CurrentQuestion asked = answer(kFirst, 'a');
  EXPECT_EQ(asked.range, (BlockRange{{3}, {2}}));
  EXPECT_EQ(asked.at, SequenceNumber{1});
  EXPECT_EQ(asked.epoch, kEpoch);
  EXPECT_EQ(*text, "aa");
  EXPECT_TRUE(asked_[kSecond].empty());
}

TEST_F(RemoteCurrentTest, WhenItsStorageNodeGoesTheOtherOneIsAskedAtOnce) {
  write(1);
  const auto text = read();
  go(kFirst);
  EXPECT_EQ(*text, "");
  EXPECT_EQ(answer(kSecond, 'b').at, SequenceNumber{1});
  EXPECT_EQ(*text, "bb");
}

TEST_F(RemoteCurrentTest, WhoHasNoAnswerIsAskedAgainALittleLater) {
  const auto text = read();
  fail(kFirst, ErrorCode::kUnavailable);
  EXPECT_TRUE(asked_[kFirst].empty());
  executor_.advance(50ms);
  ASSERT_EQ(asked_[kFirst].size(), 1u);
  answer(kFirst, 'a');
  EXPECT_EQ(*text, "aa");
}

TEST_F(RemoteCurrentTest, WhileNobodyHasEverythingReadsWait) {
  go(kFirst);
  go(kSecond);
  const auto text = read();
  executor_.advance(10s);
  EXPECT_EQ(*text, "");
  come(kSecond);
  executor_.advance(50ms);
  answer(kSecond, 'b');
  EXPECT_EQ(*text, "bb");
}

TEST_F(RemoteCurrentTest, WhatIsWrongWithTheReadIsSaid) {
  const auto text = read();
  fail(kFirst, ErrorCode::kIo);
  EXPECT_EQ(*text, "io");
}

TEST_F(RemoteCurrentTest, BehindTheEndNobodyWaits) {
  const auto asked = read();
  go(kSecond);
  go(kFirst);
  const auto waits = read();
  host_.end();
  executor_.advance(50ms);
  EXPECT_EQ(*asked, "unavailable");
  EXPECT_EQ(*waits, "unavailable");
  EXPECT_EQ(*read(), "unavailable");
}

TEST_F(RemoteCurrentTest, SoManyAreAskedAtATimeAndTheOthersAfterThem) {
  std::vector<std::shared_ptr<std::string>> texts;
  for (std::size_t i = 0; i < RemoteCurrent::kInFlightMax + 2; ++i) texts.push_back(read());
  EXPECT_EQ(asked_[kFirst].size(), RemoteCurrent::kInFlightMax);
  answer(kFirst, 'a');
  EXPECT_EQ(asked_[kFirst].size(), RemoteCurrent::kInFlightMax);
  go(kFirst);
  while (!asked_[kSecond].empty()) answer(kSecond, 'b');
  EXPECT_EQ(*texts.front(), "aa");
  for (std::size_t i = 1; i < texts.size(); ++i) EXPECT_EQ(*texts[i], "bb") << i;
}

}  // namespace
}  // namespace mariner::cluster

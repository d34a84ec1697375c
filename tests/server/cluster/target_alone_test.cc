// A target on a node that stores nothing of the volume, with real connections to the two nodes that
// do: production parts over disks in memory. The store, and with it the leases, are on a virtual
// clock.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "tests/server/cluster/storing_side.h"

namespace mariner::cluster {
namespace {

using namespace std::chrono_literals;
using replication::NodeId;
using test::LoggedRig;
using State = TargetPart::State;

constexpr std::uint64_t kBlocks = StoringSide::kBlocks;
constexpr NodeId kFirst{1};
constexpr NodeId kSecond{2};  // the logger, too
constexpr NodeId kAlone{3};

// The first and the second node store it, and may serve it, too.
class TargetAloneTest : public ::testing::Test {
 protected:
  TargetAloneTest() {
    put({kVolume, {}, kAlone, kSecond, {kFirst, kSecond}});
    volume::LoggedVolume::Options logged;
    logged.id = kVolume;
    logged.index = log_.index.shared();
    replication::LoggerRole::Start start;
    start.volume = kVolume;
    logger_.emplace(
        std::move(logged), start,
        LoggerPart::Parts{{log_.disks, log_.writer, log_.log_reader}, executor_, promises_});
    alone_.emplace(executor_, cluster_, kAlone);
    TargetPart::Options options;
    options.volume = kVolume;
    options.size_bytes = kBlocks * kBlockBytes;
    options.targets = {kAlone, kFirst, kSecond};
    CallerService& caller = rig_.node(3).caller;
    alone_->begin(options, {executor_,
                            alone_->store,
                            alone_->lease,
                            alone_->view,
                            caller,
                            nullptr,
                            caller.history(kVolume, kSecond),
                            {}});
    EXPECT_TRUE(run_until([&] { return alone_->lease.held(); }));
    const std::vector<NodeId> targets{kAlone, kFirst, kSecond};
    first_.emplace(executor_, cluster_, rig_.node(1), nullptr, kSecond, targets);
    second_.emplace(executor_, cluster_, rig_.node(2), &*logger_, kSecond, targets);
  }
  ~TargetAloneTest() override {
    alone_->target->close();
    first_->close();
    second_->close();
    logger_->close(Error{ErrorCode::kUnavailable, "closing"});
    EXPECT_TRUE(run_until([&] {
      return alone_->target->idle() && first_->idle() && second_->idle() && logger_->idle();
    }));
  }
  void put(const manager::VolumeRecord& record) {
    EXPECT_TRUE(
        cluster_.commit({.puts = {{manager::volume_key(kVolume), manager::encode(record)}}}));
  }
  [[nodiscard]] manager::VolumeRecord record() const {
    return *manager::decode_volume_record(kVolume,
                                          cluster_.get(manager::volume_key(kVolume)).entry->value);
  }
  void wish(NodeId node) {
    manager::VolumeRecord changed = record();
    changed.wanted = node;
    put(changed);
  }
  [[nodiscard]] static bool serves(const TargetMember& member) {
    return member.target->state() == State::kServing;
  }
  // Real connections, and the virtual clock beside them. Two never serve at once.
  bool run_until(const std::function<bool()>& ended) {
    return rig_.run_until([&] {
      executor_.advance(5ms);
      int serving = 0;
      if (alone_) serving += serves(*alone_) ? 1 : 0;
      for (const auto* side : {&first_, &second_}) {
        if (*side) serving += serves((*side)->member) ? 1 : 0;
      }
      EXPECT_LE(serving, 1);
      return ended();
    });
  }
  std::string write(TargetMember& member, std::uint64_t block, char letter) {
    std::string answer;
    member.target->layer()->write({block * kBlockBytes, kBlockBytes},
                                  LoggedRig::blocks_of(letter, 1), [&](const Result<void>& r) {
                                    answer =
                                        r ? "done" : std::string(error_code_name(r.error().code));
                                  });
    EXPECT_TRUE(run_until([&] { return !answer.empty(); }));
    return answer;
  }
  std::shared_ptr<std::string> begin_read(TargetMember& member) {
    auto text = std::make_shared<std::string>();
    member.target->layer()->read({0, 4 * kBlockBytes}, [text](const Result<PayloadSlice>& r) {
      *text = r ? LoggedRig::text_of(r->bytes()) : std::string(error_code_name(r.error().code));
    });
    return text;
  }
  std::string read(TargetMember& member) {
    const auto text = begin_read(member);
    EXPECT_TRUE(run_until([&] { return !text->empty(); }));
    return *text;
  }
  bool reads_from(NodeId node) {
    return run_until([&] {
      const auto* host = alone_->target->coordinator();
      return host != nullptr && host->role().reads_from() == node;
    });
  }
  bool all_caught_up(const TargetMember& member) {
    return run_until([&] {
      const auto* host = member.target->coordinator();
      return host != nullptr && host->ready() && host->role().caught_up(kFirst) &&
             host->role().caught_up(kSecond);
    });
  }

  ServiceRig rig_{3};
  LoggedRig log_{false};
  test::ManualExecutor& executor_ = log_.executor;
  manager::MemoryCluster cluster_{executor_};
  MemoryPromises promises_{executor_};
  std::optional<LoggerPart> logger_;
  std::optional<TargetMember> alone_;
  std::optional<StoringSide> first_;
  std::optional<StoringSide> second_;
};

TEST_F(TargetAloneTest, ServesFromTheStorageOfOthers) {
  ASSERT_TRUE(run_until([&] { return serves(*alone_); }));
  EXPECT_EQ(write(*alone_, 0, 'a'), "done");
  EXPECT_EQ(read(*alone_), "a000");
  EXPECT_EQ(write(*alone_, 1, 'b'), "done");
  std::string answer;
  alone_->target->layer()->write({512, 512}, {Payload::zeroed(512), 0, 512},
                                 [&](const Result<void>& r) { answer = r ? "done" : "failed"; });
  ASSERT_TRUE(run_until([&] { return !answer.empty(); }));
  EXPECT_EQ(answer, "done") << "a part of a block is merged with what the storage node has";
  std::string sectors;
  alone_->target->layer()->read({0, 1536}, [&](const Result<PayloadSlice>& r) {
    ASSERT_TRUE(r.has_value());
    for (std::size_t at = 0; at < 1536; at += 512) {
      const char byte = static_cast<char>(r->bytes()[at]);
      sectors += byte == 0 ? '0' : byte;
    }
  });
  ASSERT_TRUE(run_until([&] { return !sectors.empty(); }));
  EXPECT_EQ(sectors, "a0a");
  for (const auto& node : rig_.nodes) EXPECT_TRUE(node->reports.empty());
}

TEST_F(TargetAloneTest, WhatWasAnsweredIsReadAlsoFromWithinTheAnswer) {
  ASSERT_TRUE(run_until([&] { return serves(*alone_); }));
  for (char letter = 'a'; letter < 'k'; ++letter) {
    std::shared_ptr<std::string> text;
    alone_->target->layer()->write({0, kBlockBytes}, LoggedRig::blocks_of(letter, 1),
                                   [&](const Result<void>& r) {
                                     EXPECT_TRUE(r);
                                     text = begin_read(*alone_);
                                   });
    ASSERT_TRUE(run_until([&] { return text != nullptr && !text->empty(); }));
    EXPECT_EQ(*text, std::string(1, letter) + "000");
  }
}

TEST_F(TargetAloneTest, WhenTheStorageNodeThatIsReadFromGoesTheOtherOneAnswers) {
  ASSERT_TRUE(run_until([&] { return serves(*alone_); }));
  EXPECT_EQ(write(*alone_, 0, 'a'), "done");
  ASSERT_TRUE(all_caught_up(*alone_));
  ASSERT_TRUE(reads_from(kFirst));
  rig_.node(1).server.remove(kVolume);
  const auto cut = begin_read(*alone_);
  rig_.node(1).bus.reset();
  ASSERT_TRUE(run_until([&] { return !cut->empty(); }));
  EXPECT_EQ(*cut, "a000");
  EXPECT_TRUE(reads_from(kSecond));
  EXPECT_EQ(write(*alone_, 1, 'b'), "done");
  EXPECT_EQ(read(*alone_), "ab00");
  EXPECT_TRUE(serves(*alone_));
  EXPECT_EQ(alone_->epochs, std::vector<std::uint64_t>{1});
}

TEST_F(TargetAloneTest, WhoStoresItTakesItOverAndGivesItBack) {
  ASSERT_TRUE(run_until([&] { return serves(*alone_); }));
  EXPECT_EQ(write(*alone_, 0, 'a'), "done");
  ASSERT_TRUE(all_caught_up(*alone_));
  alone_->cut(true);
  ASSERT_TRUE(run_until([&] { return serves(first_->member) || serves(second_->member); }));
  EXPECT_EQ(read(*alone_), "unavailable");
  EXPECT_EQ(write(*alone_, 1, 'x'), "unavailable");
  TargetMember& other = serves(first_->member) ? first_->member : second_->member;
  EXPECT_EQ(read(other), "a000");
  EXPECT_EQ(write(other, 1, 'b'), "done");
  alone_->cut(false);
  ASSERT_TRUE(run_until([&] { return alone_->target->state() == State::kStandby; }));
  wish(kAlone);
  ASSERT_TRUE(run_until([&] { return serves(*alone_); }));
  EXPECT_EQ(read(*alone_), "ab00");
  EXPECT_EQ(write(*alone_, 2, 'c'), "done");
  ASSERT_TRUE(all_caught_up(*alone_));
  wish(kFirst);
  ASSERT_TRUE(run_until([&] { return serves(first_->member); }));
  EXPECT_EQ(read(first_->member), "abc0");
}

TEST_F(TargetAloneTest, WhoIsNoTargetOfTheVolumeDoesNotFollow) {
  ASSERT_TRUE(run_until([&] { return serves(*alone_); }));
  ASSERT_TRUE(all_caught_up(*alone_));
  EXPECT_TRUE(alone_->target->may_follow(kFirst));
  EXPECT_TRUE(alone_->target->may_follow(kAlone));
  EXPECT_FALSE(alone_->target->may_follow(NodeId{4}));
  TargetMember stranger(executor_, cluster_, NodeId{4});
  ASSERT_TRUE(run_until([&] { return stranger.lease.held(); }));
  wish(NodeId{4});
  ASSERT_TRUE(run_until([&] { return record().wanted == NodeId{}; }));
  EXPECT_NE(record().declined, manager::Declined::kNot);
  EXPECT_TRUE(serves(*alone_));
}

TEST_F(TargetAloneTest, WhileTheLoggerIsAwayItCoordinatesNothing) {
  ASSERT_TRUE(run_until([&] { return serves(*alone_); }));
  alone_->lease.stop([] {});
  first_->member.lease.stop([] {});
  second_->member.lease.stop([] {});
  manager::VolumeRecord away = record();
  away.logger = NodeId{4};
  away.coordinator = kAlone;
  away.away = replication::LogAway{{5}, {6}, {7}};
  put(away);
  alone_->lease.start();
  ASSERT_TRUE(run_until([&] { return record().coordinator == NodeId{}; }));
  for (int i = 0; i < 1000; ++i) executor_.advance(10ms);
  EXPECT_EQ(record().coordinator, NodeId{});
  EXPECT_EQ(alone_->target->coordinator(), nullptr);
  EXPECT_EQ(alone_->epochs, std::vector<std::uint64_t>{1});
}

}  // namespace
}  // namespace mariner::cluster

#include "replication/log_return.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

namespace mariner::replication {
namespace {

constexpr VolumeId kVolume{1};
constexpr Epoch kEpoch{5};
// Up to #100 it had acknowledged everything, #100 being void; up to #104 it may have more.
constexpr LogAway kAway{{100}, {104}, {5000}, {99}};
using Words = std::vector<std::string>;

WriteMessage write(std::uint64_t number) {
  WriteMessage write;
  write.volume = kVolume;
  write.stamp = {Epoch{3}, {number}, {9'000'000 + number}};
  write.write.kind = WriteKind::kZero;
  write.write.extent = {{number}, {1}};
  return write;
}

class LogReturnTest : public ::testing::Test {
 protected:
  static std::string word(const ToLogger& message) {
    if (const auto* open = std::get_if<OpenLog>(&message)) {
      return "open " + std::to_string(open->epoch.value);
    }
    if (const auto* lost = std::get_if<VoidMessage>(&message)) {
      return "void " + std::to_string(lost->first.value) + "-" + std::to_string(lost->last.value);
    }
    if (const auto* anew = std::get_if<BeginAnew>(&message)) {
      return "begin behind " + std::to_string(anew->at.value) + " at " +
             std::to_string(anew->time.ns);
    }
    const auto& sent = std::get<WriteMessage>(message);
    EXPECT_EQ(sent.stamp.epoch, kEpoch) << "it hears no other epoch";
    EXPECT_EQ(sent.frontier, SequenceNumber{});
    const std::string number = std::to_string(sent.stamp.sequence.value);
    if (sent.write.kind != WriteKind::kRollback) return "write " + number;
    return "back to " + std::to_string(sent.write.target.value) + " as " + number + " at " +
           std::to_string(sent.stamp.time.ns);
  }
  // What it wants done.
  Words words() {
    Words words;
    for (const ToLogger& message : out_.send) words.push_back(word(message));
    if (out_.fetch) {
      words.push_back("fetch " + std::to_string(out_.fetch->first.value) + "-" +
                      std::to_string(out_.fetch->last.value));
    }
    if (out_.drop) words.push_back("drop: " + std::string(error_code_name(out_.drop->code)));
    out_ = {};
    return words;
  }
  Words hear(const FromLogger& message, std::uint64_t settled) {
    return_.hear(message, {settled}, out_);
    return words();
  }
  Words connect() {
    return_.connected(true, out_);
    return words();
  }
  static LogOpened opened(std::uint64_t last, std::uint64_t end,
                          std::vector<SequenceRange> holes = {}) {
    return {kVolume, kEpoch, {last}, std::move(holes), {4800}, {}, {end}};
  }
  static Logged logged(std::uint64_t through) { return {kVolume, kEpoch, {through}}; }
  Words fetched(std::vector<WriteMessage> writes, std::uint64_t through) {
    return_.fetched(LogSource::Portion{std::move(writes), {through}}, out_);
    return words();
  }

  LogReturn return_{{kVolume, kEpoch, {3}, kAway}};
  LogReturn::Out out_;
};

TEST_F(LogReturnTest, NothingIsSaidBeforeItIsKnownWhatThereIs) {
  return_.connected(false, out_);
  EXPECT_EQ(words(), Words{});
  EXPECT_TRUE(return_.waits());
  EXPECT_EQ(connect(), Words{"open 5"});
  EXPECT_FALSE(return_.waits());
}

TEST_F(LogReturnTest, WhatNobodyWasToldOfIsTakenBackOnRecord) {
  connect();
  EXPECT_EQ(hear(opened(102, 102), 300), (Words{"back to 100 as 103 at 5001", "void 104-105"}));
  EXPECT_EQ(return_.has(), std::nullopt);
  EXPECT_EQ(hear(logged(103), 300), Words{});
  EXPECT_EQ(hear(logged(105), 300), Words{"fetch 105-300"});
  EXPECT_EQ(return_.has(), SequenceNumber{105});
}

TEST_F(LogReturnTest, OneThatHasNothingMoreOnlyVoids) {
  connect();
  EXPECT_EQ(hear(opened(100, 99), 300), Words{"void 101-105"});
}

TEST_F(LogReturnTest, ARollbackThatNobodyWasToldOfIsTakenBack) {
  connect();
  EXPECT_EQ(hear(opened(101, 50), 300), (Words{"back to 100 as 102 at 5001", "void 103-105"}));
}

TEST_F(LogReturnTest, OneThatHasLostAllBeginsAnew) {
  for (const std::uint64_t voids : {0u, 8u}) {
    connect();
    EXPECT_EQ(hear(opened(voids, 0), 300), Words{});
    EXPECT_TRUE(return_.lost());
    EXPECT_EQ(return_.has(), std::nullopt);
    return_.go_on({310}, out_);
    EXPECT_EQ(words(), Words{}) << "the images do not hold it yet";
    return_.begin_anew(out_);
    EXPECT_EQ(words(), Words{"begin behind 100 at 5000"});
    EXPECT_FALSE(return_.lost());
    EXPECT_EQ(return_.has(), std::nullopt);
    EXPECT_EQ(hear(logged(100), 300), Words{"void 101-105"});
    EXPECT_EQ(hear(logged(105), 300), Words{"fetch 105-300"});
    return_.fetched(Error{ErrorCode::kUnavailable, "the connection is gone"}, out_);
    return_.disconnected();
  }
  // It went before it had said so, and comes as one that has what was before.
  connect();
  EXPECT_EQ(hear(opened(100, 100), 300), Words{"void 101-105"});
}

TEST_F(LogReturnTest, OneThatHasLostSomethingIsNotUsed) {
  connect();
  EXPECT_EQ(hear(opened(99, 99), 300), Words{"drop: corrupt"}) << "its end";
  connect();
  EXPECT_EQ(hear(opened(104, 0), 300), Words{"drop: corrupt"}) << "all, and numbers are taken";
}

// It went again in between: what it has taken back, it does not take back again.
TEST_F(LogReturnTest, TakingBackIsDoneOnce) {
  connect();
  EXPECT_EQ(hear(opened(103, 100), 300), Words{"void 104-105"});
  return_.disconnected();
  connect();
  EXPECT_EQ(hear(opened(105, 100), 300), Words{"fetch 105-300"});
}

TEST_F(LogReturnTest, WhatCouldNotBeTakenBackIsTriedAgain) {
  connect();
  hear(opened(104, 104), 300);
  EXPECT_EQ(hear(LogFailed{kVolume, kEpoch, {105}, {ErrorCode::kNoSpace, "full"}}, 300),
            Words{"drop: no-space"});
  connect();
  LogOpened again = opened(105, 105, {{{105}, {105}}});
  again.floor = {5001};
  EXPECT_EQ(hear(again, 300), (Words{"void 105-105", "back to 100 as 106 at 5002"}));
  EXPECT_EQ(hear(logged(106), 300), Words{"fetch 106-300"});
}

TEST_F(LogReturnTest, ItIsSentWhatIsSettledInPortions) {
  connect();
  EXPECT_EQ(hear(opened(105, 100), 300), Words{"fetch 105-300"});
  EXPECT_EQ(fetched({write(110), write(111), write(113)}, 120),
            (Words{"void 106-109", "write 110", "write 111", "void 112-112", "write 113",
                   "void 114-120"}));
  EXPECT_EQ(hear(logged(113), 310), Words{}) << "one portion at a time";
  EXPECT_EQ(hear(logged(120), 310), Words{"fetch 120-310"});
  EXPECT_EQ(fetched({}, 310), Words{"void 121-310"});
  EXPECT_EQ(hear(logged(310), 310), Words{});
  EXPECT_EQ(return_.has(), SequenceNumber{310});
  return_.go_on({311}, out_);
  EXPECT_EQ(words(), Words{"fetch 310-311"});
}

TEST_F(LogReturnTest, WhatIsFetchedForAConnectionThatIsGoneIsNotSent) {
  connect();
  hear(opened(105, 100), 300);
  return_.disconnected();
  connect();
  EXPECT_EQ(fetched({write(110)}, 120), Words{});
  EXPECT_EQ(hear(opened(105, 100), 300), Words{"fetch 105-300"});
  return_.fetched(Error{ErrorCode::kUnavailable, "not now"}, out_);
  EXPECT_EQ(words(), Words{});
  return_.go_on({300}, out_);
  EXPECT_EQ(words(), Words{"fetch 105-300"}) << "again";
}

TEST_F(LogReturnTest, OneThatGoesOnWhereItEndedIsSentTheRest) {
  connect();
  EXPECT_EQ(hear(opened(200, 198), 300), Words{"fetch 200-300"});
}

TEST_F(LogReturnTest, OneThatLacksWhatItHadAcknowledgedIsNotUsed) {
  connect();
  EXPECT_EQ(hear(opened(99, 99), 300), Words{"drop: corrupt"});
  connect();
  EXPECT_EQ(hear(opened(301, 301), 300), Words{"drop: corrupt"})
      << "nor one that has more than all";
}

// Its numbers cannot be put in order any more while it runs.
TEST_F(LogReturnTest, OneThatCouldNotKeepWhatItWasSentIsToBeRestarted) {
  connect();
  EXPECT_EQ(hear(opened(200, 200, {{{190}, {190}}}), 300), Words{"drop: io"});
}

TEST_F(LogReturnTest, AWordOutOfTurnEndsTheConversation) {
  connect();
  EXPECT_EQ(hear(logged(7), 300), Words{"drop: protocol"});
  connect();
  hear(opened(105, 100), 300);
  EXPECT_EQ(hear(logged(106), 300), Words{"drop: protocol"});
  connect();
  EXPECT_EQ(hear(Refused{kVolume, kEpoch, {ErrorCode::kIo, "no"}}, 300), Words{"drop: io"});
}

}  // namespace
}  // namespace mariner::replication

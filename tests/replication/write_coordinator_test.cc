#include "replication/write_coordinator.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>

namespace mariner::replication {
namespace {

const Error kLost{ErrorCode::kIo, "lost"};

WriteRequest write_of(std::uint64_t blocks) {
  WriteRequest request;
  request.extent = {{0}, {blocks}};
  request.payload = {Payload::allocate(blocks * kBlockBytes), 0, blocks * kBlockBytes};
  return request;
}

template <typename T>
std::vector<T> only(const Actions& actions) {
  std::vector<T> out;
  for (const Action& action : actions) {
    if (const T* found = std::get_if<T>(&action)) out.push_back(*found);
  }
  return out;
}

class Coordinator : public ::testing::Test {
 protected:
  explicit Coordinator(WriteCoordinator::Limits limits = {})
      : coordinator_(
            {VolumeId{1}, Epoch{3}, SequenceNumber{100}, VersionTime{1000}, SequenceNumber{90}},
            limits) {}

  // The actions of one call.
  Actions submit(std::uint64_t token, std::uint64_t blocks = 1) {
    Actions out;
    coordinator_.submit({token}, write_of(blocks), now_, out);
    return out;
  }
  Actions logged(std::uint64_t sequence, const Result<void>& result = {}) {
    Actions out;
    coordinator_.logged({sequence}, result, now_, out);
    return out;
  }
  Actions voided(std::uint64_t sequence, const Result<void>& result = {}) {
    Actions out;
    coordinator_.void_logged({sequence}, {sequence}, result, now_, out);
    return out;
  }
  Actions settle(std::uint64_t token, bool include_waiting = true) {
    Actions out;
    coordinator_.settle({token}, include_waiting, out);
    return out;
  }
  Actions grant(std::uint64_t bytes) {
    Actions out;
    coordinator_.grant(bytes, now_, out);
    return out;
  }
  Actions close() {
    Actions out;
    coordinator_.close(Error{ErrorCode::kUnavailable, "closed"}, out);
    return out;
  }

  VersionTime now_{5000};
  WriteCoordinator coordinator_;
};

TEST_F(Coordinator, StampsAboveWhatWasAndSaysWhatIsSettled) {
  const auto sent = only<SendWrite>(submit(1));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].message.volume, VolumeId{1});
  EXPECT_EQ(sent[0].message.stamp.epoch, Epoch{3});
  EXPECT_EQ(sent[0].message.stamp.sequence, SequenceNumber{101});
  EXPECT_EQ(sent[0].message.stamp.time, VersionTime{5000});
  EXPECT_EQ(sent[0].message.settled, SequenceNumber{100});
  EXPECT_EQ(sent[0].message.frontier, SequenceNumber{90});
}

TEST_F(Coordinator, TimesIncreaseWhateverTheClockDoes) {
  VersionTime last{1000};
  for (const std::uint64_t clock : {5000u, 5000u, 10u, 4999u, 5002u, 5003u, 9000u}) {
    now_ = {clock};
    const auto sent = only<SendWrite>(submit(clock));
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_GT(sent[0].message.stamp.time, last);
    last = sent[0].message.stamp.time;
  }
  EXPECT_EQ(last, VersionTime{9000});
}

TEST_F(Coordinator, NoTimeAtOrBelowTheFloor) {
  coordinator_.raise_floor(VersionTime{7000});
  coordinator_.raise_floor(VersionTime{6000});
  EXPECT_EQ(only<SendWrite>(submit(1))[0].message.stamp.time, VersionTime{7001});
}

// Whatever is answered before something else is sent, to whichever volume, has the lower time.
TEST_F(Coordinator, TimesOfVolumesThatShareAClockIncreaseTogether) {
  WriteCoordinator other(
      {VolumeId{2}, Epoch{3}, SequenceNumber{5}, VersionTime{8000}, SequenceNumber{5}}, {});
  const auto submit_to_other = [&] {
    Actions out;
    other.submit({1}, write_of(1), now_, out);
    return only<SendWrite>(out)[0].message.stamp;
  };
  now_ = {2000};
  submit(1);
  const auto clock = std::make_shared<VersionClock>();
  coordinator_.share_clock(clock);
  other.share_clock(clock);
  EXPECT_EQ(coordinator_.floor(), VersionTime{8000}) << "neither goes back";
  VersionTime last{8000};
  for (std::uint64_t i = 2; i < 6; ++i) {
    now_ = {i % 2 == 0 ? 9000u : 100u};
    const VersionTime here = only<SendWrite>(submit(i))[0].message.stamp.time;
    EXPECT_GT(here, last);
    const replication::Stamp there = submit_to_other();
    EXPECT_GT(there.time, here);
    EXPECT_EQ(there.sequence, SequenceNumber{4 + i}) << "numbers are each volume's own";
    last = there.time;
  }
  coordinator_.raise_floor(VersionTime{20'000});
  EXPECT_EQ(submit_to_other().time, VersionTime{20'001}) << "a moment was opened for all of them";

  other.share_clock(std::make_shared<VersionClock>());
  now_ = {30'000};
  submit(9);
  now_ = {100};
  EXPECT_EQ(submit_to_other().time, VersionTime{20'002}) << "it has one of its own again";
}

TEST_F(Coordinator, MakesAWriteVisibleBeforeItAnswers) {
  submit(1);
  const Actions out = logged(101);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(std::get<Commit>(out[0]).settled, SequenceNumber{101});
  const auto& answer = std::get<Answer>(out[1]);
  EXPECT_EQ(answer.token.value, 1u);
  EXPECT_EQ(answer.result->sequence, SequenceNumber{101});
  EXPECT_EQ(coordinator_.acknowledged(), SequenceNumber{101});
}

TEST_F(Coordinator, CommitsNothingAboveAMissingWrite) {
  for (const std::uint64_t token : {1u, 2u, 3u}) submit(token);
  EXPECT_TRUE(only<Commit>(logged(103)).empty());
  EXPECT_EQ(coordinator_.acknowledged(), SequenceNumber{103});
  EXPECT_EQ(coordinator_.settled(), SequenceNumber{100});
  EXPECT_EQ(only<Commit>(logged(101))[0].settled, SequenceNumber{101});
  EXPECT_EQ(only<Commit>(logged(102))[0].settled, SequenceNumber{103});
}

TEST_F(Coordinator, AFailedWriteIsAnsweredAndVoided) {
  submit(1);
  submit(2);
  const Actions out = logged(101, kLost);
  ASSERT_EQ(only<Answer>(out).size(), 1u);
  EXPECT_FALSE(only<Answer>(out)[0].result);
  const auto lost = only<SendVoid>(out);
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].message.first, SequenceNumber{101});
  EXPECT_EQ(lost[0].message.last, SequenceNumber{101});
  EXPECT_TRUE(only<Commit>(logged(102)).empty());
  EXPECT_EQ(only<Commit>(voided(101))[0].settled, SequenceNumber{102});
}

TEST_F(Coordinator, WritesStopAndWaitersGoOnWhenAVoidFails) {
  submit(1);
  submit(2);
  EXPECT_TRUE(settle(50).empty());
  logged(101, kLost);
  EXPECT_TRUE(only<Settled>(voided(101, kLost)).empty()) << "102 is not answered yet";
  const auto settled = only<Settled>(logged(102));
  ASSERT_EQ(settled.size(), 1u);
  EXPECT_EQ(settled[0].sequence, SequenceNumber{100}) << "what was lost is not settled";
  EXPECT_EQ(coordinator_.settled(), SequenceNumber{100});
  const auto refused = only<Answer>(submit(3));
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_FALSE(refused[0].result);
  EXPECT_EQ(only<Settled>(settle(51)).size(), 1u);
}

TEST_F(Coordinator, WritesWithoutAGrantWaitInOrder) {
  grant(0);
  EXPECT_TRUE(submit(1).empty());
  EXPECT_TRUE(submit(2).empty());
  EXPECT_EQ(coordinator_.waiting(), 2u);
  const auto sent = only<SendWrite>(grant(WriteCoordinator::kUnlimited));
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_LT(sent[0].message.stamp.sequence, sent[1].message.stamp.sequence);
  EXPECT_EQ(only<Answer>(logged(101))[0].token.value, 1u);
}

// Counted since the start, so that what is on its way to storage is never granted twice.
TEST_F(Coordinator, AGrantIsPassedByLessThanOneWrite) {
  grant(3 * kBlockBytes);
  EXPECT_EQ(only<SendWrite>(submit(1, 2)).size(), 1u);
  EXPECT_EQ(only<SendWrite>(submit(2, 2)).size(), 1u) << "there is room for a part of it";
  EXPECT_TRUE(submit(3, 1).empty());
  logged(101);
  EXPECT_TRUE(grant(4 * kBlockBytes).empty());
  EXPECT_EQ(coordinator_.waiting(), 1u);
  EXPECT_EQ(only<SendWrite>(grant(4 * kBlockBytes + 1)).size(), 1u);
}

TEST_F(Coordinator, WhatHasNoPayloadTakesABlockOfTheGrant) {
  WriteRequest zero;
  zero.kind = WriteKind::kZero;
  zero.extent = {{0}, {1000}};
  grant(kBlockBytes);
  Actions out;
  coordinator_.submit({1}, zero, now_, out);
  coordinator_.submit({2}, zero, now_, out);
  EXPECT_EQ(only<SendWrite>(out).size(), 1u);
  EXPECT_EQ(coordinator_.waiting(), 1u);
}

TEST_F(Coordinator, CloseFailsWhatWaitsAndLetsTheRestGoOn) {
  submit(1);
  grant(0);
  submit(2);
  settle(50);
  const Actions out = close();
  ASSERT_EQ(only<Answer>(out).size(), 1u);
  EXPECT_EQ(only<Answer>(out)[0].token.value, 2u);
  EXPECT_EQ(only<Answer>(out)[0].result.error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(only<Answer>(submit(3))[0].result);
  const Actions done = logged(101);
  EXPECT_TRUE(only<Answer>(done)[0].result);
  EXPECT_EQ(only<Settled>(done).size(), 1u);
}

TEST_F(Coordinator, SettleIsImmediateWhenNothingIsUnderWay) {
  const auto settled = only<Settled>(settle(50));
  ASSERT_EQ(settled.size(), 1u);
  EXPECT_EQ(settled[0].sequence, SequenceNumber{100});
}

TEST_F(Coordinator, SettleWaitsForWhatWaitedOnlyIfAsked) {
  grant(0);
  submit(1);
  EXPECT_EQ(only<Settled>(settle(50, false)).size(), 1u);
  EXPECT_TRUE(settle(51, true).empty());
  grant(WriteCoordinator::kUnlimited);
  EXPECT_EQ(only<Settled>(logged(101)).size(), 1u);
}

TEST_F(Coordinator, SettleDoesNotWaitForWhatComesLater) {
  submit(1);
  EXPECT_TRUE(settle(50).empty());
  submit(2);
  EXPECT_EQ(only<Settled>(logged(101)).size(), 1u);
}

TEST_F(Coordinator, TheFrontierNeverGoesBack) {
  submit(1);
  logged(101);
  coordinator_.storage_durable({101});
  coordinator_.storage_durable({95});
  EXPECT_EQ(coordinator_.frontier(), SequenceNumber{101});
}

class Limited : public Coordinator {
 protected:
  Limited() : Coordinator({.writes_in_flight_max = 3, .bytes_in_flight_max = 4 * kBlockBytes}) {}
};

TEST_F(Limited, WritesInFlightUpToTheBound) {
  for (const std::uint64_t token : {1u, 2u, 3u}) EXPECT_EQ(submit(token).size(), 1u);
  EXPECT_TRUE(submit(4).empty());
  EXPECT_EQ(only<SendWrite>(logged(101)).size(), 1u);
}

TEST_F(Limited, AnAnswerInTheMiddleMakesNoRoomForNumbersWithoutEnd) {
  for (const std::uint64_t token : {1u, 2u, 3u}) submit(token);
  submit(4);
  EXPECT_TRUE(only<SendWrite>(logged(102)).empty()) << "the span of numbers in flight is bounded";
  EXPECT_EQ(only<SendWrite>(logged(101)).size(), 1u);
}

TEST_F(Limited, BytesUpToTheBoundExactly) {
  EXPECT_EQ(submit(1, 1).size(), 1u);
  EXPECT_EQ(submit(2, 3).size(), 1u);  // 4 blocks in all
  EXPECT_TRUE(submit(3, 1).empty());
  EXPECT_EQ(only<SendWrite>(logged(101)).size(), 1u);
}

TEST_F(Limited, OneWriteAlwaysFitsAndNobodyOvertakes) {
  EXPECT_EQ(submit(1, 9).size(), 1u);
  EXPECT_TRUE(submit(2, 9).empty());
  EXPECT_TRUE(submit(3, 0).empty()) << "it would fit, and waits its turn";
  const auto sent = only<SendWrite>(logged(101));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].message.write.extent.count.value, 9u);
}

// Any order of answers and failures: each request is answered once, commits only move forward over
// what is durable or void, and settlers hear no sooner than they may.
TEST(CoordinatorModel, AnyOrder) {
  for (unsigned seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return random() % n; };
    WriteCoordinator coordinator(
        {VolumeId{1}, Epoch{1}, SequenceNumber{0}, VersionTime{0}, SequenceNumber{0}},
        {1 + below(6), (1 + below(8)) * kBlockBytes});
    std::set<std::uint64_t> at_logger;
    std::set<std::uint64_t> voids;
    std::set<std::uint64_t> gone;                     // durable or void
    std::map<std::uint64_t, std::uint64_t> settlers;  // token: the highest number it waits for
    std::uint64_t submitted = 0;
    std::uint64_t answered = 0;
    std::uint64_t committed = 0;
    std::uint64_t last_sent = 0;
    VersionTime last_time;
    bool held = false;
    std::uint64_t granted = 0;
    std::uint64_t token = 0;
    const auto carry_out = [&](const Actions& actions) {
      for (const Action& action : actions) {
        if (const auto* send = std::get_if<SendWrite>(&action)) {
          ASSERT_EQ(send->message.stamp.sequence.value, ++last_sent);
          ASSERT_GT(send->message.stamp.time, last_time);
          ASSERT_EQ(send->message.settled.value, committed);
          last_time = send->message.stamp.time;
          at_logger.insert(last_sent);
        } else if (const auto* lost = std::get_if<SendVoid>(&action)) {
          voids.insert(lost->message.first.value);
        } else if (const auto* commit = std::get_if<Commit>(&action)) {
          ASSERT_GT(commit->settled.value, committed);
          for (std::uint64_t s = committed + 1; s <= commit->settled.value; ++s) {
            ASSERT_TRUE(gone.contains(s));
          }
          committed = commit->settled.value;
        } else if (std::get_if<Answer>(&action) != nullptr) {
          ++answered;
        } else if (const auto* settled = std::get_if<Settled>(&action)) {
          ASSERT_GE(settled->sequence.value, settlers.at(settled->token.value));
          settlers.erase(settled->token.value);
        }
      }
    };
    const auto turn = [&](bool no_more) {
      Actions out;
      const VersionTime now{below(3000)};
      switch (below(6)) {
        case 0:
          if (no_more) break;
          ++submitted;
          coordinator.submit({++token}, write_of(below(4)), now, out);
          break;
        case 1:
        case 2: {
          if (at_logger.empty()) break;
          auto it = at_logger.begin();
          std::advance(it, below(at_logger.size()));
          const std::uint64_t sequence = *it;
          at_logger.erase(it);
          const bool fails = below(5) == 0;
          if (!fails) gone.insert(sequence);
          coordinator.logged({sequence}, fails ? Result<void>(kLost) : Result<void>(), now, out);
          break;
        }
        case 3: {
          if (voids.empty()) break;
          const std::uint64_t sequence = *voids.begin();
          voids.erase(voids.begin());
          gone.insert(sequence);
          coordinator.void_logged({sequence}, {sequence}, {}, now, out);
          break;
        }
        case 4:
          if (no_more) break;
          settlers[++token] = coordinator.last_stamped().value;
          coordinator.settle({token}, below(2) == 0, out);
          break;
        default:
          held = !no_more && below(3) == 0;
          coordinator.grant(held ? granted : WriteCoordinator::kUnlimited, now, out);
          granted += below(4) * kBlockBytes;
          break;
      }
      carry_out(out);
    };
    for (int i = 0; i < 80 && !::testing::Test::HasFatalFailure(); ++i) turn(false);
    for (int i = 0; i < 2000 && !::testing::Test::HasFatalFailure(); ++i) turn(true);
    ASSERT_EQ(answered, submitted);
    ASSERT_TRUE(settlers.empty());
    ASSERT_EQ(coordinator.settled(), coordinator.last_stamped());
    ASSERT_EQ(coordinator.in_flight() + coordinator.waiting(), 0u);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace mariner::replication

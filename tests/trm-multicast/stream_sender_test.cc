#include "trm-multicast/stream_sender.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "proto/payload_crc.h"

namespace mariner::trm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Way = StreamSender::Way;

constexpr StreamId kStream{5};
constexpr std::array<ReceiverIndex, 3> kAll{0, 1, 2};
constexpr std::array<ReceiverIndex, 2> kTwo{0, 1};
constexpr std::uint64_t kWindow = 1u << 20;

// Receivers 0 to 2, that get all probes.
class StreamSenderTest : public ::testing::Test {
 protected:
  static StreamSender::Options options() {
    StreamSender::Options options;
    options.window_bytes = kWindow;
    options.body_bytes_max = 8940;
    options.burst_bytes = 4u << 20;
    return options;
  }
  StreamSenderTest() {
    for (const ReceiverIndex i : kAll) sender_.connected(i);
  }

  // Time goes on; everybody who is not in `deaf` reports what was sent so far as here.
  void pass(milliseconds time, ReceiverSet deaf = 0) {
    for (const auto end = now_ + time; now_ < end;) {
      now_ += milliseconds(20);
      sender_.tick(now_);
      send_all();
      for (const ReceiverIndex i : kAll) {
        if ((deaf >> i & 1) == 0) hear(i);
        report(i);
      }
    }
  }
  void send_all() {
    while (const auto batch = sender_.next(now_)) {
      sent_bytes_ += batch->bytes.length;
      if (batch->first.kind == DatagramKind::kProbe) {
        ++probes_;
        largest_ = std::max(largest_, batch->body_bytes);
      } else {
        batches_.push_back(*batch);
      }
    }
  }
  void hear(ReceiverIndex i) {
    reports_[i].bytes = sent_bytes_;
    reports_[i].probes = probes_;
    reports_[i].largest_probe = std::min(largest_, reach_[i]);
  }
  void report(ReceiverIndex i) {
    reports_[i].clock = now_;
    EXPECT_TRUE(sender_.received(i, reports_[i], now_).has_value());
  }
  bool report_through(ReceiverIndex i, Position through) {
    reports_[i].through = through;
    reports_[i].clock = now_;
    return sender_.received(i, reports_[i], now_).has_value();
  }
  void admit_all() {
    pass(milliseconds(600));
    ASSERT_EQ(sender_.admitted(), 7u);
    (void)sender_.take_told();
    (void)sender_.take_changes();
  }
  std::optional<Reference> offer(std::size_t bytes, ReceiverSet to = 7) {
    return sender_.offer(to, {Payload::zeroed(bytes), 0, bytes});
  }
  Way way(ReceiverIndex i, const std::optional<Reference>& reference) {
    return sender_.way(i, reference.value());
  }

  StreamSender sender_{OpenStream{.stream = kStream, .window_bytes = kWindow}, options()};
  std::chrono::nanoseconds now_ = seconds(7);
  std::vector<StreamSender::Batch> batches_;
  std::uint64_t sent_bytes_ = 0;
  std::uint64_t probes_ = 0;
  std::uint32_t largest_ = 0;
  std::array<std::uint32_t, 3> reach_{UINT32_MAX, UINT32_MAX, UINT32_MAX};
  std::array<Report, 3> reports_{};
};

TEST_F(StreamSenderTest, NothingGoesByMulticastBeforeProbesHaveArrived) {
  EXPECT_EQ(offer(8192), std::nullopt);
  pass(milliseconds(600), 4);
  EXPECT_EQ(sender_.admitted(), 3u);
  pass(milliseconds(600));
  EXPECT_EQ(sender_.admitted(), 7u);
  int admitted = 0;
  for (const auto& told : sender_.take_told()) {
    admitted += std::holds_alternative<Admit>(told.message) ? 1 : 0;
  }
  EXPECT_EQ(admitted, 3);
  EXPECT_EQ(sender_.take_changes().size(), 3u);
}

TEST_F(StreamSenderTest, PayloadIsCutIntoDatagramsAndThenReferredTo) {
  admit_all();
  const auto reference = offer(20'000);
  ASSERT_TRUE(reference.has_value());
  EXPECT_EQ(reference->length, 20'000u);
  const Payload zeros = Payload::zeroed(20'000);
  EXPECT_EQ(reference->crc, payload_crc32c({zeros, 0, 20'000}));
  EXPECT_EQ(way(0, reference), Way::kWait);
  send_all();
  EXPECT_EQ(way(0, reference), Way::kReference);
  ASSERT_EQ(batches_.size(), 1u);
  EXPECT_EQ(batches_[0].body_bytes, 6667u);  // of 8940 it would be three, too
  EXPECT_EQ(batches_[0].bytes.length, 20'000u);
  EXPECT_EQ(batches_[0].first.start, reference->start);
}

TEST_F(StreamSenderTest, DatagramsMayBeAsLargeAsUdpTakes) {
  StreamSender::Options large = options();
  large.body_bytes_max = kDatagramBytesMax - kDatagramOverheadBytes;
  StreamSender sender(OpenStream{.stream = kStream, .window_bytes = kWindow}, large);
  for (const ReceiverIndex i : kTwo) sender.connected(i);
  Report report{.stream = kStream, .largest_probe = large.body_bytes_max};
  while (sender.admitted() != 3) {
    now_ += milliseconds(50);
    sender.tick(now_);
    while (const auto batch = sender.next(now_)) {
      ++report.probes;
      report.bytes += batch->bytes.length;
    }
    for (const ReceiverIndex i : kTwo) ASSERT_TRUE(sender.received(i, report, now_));
  }
  ASSERT_TRUE(sender.offer(3, {Payload::zeroed(100'000), 0, 100'000}).has_value());
  EXPECT_EQ(sender.next(now_)->bytes.length, 50'000u);
  EXPECT_EQ(sender.next(now_)->bytes.length, 50'000u);
  EXPECT_FALSE(sender.next(now_).has_value());
}

TEST_F(StreamSenderTest, LargePayloadsGoInSeveralBatches) {
  admit_all();
  ASSERT_TRUE(offer(300'000).has_value());
  send_all();
  std::uint32_t at = 0;
  for (const auto& batch : batches_) {
    EXPECT_EQ(batch.first.offset, at);
    EXPECT_LE(batch.bytes.length, 65'507u);
    at += static_cast<std::uint32_t>(batch.bytes.length);
  }
  EXPECT_EQ(at, 300'000u);
}

TEST_F(StreamSenderTest, WhatDoesNotPayIsCarried) {
  admit_all();
  EXPECT_EQ(offer(8192, 1), std::nullopt);         // for one alone
  EXPECT_EQ(offer(4095), std::nullopt);            // small
  EXPECT_EQ(offer(kWindow + 4096), std::nullopt);  // beyond the window
  EXPECT_TRUE(offer(4096, 6).has_value());
}

TEST_F(StreamSenderTest, WhoDoesNotTakePartIsSentAFrameWithAllInIt) {
  pass(milliseconds(600), 4);
  ASSERT_EQ(sender_.admitted(), 3u);
  const auto reference = offer(8192);
  ASSERT_TRUE(reference.has_value());
  send_all();
  EXPECT_EQ(way(0, reference), Way::kReference);
  EXPECT_EQ(way(2, reference), Way::kCarry);
}

TEST_F(StreamSenderTest, PayloadsAreKeptUntilEverybodyHasThem) {
  admit_all();
  const auto first = offer(8192);
  const auto second = offer(8192);
  send_all();
  EXPECT_EQ(sender_.kept_bytes(), 2 * 8192u);
  EXPECT_TRUE(report_through(0, second->end()));
  EXPECT_TRUE(report_through(1, second->end()));
  EXPECT_EQ(sender_.kept_bytes(), 2 * 8192u);
  EXPECT_TRUE(report_through(2, first->end()));
  EXPECT_EQ(sender_.kept_bytes(), 8192u);
  EXPECT_TRUE(report_through(2, second->end()));
  EXPECT_EQ(sender_.kept_bytes(), 0u);
}

TEST_F(StreamSenderTest, WhatIsMissingIsSentAgainToWhoAsks) {
  admit_all();
  const auto reference = offer(8192);
  send_all();
  const Part part{reference->start, 100, 2000};
  ASSERT_TRUE(sender_.received(1, Missing{kStream, {part}}, now_).has_value());
  const auto told = sender_.take_told();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].receiver, 1);
  const auto& repair = std::get<Repair>(told[0].message);
  EXPECT_EQ(repair.part, part);
  EXPECT_EQ(repair.bytes.length, 2000u);
  EXPECT_EQ(repair.bytes.offset, 100u);
  EXPECT_EQ(sender_.repaired_bytes(), 2000u);
}

TEST_F(StreamSenderTest, NonsenseIsRefused) {
  admit_all();
  const auto reference = offer(8192);
  EXPECT_FALSE(report_through(0, reference->end()));  // it was not sent yet
  send_all();
  const auto ask = [&](ReceiverIndex i, const Part& part) {
    return sender_.received(i, Missing{kStream, {part}}, now_).has_value();
  };
  EXPECT_FALSE(ask(0, {{reference->start.value + 1}, 0, 1}));
  EXPECT_FALSE(ask(0, {reference->start, 8192, 1}));
  EXPECT_FALSE(ask(0, {reference->start, 8000, 193}));
  EXPECT_FALSE(ask(0, {reference->start, 0, 0}));
  EXPECT_FALSE(ask(0, {reference->start, UINT32_MAX, UINT32_MAX}));
  EXPECT_TRUE(report_through(0, reference->end()));
  EXPECT_FALSE(ask(0, {reference->start, 0, 1}));  // it has had it
  EXPECT_TRUE(ask(1, {reference->start, 0, 1}));
}

TEST_F(StreamSenderTest, NoMoreThanAWindowIsOnTheWay) {
  admit_all();
  std::vector<Reference> sent;
  for (int i = 0; i < 10; ++i) sent.push_back(offer(256 * 1024).value());
  send_all();
  std::uint64_t bytes = 0;
  for (const auto& batch : batches_) bytes += batch.bytes.length;
  EXPECT_EQ(bytes, kWindow);
  EXPECT_EQ(sender_.next_at(now_), std::nullopt);
  for (const ReceiverIndex i : kTwo) EXPECT_TRUE(report_through(i, sent[1].end()));
  send_all();
  EXPECT_EQ(way(0, sent[4]), Way::kWait);  // the third has none yet
  EXPECT_TRUE(report_through(2, sent[0].end()));
  send_all();
  EXPECT_EQ(way(0, sent[4]), Way::kReference);
  EXPECT_EQ(way(0, sent[5]), Way::kWait);
}

TEST_F(StreamSenderTest, WhoNeverSaysWhatItHasKeepsNoMoreThanAWindow) {
  admit_all();
  std::optional<Reference> last;
  for (int i = 0; i < 2000; ++i) {
    now_ += milliseconds(20);
    sender_.tick(now_);
    for (int k = 0; k < 4; ++k) {
      if (const auto reference = offer(16 * 1024)) last = reference;
    }
    send_all();
    for (const ReceiverIndex each : kTwo) {
      if (last && way(each, *last) == Way::kReference) reports_[each].through = last->end();
      hear(each);
      report(each);
    }
    hear(2);
    report(2);  // it hears all, and has nothing through
    EXPECT_LE(sender_.kept_bytes(), kWindow + sender_.queued_bytes());
  }
  EXPECT_EQ(sender_.admitted() & 4u, 0u);
  EXPECT_GT(last->start.value, 50 * kWindow);
  // It may still ask for what it was sent.
  EXPECT_GT(sender_.kept_bytes(), kWindow / 2);
  reports_[2].through = last->end();
  report(2);
  EXPECT_EQ(sender_.kept_bytes(), 0u);
}

TEST_F(StreamSenderTest, WhoIsGoneBeforeItsAdmissionWasToldWasNotAdmitted) {
  for (int i = 0; i < 50 && (sender_.admitted() & 1u) == 0; ++i) pass(milliseconds(20));
  ASSERT_EQ(sender_.admitted() & 1u, 1u);
  sender_.disconnected(0);
  sender_.connected(0);
  for (const auto& change : sender_.take_changes()) EXPECT_NE(change.receiver, 0);
  for (const auto& told : sender_.take_told()) EXPECT_NE(told.receiver, 0);
}

TEST_F(StreamSenderTest, WhoIsStuckIsLeftOutAndTheOthersGoOn) {
  admit_all();
  std::vector<Reference> all;
  for (int i = 0; i < 8; ++i) all.push_back(offer(256 * 1024).value());
  for (int i = 0; i < 50; ++i) {
    now_ += milliseconds(20);
    sender_.tick(now_);
    send_all();
    for (const ReceiverIndex each : kTwo) {
      Position through{};
      for (const Reference& one : all) {
        if (way(each, one) == Way::kReference) through = std::max(through, one.end());
      }
      if (through.value > 0) reports_[each].through = through;
      hear(each);
      report(each);
    }
    hear(2);
    report(2);
  }
  EXPECT_EQ(sender_.admitted(), 3u);
  EXPECT_EQ(way(0, all.back()), Way::kCarry);  // it has had it
  EXPECT_EQ(way(2, all.front()), Way::kReference);
  EXPECT_EQ(way(2, all.back()), Way::kCarry);
  EXPECT_EQ(sender_.queued_bytes(), 0u);
  const auto changes = sender_.take_changes();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].receiver, 2);
  EXPECT_NE(changes[0].reason.find("no progress"), std::string::npos);
  // What it was sent it may still ask for.
  EXPECT_TRUE(sender_.received(2, Missing{kStream, {{all[0].start, 0, 1}}}, now_).has_value());
}

TEST_F(StreamSenderTest, WhoHearsNothingIsLeftOutAndComesBack) {
  admit_all();
  ASSERT_TRUE(offer(8192, 3).has_value());
  send_all();
  for (const ReceiverIndex i : kTwo) EXPECT_TRUE(report_through(i, {1u << 30}));
  pass(milliseconds(800), 4);
  EXPECT_EQ(sender_.admitted(), 3u);
  pass(milliseconds(800));
  EXPECT_EQ(sender_.admitted(), 7u);
}

TEST_F(StreamSenderTest, WhenAllAreLeftOutEverythingIsCarried) {
  admit_all();
  const auto before = offer(256 * 1024);
  send_all();
  std::vector<Reference> waiting;
  for (int i = 0; i < 6; ++i) waiting.push_back(offer(256 * 1024).value());
  pass(milliseconds(1000), 7);
  EXPECT_EQ(sender_.admitted(), 0u);
  EXPECT_EQ(offer(8192), std::nullopt);
  for (const ReceiverIndex i : kAll) {
    EXPECT_EQ(way(i, before), Way::kReference);
    EXPECT_EQ(way(i, waiting.back()), Way::kCarry);
  }
  EXPECT_EQ(sender_.queued_bytes(), 0u);
}

TEST_F(StreamSenderTest, WhoIsGoneIsForgotten) {
  admit_all();
  const auto reference = offer(8192);
  send_all();
  for (const ReceiverIndex i : kTwo) EXPECT_TRUE(report_through(i, reference->end()));
  EXPECT_EQ(sender_.kept_bytes(), 8192u);
  sender_.disconnected(2);
  EXPECT_EQ(sender_.kept_bytes(), 0u);
  EXPECT_EQ(sender_.admitted(), 3u);
  sender_.connected(2);
  reports_[2] = {};
  pass(milliseconds(800));
  EXPECT_EQ(sender_.admitted(), 7u);
}

TEST_F(StreamSenderTest, DatagramsAreAsLargeAsEverybodyGets) {
  reach_[1] = 1440;
  admit_all();
  ASSERT_TRUE(offer(20'000).has_value());
  send_all();
  ASSERT_EQ(batches_.size(), 1u);
  EXPECT_EQ(batches_[0].body_bytes, 1429u);  // 14 of them
  sender_.disconnected(1);
  ASSERT_TRUE(offer(20'000).has_value());
  send_all();
  EXPECT_EQ(batches_.back().body_bytes, 6667u);  // three
}

TEST_F(StreamSenderTest, WhoCannotListenIsNotAdmitted) {
  ASSERT_TRUE(sender_.received(1, CannotListen{kStream, "it has no such interface"}, now_));
  const auto changes = sender_.take_changes();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].why, Dismissal::kCannotListen);
  EXPECT_NE(changes[0].reason.find("no such interface"), std::string::npos);
  pass(milliseconds(600), 2);
  EXPECT_EQ(sender_.admitted(), 5u);
}

TEST_F(StreamSenderTest, WhoCannotListenIsAskedAgainLaterAndLater) {
  const auto asked_again = [&] {
    std::string said;
    for (const auto& told : sender_.take_told()) {
      if (told.receiver != 1) continue;
      said += std::holds_alternative<CloseStream>(told.message)  ? "close "
              : std::holds_alternative<OpenStream>(told.message) ? "open "
                                                                 : "? ";
    }
    return said;
  };
  const Membership::Options times{};
  auto wait = times.again_min;
  for (int round = 0; round < 8; ++round) {
    ASSERT_TRUE(sender_.received(1, CannotListen{kStream, "no such interface"}, now_));
    EXPECT_EQ(sender_.take_changes().size(), round == 0 ? 1u : 0u) << "it is said once";
    now_ += wait - milliseconds(1);
    sender_.tick(now_);
    EXPECT_EQ(asked_again(), "") << round;
    now_ += milliseconds(1);
    sender_.tick(now_);
    EXPECT_EQ(asked_again(), "close open ") << round;
    sender_.tick(now_);
    EXPECT_EQ(asked_again(), "") << "it has not answered yet";
    wait = std::min(wait * 2, times.again_max);
  }
  // Now it can.
  pass(milliseconds(600));
  EXPECT_EQ(sender_.admitted(), 7u);
}

TEST_F(StreamSenderTest, AnotherReasonIsSaid) {
  ASSERT_TRUE(sender_.received(1, CannotListen{kStream, "no such interface"}, now_));
  ASSERT_TRUE(sender_.received(1, CannotListen{kStream, "no memory"}, now_));
  EXPECT_EQ(sender_.take_changes().size(), 2u);
}

// A stream of 1 MB/s at most, with two receivers, that always has something to send.
class PacedStreamTest : public StreamSenderTest {
 protected:
  static StreamSender::Options slow() {
    StreamSender::Options slow = options();
    slow.burst_bytes = 16 * 1024;
    slow.rate.bytes_per_second_max = 1e6;
    return slow;
  }
  PacedStreamTest() {
    for (const ReceiverIndex i : kTwo) paced_.connected(i);
    Report report{};
    for (int i = 0; i < 60; ++i) {
      now_ += milliseconds(20);
      paced_.tick(now_);
      while (const auto batch = paced_.next(now_)) {
        ++report.probes;
        report.bytes += batch->bytes.length;
      }
      report.clock = now_;
      for (const ReceiverIndex each : kTwo) {
        EXPECT_TRUE(paced_.received(each, report, now_).has_value());
      }
    }
    EXPECT_EQ(paced_.admitted(), 3u);
    for (int i = 0; i < 100; ++i) (void)paced_.offer(3, {Payload::zeroed(8192), 0, 8192});
  }
  // How long 400 kB take, while `share` of each byte's time goes to connections.
  double seconds_of_400_kb(double share) {
    std::uint64_t bytes = 0;
    const auto began = now_;
    while (bytes < 400'000) {
      while (const auto batch = paced_.next(now_)) bytes += batch->bytes.length;
      const auto at = paced_.next_at(now_);
      EXPECT_TRUE(at.has_value() && *at > now_);
      if (!at) break;
      paced_.share(static_cast<std::uint64_t>(share * 1e6 *
                                              std::chrono::duration<double>(*at - now_).count()));
      now_ = *at;
    }
    return std::chrono::duration<double>(now_ - began).count();
  }

  StreamSender paced_{OpenStream{.stream = kStream, .window_bytes = kWindow}, slow()};
};

TEST_F(PacedStreamTest, IsPaced) { EXPECT_NEAR(seconds_of_400_kb(0), 0.39, 0.03); }

TEST_F(PacedStreamTest, LeavesConnectionsWhatTheyTakeOfTheWay) {
  EXPECT_NEAR(seconds_of_400_kb(0.5), 0.78, 0.06);
}

TEST_F(PacedStreamTest, KeepsAQuarterHoweverMuchConnectionsTake) {
  EXPECT_NEAR(seconds_of_400_kb(10), 1.56, 0.12);
}

}  // namespace
}  // namespace mariner::trm

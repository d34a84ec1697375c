#include "trm-multicast/stream_receiver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "proto/payload_crc.h"

namespace mariner::trm {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Taken = StreamReceiver::Taken;

constexpr StreamId kStream{5};
constexpr std::uint32_t kBody = 1440;
constexpr std::uint64_t kWindow = 1u << 20;

class StreamReceiverTest : public ::testing::Test {
 protected:
  StreamReceiverTest() : receiver_(open_, {}) { EXPECT_TRUE(receiver_.admit({0}).has_value()); }

  Payload random_payload(std::size_t bytes) {
    Payload payload = Payload::allocate(bytes);
    for (std::byte& b : payload.bytes()) b = static_cast<std::byte>(random_());
    return payload;
  }
  static Reference reference(Position start, const Payload& payload) {
    return {kStream, start, static_cast<std::uint32_t>(payload.size()),
            payload_crc32c({payload, 0, payload.size()})};
  }
  // The datagram of the payload's bytes from `offset` on.
  std::vector<std::byte> datagram(Position start, const Payload& payload, std::uint32_t offset,
                                  std::uint32_t bytes = kBody) {
    const auto length = static_cast<std::uint32_t>(payload.size());
    bytes = std::min(bytes, length - offset);
    std::vector<std::byte> out(bytes + kDatagramOverheadBytes);
    sealer_.seal({kStream, DatagramKind::kPayload, start, length, offset},
                 payload.bytes().subspan(offset, bytes), out);
    return out;
  }
  Taken give(const std::vector<std::byte>& datagram) {
    return receiver_.datagram(parse(datagram).value(), now_);
  }
  void give_all(Position start, const Payload& payload) {
    for (std::uint32_t at = 0; at < payload.size(); at += kBody) {
      EXPECT_EQ(give(datagram(start, payload, at)), Taken::kNew);
    }
  }
  bool refer(const Reference& reference) { return receiver_.refer(reference, now_).has_value(); }
  Result<void> repair(const Payload& payload, const Part& part) {
    return receiver_.repair({kStream, part, {payload, part.offset, part.length}});
  }
  // It is whole, and has the same bytes.
  bool is_here(const Reference& reference, const Payload& payload) {
    const Result<Payload> got = receiver_.complete(reference);
    return got && *got && std::ranges::equal(got->bytes(), payload.bytes());
  }

  std::mt19937_64 random_{1};
  const OpenStream open_{.stream = kStream,
                         .group = "239.1.1.1",
                         .port = 1,
                         .key = StreamKey::generate().value(),
                         .encrypted = true,
                         .window_bytes = kWindow};
  Sealer sealer_{open_.key, true};
  StreamReceiver receiver_;
  std::chrono::nanoseconds now_ = seconds(9);
};

TEST_F(StreamReceiverTest, PayloadIsWholeWhenItsDatagramsAreHere) {
  const Payload payload = random_payload(8192);
  const Reference r = reference({100}, payload);
  give_all({100}, payload);
  ASSERT_TRUE(refer(r));
  EXPECT_TRUE(is_here(r, payload));
  EXPECT_EQ(receiver_.deadline(), std::nullopt);
  EXPECT_EQ(receiver_.report(now_).through, Position{100 + 8192});
  EXPECT_EQ(receiver_.report(now_).bytes, 8192u);
  EXPECT_EQ(receiver_.repaired_bytes(), 0u);
}

TEST_F(StreamReceiverTest, BlocksHaveTheirCrcsForTheLog) {
  const Payload payload = random_payload(3 * kBlockBytes);
  const Reference r = reference({0}, payload);
  give_all({0}, payload);
  ASSERT_TRUE(refer(r));
  const Payload got = receiver_.complete(r).value();
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(got.block_crc(i), payload_crc32c({payload, i * kBlockBytes, kBlockBytes}));
  }
}

TEST_F(StreamReceiverTest, WhatIsMissingIsAskedForOnceWhenPatienceIsOver) {
  const Payload payload = random_payload(8192);
  const Reference r = reference({0}, payload);
  give(datagram({0}, payload, 0));
  give(datagram({0}, payload, 3 * kBody));
  ASSERT_TRUE(refer(r));
  EXPECT_EQ(receiver_.missing(now_), std::nullopt);
  ASSERT_TRUE(receiver_.deadline().has_value());
  now_ = *receiver_.deadline();
  const auto missing = receiver_.missing(now_);
  ASSERT_TRUE(missing.has_value());
  const std::vector<Part> parts{{{0}, kBody, 2 * kBody}, {{0}, 4 * kBody, 8192 - 4 * kBody}};
  EXPECT_EQ(missing->parts, parts);
  EXPECT_EQ(receiver_.missing(now_ + seconds(5)), std::nullopt);
  EXPECT_FALSE(is_here(r, payload));
  for (const Part& part : parts) EXPECT_TRUE(repair(payload, part).has_value());
  EXPECT_TRUE(is_here(r, payload));
  EXPECT_EQ(receiver_.repaired_bytes(), 8192u - 2 * kBody);
}

TEST_F(StreamReceiverTest, WhatIsLateMakesItMorePatient) {
  const auto before = receiver_.patience();
  const Payload payload = random_payload(4096);
  ASSERT_TRUE(refer(reference({0}, payload)));
  now_ += before;
  ASSERT_TRUE(receiver_.missing(now_).has_value());
  give_all({0}, payload);
  EXPECT_GE(receiver_.patience(), 2 * before);
  EXPECT_LE(receiver_.patience(), StreamReceiver::Options{}.patience_max);
  EXPECT_TRUE(is_here(reference({0}, payload), payload));
  // The repair comes too late, and is of no account.
  EXPECT_TRUE(repair(payload, {{0}, 0, 4096}).has_value());
  // It is forgotten again when things go well.
  Position start{4096};
  for (int i = 0; i < 3000; ++i, start.value += 4096) {
    give_all(start, payload);
    ASSERT_TRUE(refer(reference(start, payload)));
    ASSERT_TRUE(is_here(reference(start, payload), payload));
  }
  EXPECT_LT(receiver_.patience(), 2 * StreamReceiver::Options{}.patience_min);
}

TEST_F(StreamReceiverTest, DuplicatesChangeNothing) {
  const Payload payload = random_payload(8192);
  const auto first = datagram({0}, payload, 0);
  EXPECT_EQ(give(first), Taken::kNew);
  EXPECT_EQ(give(first), Taken::kDuplicate);
  give(datagram({0}, payload, kBody));
  EXPECT_EQ(give(first), Taken::kDuplicate);
  EXPECT_EQ(receiver_.report(now_).bytes, 2 * kBody);
}

TEST_F(StreamReceiverTest, OverlapsKeepWhatIsHere) {
  const Payload payload = random_payload(8192);
  const Payload other = random_payload(8192);
  give(datagram({0}, payload, 1000, 1000));
  // The same positions with other bytes: nobody sends that; what is here stays.
  give(datagram({0}, other, 500, 1000));
  ASSERT_TRUE(refer(reference({0}, payload)));
  now_ += seconds(1);
  const auto missing = receiver_.missing(now_);
  ASSERT_TRUE(missing.has_value());
  EXPECT_EQ(missing->parts, (std::vector<Part>{{{0}, 0, 500}, {{0}, 2000, 6192}}));
  for (const Part& part : missing->parts) EXPECT_TRUE(repair(payload, part).has_value());
  const Result<Payload> got = receiver_.complete(reference({0}, payload));
  ASSERT_FALSE(got.has_value());  // 500 bytes are not as the reference says
  EXPECT_EQ(got.error().code, ErrorCode::kCorrupt);
}

TEST_F(StreamReceiverTest, WhoHasNoKeyChangesNothing) {
  const Payload payload = random_payload(8192);
  auto forged = datagram({0}, payload, 0);
  forged.back() ^= std::byte{1};
  EXPECT_EQ(give(forged), Taken::kUnsealed);
  EXPECT_EQ(receiver_.report(now_).unsealed, 1u);
  EXPECT_EQ(receiver_.report(now_).bytes, 0u);
  // Of a payload that has begun.
  give(datagram({0}, payload, kBody));
  EXPECT_EQ(give(forged), Taken::kUnsealed);
  give(datagram({0}, payload, 0));
  for (std::uint32_t at = 2 * kBody; at < 8192; at += kBody) give(datagram({0}, payload, at));
  ASSERT_TRUE(refer(reference({0}, payload)));
  EXPECT_TRUE(is_here(reference({0}, payload), payload));
}

TEST_F(StreamReceiverTest, TwoFramesMayReferToOnePayload) {
  const Payload payload = random_payload(8192);
  const Reference r = reference({0}, payload);
  give_all({0}, payload);
  ASSERT_TRUE(refer(r));
  EXPECT_TRUE(is_here(r, payload));
  ASSERT_TRUE(refer(r));
  EXPECT_TRUE(is_here(r, payload));
}

TEST_F(StreamReceiverTest, WhatFramesWaitForOutlivesAnAdmission) {
  const Payload payload = random_payload(8192);
  const Reference r = reference({0}, payload);
  give_all({0}, payload);
  ASSERT_TRUE(refer(r));
  ASSERT_TRUE(refer(r));  // a second frame, that waits behind another stream's
  EXPECT_TRUE(is_here(r, payload));
  ASSERT_TRUE(receiver_.admit({8192}).has_value());
  EXPECT_TRUE(is_here(r, payload));
}

TEST_F(StreamReceiverTest, AdmissionsDoNotGoBackNorPastWhatIsMissing) {
  const Payload payload = random_payload(4096);
  ASSERT_TRUE(refer(reference({8192}, payload)));
  EXPECT_FALSE(receiver_.admit({16384}).has_value());
  give_all({8192}, payload);
  EXPECT_TRUE(is_here(reference({8192}, payload), payload));
  EXPECT_FALSE(receiver_.admit({4096}).has_value());
  EXPECT_TRUE(receiver_.admit({16384}).has_value());
}

TEST_F(StreamReceiverTest, ReferencesDoNotGoBack) {
  const Payload payload = random_payload(4096);
  ASSERT_TRUE(refer(reference({8192}, payload)));
  EXPECT_FALSE(refer(reference({0}, payload)));
  EXPECT_FALSE(refer({kStream, {8192}, 8192, 0}));  // another length
  EXPECT_FALSE(refer({kStream, {8193}, 4096, 0}));  // within the one before
}

TEST_F(StreamReceiverTest, WhatIsNotForThisReceiverIsForgottenWhenSomethingLaterIs) {
  const Payload payload = random_payload(64 * 1024);
  Position start{0};
  for (int i = 0; i < 100; ++i, start.value += 64 * 1024) {  // three times the room there is
    for (std::uint32_t at = 0; at < payload.size(); at += kBody) give(datagram(start, payload, at));
  }
  give_all(start, payload);
  ASSERT_TRUE(refer(reference(start, payload)));
  EXPECT_TRUE(is_here(reference(start, payload), payload));
  EXPECT_EQ(give(datagram({0}, payload, 0)), Taken::kOutside);
}

TEST_F(StreamReceiverTest, MemoryIsBoundedAndWhatGaveWayIsAskedFor) {
  const std::uint64_t before = Payload::total_bytes();
  const Payload payload = random_payload(256 * 1024);
  for (std::uint64_t i = 0; i < 40; ++i) {
    give(datagram({i * payload.size()}, payload, 0));
    EXPECT_LE(Payload::total_bytes() - before, 2 * kWindow + 2 * payload.size());
  }
  ASSERT_TRUE(refer(reference({0}, payload)));
  now_ += seconds(1);
  const auto missing = receiver_.missing(now_);
  ASSERT_TRUE(missing.has_value());
  EXPECT_EQ(missing->parts.front(), (Part{{0}, 0, 256 * 1024}));
}

TEST_F(StreamReceiverTest, MoreThanTheWindowIsNotReferredTo) {
  const Payload payload = random_payload(512 * 1024);
  int taken = 0;
  for (std::uint64_t i = 0; i < 10; ++i) {
    if (refer(reference({i * payload.size()}, payload))) ++taken;
  }
  EXPECT_EQ(taken, 4);
}

TEST_F(StreamReceiverTest, SmallPayloadsCountAsWhatTheyTake) {
  std::uint64_t taken = 0;
  while (taken < 10 * kWindow && refer({kStream, {taken}, 1, 0})) ++taken;
  EXPECT_EQ(taken, 2 * kWindow / 4096);
}

TEST_F(StreamReceiverTest, WhatDoesNotFitIntoOneMessageIsAskedForInSeveral) {
  const Payload payload = random_payload(512 * 1024);
  constexpr std::uint32_t kSmall = 64;
  std::uint32_t lost = 0;
  for (std::uint32_t at = 0; at < payload.size(); at += kSmall) {
    if (at / kSmall % 2 == 0) {
      give(datagram({0}, payload, at, kSmall));
    } else {
      ++lost;
    }
  }
  ASSERT_TRUE(refer(reference({0}, payload)));
  now_ += seconds(1);
  std::uint32_t asked = 0;
  while (const auto missing = receiver_.missing(now_)) {
    EXPECT_LE(missing->parts.size(), 2048u);
    for (const Part& part : missing->parts) {
      EXPECT_TRUE(repair(payload, part).has_value());
      ++asked;
    }
  }
  EXPECT_EQ(asked, lost);
  EXPECT_TRUE(is_here(reference({0}, payload), payload));
}

TEST_F(StreamReceiverTest, RepairsThatNobodyAskedForAreRefused) {
  const Payload payload = random_payload(8192);
  ASSERT_TRUE(refer(reference({0}, payload)));
  EXPECT_FALSE(repair(payload, {{0}, 0, 8192}).has_value());
  now_ += seconds(1);
  ASSERT_TRUE(receiver_.missing(now_).has_value());
  EXPECT_FALSE(receiver_.repair({kStream, {{0}, 4096, 8192}, {payload, 0, 8192}}).has_value());
  EXPECT_TRUE(repair(payload, {{0}, 0, 8192}).has_value());
}

TEST_F(StreamReceiverTest, ProbesAreCountedOnceEach) {
  const auto probe = [&](std::uint64_t start, std::uint32_t bytes) {
    const std::vector<std::byte> body(bytes);
    std::vector<std::byte> out(bytes + kDatagramOverheadBytes);
    sealer_.seal({kStream, DatagramKind::kProbe, {start}, bytes, 0}, body, out);
    return out;
  };
  EXPECT_EQ(give(probe(0, 100)), Taken::kProbe);
  EXPECT_EQ(give(probe(0, 100)), Taken::kDuplicate);
  EXPECT_EQ(give(probe(100, 1440)), Taken::kProbe);
  EXPECT_EQ(give(probe(1540, 200)), Taken::kProbe);
  EXPECT_EQ(receiver_.report(now_).probes, 3u);
  EXPECT_EQ(receiver_.report(now_).largest_probe, 1440u);
  now_ += seconds(2);
  EXPECT_EQ(receiver_.report(now_).largest_probe, 0u);
  auto forged = probe(1740, 200);
  forged.back() ^= std::byte{1};
  EXPECT_EQ(give(forged), Taken::kUnsealed);
  EXPECT_EQ(receiver_.report(now_).probes, 3u);
}

TEST_F(StreamReceiverTest, WhoIsNotAdmittedTakesProbesAlone) {
  receiver_.dismiss();
  const Payload payload = random_payload(4096);
  EXPECT_EQ(give(datagram({0}, payload, 0)), Taken::kOutside);
  ASSERT_TRUE(receiver_.admit({4096}).has_value());
  EXPECT_EQ(give(datagram({4096}, payload, 0)), Taken::kNew);
}

TEST_F(StreamReceiverTest, WhoIsDismissedStillGetsWhatWasReferredTo) {
  const Payload payload = random_payload(8192);
  const Reference r = reference({0}, payload);
  give(datagram({0}, payload, 0));
  ASSERT_TRUE(refer(r));
  receiver_.dismiss();
  EXPECT_FALSE(receiver_.admit({100'000}).has_value());
  now_ += seconds(1);
  const auto missing = receiver_.missing(now_);
  ASSERT_TRUE(missing.has_value());
  for (const Part& part : missing->parts) EXPECT_TRUE(repair(payload, part).has_value());
  EXPECT_TRUE(is_here(r, payload));
  EXPECT_TRUE(receiver_.admit({100'000}).has_value());
}

TEST_F(StreamReceiverTest, WhatWasSentBeforeADismissalMayStillBeReferredTo) {
  const Payload payload = random_payload(8192);
  give_all({0}, payload);
  receiver_.dismiss();
  ASSERT_TRUE(refer(reference({0}, payload)));
  EXPECT_TRUE(is_here(reference({0}, payload), payload));
  EXPECT_EQ(give(datagram({8192}, payload, 0)), Taken::kOutside);
}

TEST_F(StreamReceiverTest, WhatNobodyRefersToIsForgottenInTheEnd) {
  const std::uint64_t before = Payload::total_bytes();
  {
    const Payload payload = random_payload(64 * 1024);
    give_all({0}, payload);
  }
  receiver_.tidy(now_ + seconds(1));
  EXPECT_GT(Payload::total_bytes(), before);
  receiver_.tidy(now_ + seconds(6));
  EXPECT_EQ(Payload::total_bytes(), before);
}

}  // namespace
}  // namespace mariner::trm

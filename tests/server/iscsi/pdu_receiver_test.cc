#include "server/iscsi/pdu_receiver.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "proto/crc32c.h"
#include "tests/server/iscsi/iscsi_testing.h"

namespace mariner::iscsi {
namespace {

class TestSink final : public PduSink {
 public:
  bool wants_pdu() const override { return pdus.size() < wanted; }
  bool on_basic_header(const Bhs&) override { return admits_basic_headers; }
  bool on_header(const Bhs& bhs, std::span<const std::byte> ahs, Placement& place) override {
    ahs_bytes = ahs.size();
    const std::uint32_t bytes = parse_common(bhs).data_bytes;
    place.length = std::min<std::size_t>(bytes, keep_bytes_max);
    if (place.length > 0 && !reuse) payload = Payload::allocate(offset + place.length);
    if (place.length > 0) place.payload = payload;
    place.offset = place.length > 0 ? offset : 0;
    if (!reuse) payload = place.payload;
    return !refuse;
  }
  bool on_pdu(bool good) override {
    const auto bytes = payload.bytes();
    pdus.emplace_back(bytes.begin() + static_cast<std::ptrdiff_t>(std::min(offset, bytes.size())),
                      bytes.end());
    all_good = all_good && good;
    return true;
  }
  void on_header_digest_error() override { header_error = true; }

  std::size_t keep_bytes_max = SIZE_MAX;
  std::size_t offset = 0;         // of the data in its payload
  std::size_t wanted = SIZE_MAX;  // PDUs in all
  bool reuse = false;             // the payload that is there, and no new one
  bool refuse = false;
  bool admits_basic_headers = true;
  bool header_error = false;
  bool all_good = true;
  std::size_t ahs_bytes = 0;
  Payload payload;
  std::vector<Bytes> pdus;
};

class PduReceiverTest : public testing::Test {
 protected:
  // Feeds as recvmsg would. Returns the number of calls.
  std::size_t feed(std::span<const std::byte> bytes, std::size_t chunk = SIZE_MAX) {
    std::size_t calls = 0;
    while (!bytes.empty() && !receiver.stopped()) {
      std::array<iovec, 2> places{};
      const std::size_t count = receiver.prepare(places);
      std::size_t given = 0;
      for (std::size_t i = 0; i < count && given < chunk && !bytes.empty(); ++i) {
        const std::size_t n = std::min({bytes.size(), places[i].iov_len, chunk - given});
        std::memcpy(places[i].iov_base, bytes.data(), n);
        bytes = bytes.subspan(n);
        given += n;
      }
      receiver.received(given, sink);
      ++calls;
    }
    return calls;
  }
  static InitiatorPdu pdu_of(std::size_t bytes) { return nop_out_pdu(1, 2, pattern(bytes)); }

  PduReceiver receiver;
  TestSink sink;
};

TEST_F(PduReceiverTest, AHeaderMayBeRefusedBeforeItsAdditionalSegmentsCome) {
  sink.admits_basic_headers = false;
  InitiatorPdu pdu = pdu_of(8);
  pdu.ahs = pattern(16);
  const Bytes wire = pdu.wire();
  feed(std::span(wire).first(kBhsBytes));
  EXPECT_TRUE(receiver.stopped());
  EXPECT_TRUE(sink.pdus.empty());
}

TEST_F(PduReceiverTest, AnyCutGivesTheSamePdus) {
  for (const bool digest : {false, true}) {
    Bytes wire;
    const std::size_t sizes[] = {0, 1, 3, 4, 5, 511, 20000, 2};
    for (const std::size_t size : sizes) {
      const Bytes one = pdu_of(size).wire(digest, digest);
      wire.insert(wire.end(), one.begin(), one.end());
    }
    for (const std::size_t chunk : {1u, 2u, 13u, 48u, 52u, 1000u, 70000u}) {
      receiver = PduReceiver();
      receiver.set_digests(digest, digest);
      sink = TestSink();
      feed(wire, chunk);
      ASSERT_EQ(sink.pdus.size(), std::size(sizes)) << "chunks of " << chunk;
      for (std::size_t i = 0; i < std::size(sizes); ++i) {
        EXPECT_EQ(sink.pdus[i], pattern(sizes[i]));
      }
      EXPECT_TRUE(sink.all_good);
      EXPECT_TRUE(receiver.between_pdus());
    }
  }
}

TEST_F(PduReceiverTest, SmallPdusComeInOneCall) {
  Bytes wire;
  for (int i = 0; i < 10; ++i) {
    const Bytes one = pdu_of(4096).wire();
    wire.insert(wire.end(), one.begin(), one.end());
  }
  EXPECT_EQ(feed(wire), 1u);
  EXPECT_EQ(sink.pdus.size(), 10u);
}

TEST_F(PduReceiverTest, LargeDataIsReceivedInPlaceAfterALargeSegment) {
  feed(pdu_of(65536).wire());
  const Bytes wire = pdu_of(65536).wire();
  // A header, then the data at its place with the next header behind it.
  feed(std::span(wire).first(kBhsBytes));
  std::array<iovec, 2> places{};
  ASSERT_EQ(receiver.prepare(places), 2u);
  EXPECT_EQ(places[0].iov_base, sink.payload.data());
  EXPECT_EQ(places[0].iov_len, 65536u);
  EXPECT_EQ(places[1].iov_len, kBhsBytes);
}

TEST_F(PduReceiverTest, PdusWithoutDataEndTheNarrowReading) {
  feed(pdu_of(65536).wire());
  std::array<iovec, 2> places{};
  ASSERT_EQ(receiver.prepare(places), 1u);
  EXPECT_EQ(places[0].iov_len, kBhsBytes);
  for (int i = 0; i < 4; ++i) feed(pdu_of(0).wire());
  ASSERT_EQ(receiver.prepare(places), 1u);
  EXPECT_GT(places[0].iov_len, 32768u);
}

TEST_F(PduReceiverTest, DataWithoutAPlaceIsDropped) {
  sink.keep_bytes_max = 100;
  feed(pdu_of(50000).wire(), 777);
  ASSERT_EQ(sink.pdus.size(), 1u);
  const Bytes whole = pattern(50000);
  EXPECT_EQ(sink.pdus[0], Bytes(whole.begin(), whole.begin() + 100));
}

TEST_F(PduReceiverTest, DroppedDataCountsForTheDigest) {
  receiver.set_digests(true, true);
  sink.keep_bytes_max = 0;
  Bytes wire = pdu_of(3000).wire(true, true);
  feed(wire);
  EXPECT_TRUE(sink.all_good);
  wire[kBhsBytes + kDigestBytes + 2000] ^= std::byte{1};
  feed(wire);
  EXPECT_FALSE(sink.all_good);
}

// "0:? 1:ok": each whole block of the payload; without a known CRC, with the right one, a wrong
// one.
std::string crcs_text(const Payload& payload) {
  std::string text;
  for (std::size_t i = 0; i < payload.size() / kBlockBytes; ++i) {
    const auto known = payload.block_crc(i);
    const std::uint32_t right = crc32c(payload.bytes().subspan(i * kBlockBytes, kBlockBytes));
    text += (text.empty() ? "" : " ") + std::to_string(i) + ":";
    text += !known ? "?" : *known == right ? "ok" : "wrong";
  }
  return text;
}

TEST_F(PduReceiverTest, BlocksThatASegmentFillsKeepTheirCrcs) {
  struct Case {
    std::size_t offset;
    std::size_t bytes;
    std::size_t kept;
    const char* crcs;
  };
  constexpr std::size_t kAll = SIZE_MAX;
  const Case cases[] = {
      {0, 4096, kAll, "0:ok"},
      {0, 12288, kAll, "0:ok 1:ok 2:ok"},
      {0, 4095, kAll, ""},
      {0, 8191, kAll, "0:ok"},
      {4096, 8192, kAll, "0:? 1:ok 2:ok"},
      {512, 4096, kAll, "0:?"},
      {512, 3584, kAll, "0:?"},
      {512, 3584 + 8192 + 7, kAll, "0:? 1:ok 2:ok"},
      {5000, 20000, kAll, "0:? 1:? 2:ok 3:ok 4:ok 5:ok"},
      // The rest of the segment has no place, but counts for the digest.
      {0, 12288, 8192, "0:ok 1:ok"},
      {0, 12288, 8000, "0:ok"},
      {4096, 65000, 5000, "0:? 1:ok"},
  };
  for (const std::size_t chunk : {1u, 1461u, 4096u, 70000u}) {
    receiver = PduReceiver();
    receiver.set_digests(true, true);
    for (const Case& c : cases) {
      sink = TestSink();
      sink.offset = c.offset;
      sink.keep_bytes_max = c.kept;
      Bytes wire = pdu_of(c.bytes).wire(true, true);
      feed(wire, chunk);
      EXPECT_TRUE(sink.all_good);
      EXPECT_EQ(crcs_text(sink.payload), c.crcs)
          << c.bytes << " bytes at " << c.offset << " in chunks of " << chunk;
      wire[kBhsBytes + kDigestBytes + c.bytes - 1] ^= std::byte{0x10};
      feed(wire, chunk);
      EXPECT_FALSE(sink.all_good);
    }
  }
}

// One payload, segment by segment: "BYTES@OFFSET", a damaged one with "!".
TEST_F(PduReceiverTest, BlocksHaveTheCrcsOfTheLastGoodSegmentThatFilledThem) {
  struct Segment {
    std::size_t offset;
    std::size_t bytes;
    bool good;
    const char* crcs;  // behind it
  };
  const Segment segments[] = {
      {0, 16384, false, "0:? 1:? 2:? 3:?"},
      {0, 2048, true, "0:? 1:? 2:? 3:?"},
      {2048, 6144, true, "0:? 1:ok 2:? 3:?"},
      {8192, 8192, true, "0:? 1:ok 2:ok 3:ok"},
      {0, 8192, true, "0:ok 1:ok 2:ok 3:ok"},
      // What is written over in parts, or by damaged data, is not known any more.
      {4000, 200, true, "0:? 1:? 2:ok 3:ok"},
      {0, 8192, true, "0:ok 1:ok 2:ok 3:ok"},
      {4096, 4096, false, "0:ok 1:? 2:ok 3:ok"},
      {4095, 8193, false, "0:? 1:? 2:? 3:ok"},
      {0, 16384, true, "0:ok 1:ok 2:ok 3:ok"},
  };
  for (const std::size_t chunk : {1u, 1461u, 70000u}) {
    receiver = PduReceiver();
    receiver.set_digests(false, true);
    sink = TestSink();
    sink.reuse = true;
    sink.payload = Payload::zeroed(16384);
    unsigned seed = 0;
    for (const Segment& segment : segments) {
      sink.offset = segment.offset;
      Bytes wire = nop_out_pdu(1, 2, pattern(segment.bytes, ++seed)).wire(false, true);
      if (!segment.good) wire[kBhsBytes + segment.bytes / 2] ^= std::byte{1};
      sink.all_good = true;
      feed(wire, chunk);
      EXPECT_EQ(sink.all_good, segment.good);
      EXPECT_EQ(crcs_text(sink.payload), segment.crcs)
          << segment.bytes << " bytes at " << segment.offset << " in chunks of " << chunk;
    }
  }
}

TEST_F(PduReceiverTest, WhatTheSinkDoesNotWantIsHeldBack) {
  Bytes wire;
  for (std::size_t i = 1; i <= 4; ++i) {
    const Bytes one = pdu_of(i * 10).wire();
    wire.insert(wire.end(), one.begin(), one.end());
  }
  // The last one comes in part.
  sink.wanted = 2;
  feed(std::span(wire).first(wire.size() - 20));
  EXPECT_EQ(sink.pdus.size(), 2u);
  ASSERT_TRUE(receiver.holds_back());
  std::array<iovec, 2> places{};
  EXPECT_EQ(receiver.prepare(places), 0u) << "nothing more is read";
  sink.wanted = 3;
  receiver.go_on(sink);
  EXPECT_EQ(sink.pdus.size(), 3u);
  ASSERT_TRUE(receiver.holds_back()) << "a header is here, unwanted";
  sink.wanted = 4;
  receiver.go_on(sink);
  EXPECT_FALSE(receiver.holds_back());
  feed(std::span(wire).last(20));
  ASSERT_EQ(sink.pdus.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(sink.pdus[i], pattern((i + 1) * 10));
  EXPECT_FALSE(receiver.holds_back()) << "there is nothing";
}

TEST_F(PduReceiverTest, AFlippedBitAnywhereIsSeen) {
  receiver.set_digests(false, true);
  const Bytes good = pdu_of(2 * kBlockBytes + 30).wire(false, true);
  for (std::size_t at = kBhsBytes; at < good.size(); at += 97) {
    sink = TestSink();
    sink.offset = kBlockBytes - 10;
    Bytes wire = good;
    wire[at] ^= std::byte{4};
    feed(wire);
    EXPECT_FALSE(sink.all_good) << at;
  }
}

TEST_F(PduReceiverTest, WithoutDigestsNoCrcIsKnown) {
  feed(pdu_of(8192).wire());
  EXPECT_EQ(crcs_text(sink.payload), "0:? 1:?");
}

TEST_F(PduReceiverTest, AWrongHeaderDigestStops) {
  receiver.set_digests(true, false);
  Bytes wire = pdu_of(0).wire(true, false);
  wire[1] ^= std::byte{1};
  feed(wire);
  EXPECT_TRUE(sink.header_error);
  EXPECT_TRUE(receiver.stopped());
  EXPECT_TRUE(sink.pdus.empty());
}

TEST_F(PduReceiverTest, ARefusedHeaderStops) {
  sink.refuse = true;
  feed(pdu_of(100).wire());
  EXPECT_TRUE(receiver.stopped());
  std::array<iovec, 2> places{};
  EXPECT_EQ(receiver.prepare(places), 0u);
}

TEST_F(PduReceiverTest, AdditionalHeadersAreHandedOn) {
  InitiatorPdu pdu = pdu_of(5);
  pdu.ahs = pattern(kAhsBytesMax);
  feed(pdu.wire(), 100);
  EXPECT_EQ(sink.ahs_bytes, kAhsBytesMax);
  EXPECT_EQ(sink.pdus.at(0), pattern(5));
}

TEST(PduReceiverBuffer, AnIdleReceiverKeepsNone) {
  PduReceiver first;
  PduReceiver second;
  TestSink sink;
  std::array<iovec, 2> places{};
  const Bytes wire = nop_out_pdu(1, kReservedTag).wire();
  const auto feed = [&](PduReceiver& receiver, std::size_t from, std::size_t bytes) {
    EXPECT_EQ(receiver.prepare(places), 1u);
    std::memcpy(places[0].iov_base, wire.data() + from, bytes);
    void* const at = places[0].iov_base;
    receiver.received(bytes, sink);
    return at;
  };
  void* const buffer = feed(first, 0, wire.size());
  EXPECT_EQ(feed(second, 0, 20), buffer) << "the first has given it back";
  EXPECT_NE(feed(first, 0, wire.size()), buffer) << "a part of a PDU is in it";
  feed(second, 20, wire.size() - 20);
  EXPECT_EQ(sink.pdus.size(), 3u);
}

}  // namespace
}  // namespace mariner::iscsi

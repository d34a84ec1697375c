#include "server/iscsi/pdu_receiver.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/server/iscsi/iscsi_testing.h"

namespace mariner::iscsi {
namespace {

class TestSink final : public PduSink {
 public:
  bool on_basic_header(const Bhs&) override { return admits_basic_headers; }
  bool on_header(const Bhs& bhs, std::span<const std::byte> ahs, Placement& place) override {
    ahs_bytes = ahs.size();
    const std::uint32_t bytes = parse_common(bhs).data_bytes;
    place.length = std::min<std::size_t>(bytes, keep_bytes_max);
    if (place.length > 0) place.payload = Payload::allocate(place.length);
    payload = place.payload;
    return !refuse;
  }
  bool on_pdu(bool good) override {
    const auto bytes = payload.bytes();
    pdus.emplace_back(bytes.begin(), bytes.end());
    all_good = all_good && good;
    return true;
  }
  void on_header_digest_error() override { header_error = true; }

  std::size_t keep_bytes_max = SIZE_MAX;
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

}  // namespace
}  // namespace mariner::iscsi

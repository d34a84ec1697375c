#include "server/iscsi/pdu_sender.h"

#include <gtest/gtest.h>

#include "proto/crc32c.h"
#include "tests/server/iscsi/iscsi_testing.h"

namespace mariner::iscsi {
namespace {

class PduSenderTest : public testing::Test {
 protected:
  // Drains as sendmsg would that takes at most `chunk` bytes at a time.
  Bytes drain(std::size_t chunk = SIZE_MAX) {
    Bytes stream;
    std::array<iovec, 3> places{};
    while (!sender.empty()) {
      const std::size_t count = sender.pending(places);
      std::size_t taken = 0;
      for (std::size_t i = 0; i < count && taken < chunk; ++i) {
        const auto* const from = static_cast<const std::byte*>(places[i].iov_base);
        const std::size_t n = std::min(places[i].iov_len, chunk - taken);
        stream.insert(stream.end(), from, from + n);
        taken += n;
      }
      sender.sent(taken);
    }
    return stream;
  }
  void send(std::size_t bytes) {
    sender.send(pack(NopIn{.itt = 1}), StatSn::kAdvance,
                {.payload = Payload::copy_of(pattern(bytes)), .offset = 0, .length = bytes});
  }

  CommandWindow window{10, 4};
  PduSender sender{window};
};

TEST_F(PduSenderTest, StampsNumbersAndLength) {
  sender.set_next_stat_sn(7);
  sender.send(pack(NopIn{.ttt = 3}), StatSn::kTell);
  send(5);
  const auto pdus = parse_target_stream(drain(), false, false);
  ASSERT_EQ(pdus.size(), 2u);
  EXPECT_EQ(pdus[0].stat_sn(), 7u);
  EXPECT_EQ(pdus[1].stat_sn(), 7u);
  EXPECT_EQ(pdus[1].exp_cmd_sn(), 10u);
  EXPECT_EQ(pdus[1].max_cmd_sn(), 13u);
  EXPECT_EQ(pdus[1].data, pattern(5));
}

TEST_F(PduSenderTest, AnyCutGivesTheSameStreamWithDigests) {
  const auto queue = [&] {
    sender.set_next_stat_sn(0);
    for (const std::size_t size : {0u, 1u, 4u, 5u, 4096u}) send(size);
  };
  for (const bool digest : {false, true}) {
    sender.set_digests(digest, digest);
    queue();
    const Bytes whole = drain();
    EXPECT_EQ(parse_target_stream(whole, digest, digest).size(), 5u);
    for (const std::size_t chunk : {1u, 3u, 49u, 53u, 5000u}) {
      queue();
      EXPECT_EQ(drain(chunk), whole) << "chunks of " << chunk;
    }
  }
}

TEST_F(PduSenderTest, DigestsOfBlocksWithKnownCrcsAreRight) {
  sender.set_digests(false, true);
  Payload data = Payload::copy_of(pattern(6 * kBlockBytes));
  const auto bytes = data.bytes();
  for (const std::size_t i : {0u, 1u, 3u, 5u}) {
    data.set_block_crc(i, crc32c(bytes.subspan(i * kBlockBytes, kBlockBytes)));
  }
  for (const std::size_t offset : {0u, 1u, 512u, 4096u, 8191u, 12288u}) {
    for (const std::size_t length : {0u, 1u, 4096u, 5000u, 8192u, 12288u}) {
      sender.send(pack(NopIn{}), StatSn::kAdvance,
                  {.payload = data, .offset = offset, .length = length});
      const auto part = bytes.subspan(offset, length);
      EXPECT_EQ(parse_target_stream(drain(), false, true).at(0).data,
                Bytes(part.begin(), part.end()));
    }
  }
}

// What was damaged in memory since it was received is not vouched for.
TEST_F(PduSenderTest, KnownCrcsAreNotComputedAgain) {
  sender.set_digests(false, true);
  Payload data = Payload::copy_of(pattern(2 * kBlockBytes));
  data.set_block_crc(1, 12345);
  sender.send(pack(NopIn{}), StatSn::kAdvance, {.payload = data, .offset = 0, .length = 4096});
  EXPECT_NO_THROW(static_cast<void>(parse_target_stream(drain(), false, true)));
  sender.send(pack(NopIn{}), StatSn::kAdvance, {.payload = data, .offset = 0, .length = 8192});
  EXPECT_THROW(static_cast<void>(parse_target_stream(drain(), false, true)), std::runtime_error);
}

TEST_F(PduSenderTest, DataIsSentFromWhereItLies) {
  const Payload data = Payload::copy_of(pattern(4096));
  sender.send(pack(NopIn{}), StatSn::kAdvance, {.payload = data, .offset = 100, .length = 1000});
  std::array<iovec, 4> places{};
  ASSERT_EQ(sender.pending(places), 2u);
  EXPECT_EQ(places[1].iov_base, data.data() + 100);
  EXPECT_EQ(places[1].iov_len, 1000u);
  drain();
}

TEST_F(PduSenderTest, CountsWhatItHoldsAndLetsGoOfIt) {
  const std::uint64_t before = Payload::total_bytes();
  send(4096);
  send(100);
  EXPECT_EQ(sender.queued_pdus(), 2u);
  EXPECT_EQ(sender.queued_bytes(), 4196u);
  drain(10);
  EXPECT_EQ(sender.queued_pdus(), 0u);
  EXPECT_EQ(sender.queued_bytes(), 0u);
  EXPECT_EQ(Payload::total_bytes(), before);
}

TEST(SliceCursorTest, WalksOverSlicesAndSkipsEmptyOnes) {
  const Payload data = Payload::copy_of(pattern(100));
  const PayloadSlice slices[] = {{.payload = data, .offset = 0, .length = 10},
                                 {.payload = data, .offset = 0, .length = 0},
                                 {.payload = data, .offset = 50, .length = 20}};
  SliceCursor cursor(slices);
  EXPECT_EQ(cursor.take(6).length, 6u);
  EXPECT_EQ(cursor.take(6).length, 4u);
  const PayloadSlice last = cursor.take(100);
  EXPECT_EQ(last.offset, 50u);
  EXPECT_EQ(last.length, 20u);
}

}  // namespace
}  // namespace mariner::iscsi

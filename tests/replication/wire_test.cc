#include "replication/wire.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "proto/replication.pb.h"

namespace mariner::replication {
namespace {

constexpr VolumeId kVolume{7};
constexpr Epoch kEpoch{3};

WriteMessage data_of(std::uint64_t blocks) {
  WriteMessage message;
  message.volume = kVolume;
  message.stamp = {kEpoch, {41}, {1'700'000'000'000'000'000}};
  message.settled = {40};
  message.frontier = {30};
  message.write.extent = {{1000}, {blocks}};
  message.write.payload = {Payload::allocate(blocks * kBlockBytes), 0, blocks * kBlockBytes};
  return message;
}

Result<Envelope> there_and_back(const Envelope& envelope) {
  return decode(encode(envelope), payload_of(envelope).payload);
}

template <typename T>
T back(T message) {
  Envelope envelope{9, kVolume, {}};
  if constexpr (std::is_constructible_v<FromCoordinator, T>) {
    envelope.message = FromCoordinator(std::move(message));
  } else {
    envelope.message = ToCoordinator(std::move(message));
  }
  const Result<Envelope> decoded = there_and_back(envelope);
  EXPECT_TRUE(decoded.has_value()) << decoded.error().message;
  EXPECT_EQ(decoded->channel, 9u);
  EXPECT_EQ(decoded->volume, kVolume);
  if constexpr (std::is_constructible_v<FromCoordinator, T>) {
    return std::get<T>(std::get<FromCoordinator>(decoded->message));
  } else {
    return std::get<T>(std::get<ToCoordinator>(decoded->message));
  }
}

TEST(Wire, EveryMessageComesAsItWasSent) {
  EXPECT_EQ(back(OpenLog{kVolume, kEpoch}).epoch, kEpoch);
  EXPECT_EQ(back(OpenStorage{kVolume, kEpoch}).epoch, kEpoch);
  EXPECT_EQ(back(Resume{kVolume, kEpoch, {5}}).settled, SequenceNumber{5});
  EXPECT_FALSE(back(Resume{kVolume, kEpoch, {5}}).start_over);
  EXPECT_TRUE(back(Resume{kVolume, kEpoch, {5}, true}).start_over);
  const VoidMessage lost = back(VoidMessage{kVolume, kEpoch, {5}, {9}});
  EXPECT_EQ(lost.first, SequenceNumber{5});
  EXPECT_EQ(lost.last, SequenceNumber{9});
  const auto frontier = back(FrontierMessage{kVolume, kEpoch, {5}, {7}});
  EXPECT_EQ(frontier.frontier, SequenceNumber{5});
  EXPECT_EQ(frontier.in_an_image, SequenceNumber{7});
  EXPECT_EQ(back(RaiseFloor{kVolume, kEpoch, {77}}).time, VersionTime{77});
  EXPECT_EQ(back(CommitMessage{kVolume, kEpoch, {5}}).settled, SequenceNumber{5});
  back(CloseChannel{});
  const LogOpened opened =
      back(LogOpened{kVolume, kEpoch, {50}, {{{10}, {12}}, {{20}, {20}}}, {99}, {8}});
  EXPECT_EQ(opened.last, SequenceNumber{50});
  EXPECT_EQ(opened.holes, (std::vector<SequenceRange>{{{10}, {12}}, {{20}, {20}}}));
  EXPECT_EQ(opened.floor, VersionTime{99});
  EXPECT_EQ(opened.frontier, SequenceNumber{8});
  EXPECT_EQ(back(Logged{kVolume, kEpoch, {5}}).through, SequenceNumber{5});
  const LogFailed failed = back(LogFailed{kVolume, kEpoch, {5}, {ErrorCode::kNoSpace, "full"}});
  EXPECT_EQ(failed.sequence, SequenceNumber{5});
  EXPECT_EQ(failed.error.code, ErrorCode::kNoSpace);
  EXPECT_EQ(failed.error.message, "full");
  EXPECT_EQ(back(FloorRaised{kVolume, kEpoch, {77}}).time, VersionTime{77});
  EXPECT_EQ(back(RoomWanted{kVolume, kEpoch}).epoch, kEpoch);
  const StorageOpened storage = back(StorageOpened{kVolume, kEpoch, {5}, {4}});
  EXPECT_EQ(storage.committed, SequenceNumber{5});
  EXPECT_EQ(storage.durable, SequenceNumber{4});
  EXPECT_EQ(back(CaughtUp{kVolume, kEpoch, {5}}).through, SequenceNumber{5});
  const BeginAnew anew = back(BeginAnew{kVolume, kEpoch, {5}, {6}});
  EXPECT_EQ(anew.at, SequenceNumber{5});
  EXPECT_EQ(anew.time, VersionTime{6});
  EXPECT_EQ(back(LogLost{kVolume, kEpoch, {5}}).since, SequenceNumber{5});
  const StorageProgress progress = back(StorageProgress{kVolume, kEpoch, {5}, {4}, 12345});
  EXPECT_EQ(progress.resumed, SequenceNumber{5});
  EXPECT_EQ(progress.durable, SequenceNumber{4});
  EXPECT_EQ(progress.granted, 12345u);
  EXPECT_EQ(progress.catch_up, CatchUpProgress{});
  EXPECT_EQ(back(StorageProgress{kVolume, kEpoch, {5}, {4}, 0, {9, 8, 7}}).catch_up,
            (CatchUpProgress{9, 8, 7}));
  const Error broken{ErrorCode::kIo, "the disk is broken"};
  EXPECT_FALSE(storage.failed);
  EXPECT_FALSE(progress.failed);
  EXPECT_EQ(back(StorageOpened{kVolume, kEpoch, {5}, {4}, broken}).failed->message, broken.message);
  const StorageProgress failing = back(StorageProgress{kVolume, kEpoch, {5}, {4}, 0, {}, broken});
  EXPECT_EQ(failing.failed->code, ErrorCode::kIo);
  EXPECT_EQ(failing.failed->message, broken.message);
  const Refused refused = back(Refused{kVolume, {8}, {ErrorCode::kStaleEpoch, "over"}});
  EXPECT_EQ(refused.promised, Epoch{8});
  EXPECT_EQ(refused.error.code, ErrorCode::kStaleEpoch);
}

TEST(Wire, AWriteTravelsWithItsPayload) {
  const WriteMessage write = back(data_of(3));
  EXPECT_EQ(write.stamp.sequence, SequenceNumber{41});
  EXPECT_EQ(write.stamp.epoch, kEpoch);
  EXPECT_EQ(write.stamp.time, VersionTime{1'700'000'000'000'000'000});
  EXPECT_EQ(write.settled, SequenceNumber{40});
  EXPECT_EQ(write.frontier, SequenceNumber{30});
  EXPECT_EQ(write.write.kind, WriteKind::kData);
  EXPECT_EQ(write.write.extent, (BlockRange{{1000}, {3}}));
  EXPECT_EQ(write.write.payload.length, 3 * kBlockBytes);

  // One that is sent again is older than what is settled.
  WriteMessage again = data_of(1);
  again.settled = {1u << 20};
  again.frontier = {};
  EXPECT_EQ(back(again).settled, SequenceNumber{1u << 20});
  EXPECT_EQ(back(again).frontier, SequenceNumber{});

  WriteMessage zero = data_of(1);
  zero.write.kind = WriteKind::kZero;
  zero.write.extent.count = {1u << 20};
  zero.write.has_tail = true;
  EXPECT_TRUE(back(zero).write.has_tail);
  WriteMessage rollback = data_of(1);
  rollback.write = {};
  rollback.write.kind = WriteKind::kRollback;
  rollback.write.target = {12};
  rollback.write.target_time = {1234};
  EXPECT_EQ(back(rollback).write.target, SequenceNumber{12});
  EXPECT_EQ(back(rollback).write.target_time, VersionTime{1234});
}

TEST(Wire, TheBytesOfAWriteStay) {
  // A change here is a change of the protocol: nodes of both kinds would not understand each other.
  const std::string header = encode({9, kVolume, FromCoordinator(data_of(3))});
  std::string hex;
  for (const char c : header) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex += kDigits[static_cast<unsigned char>(c) >> 4];
    hex += kDigits[static_cast<unsigned char>(c) & 15];
  }
  EXPECT_EQ(hex,
            "0809100732160803102919"
            "00002a36fe9c9717"
            "2002"
            "2816"
            "48e807"
            "5003");
}

class WireWrites : public ::testing::Test {
 protected:
  // Whether it is refused.
  static bool refused(const WriteMessage& write, std::uint64_t blocks) {
    const std::string header = encode({1, kVolume, FromCoordinator(write)});
    const Result<Envelope> decoded =
        decode(header, blocks == 0 ? Payload{} : Payload::allocate(blocks * kBlockBytes));
    return !decoded.has_value() && decoded.error().code == ErrorCode::kProtocol;
  }
};

TEST_F(WireWrites, WhosePayloadDoesNotFitAreRefused) {
  EXPECT_FALSE(refused(data_of(3), 3));
  EXPECT_TRUE(refused(data_of(3), 2));
  EXPECT_TRUE(refused(data_of(3), 4));
  WriteMessage write = data_of(3);
  write.write.extent.count = {0};
  EXPECT_TRUE(refused(write, 0));
  write.write.extent = {{UINT64_MAX}, {3}};
  EXPECT_TRUE(refused(write, 3));
  write = data_of(3);
  write.write.has_head = true;
  EXPECT_TRUE(refused(write, 3));
  write = data_of(1);
  write.write.kind = WriteKind::kRepeated;
  write.write.extent.count = {100};
  EXPECT_FALSE(refused(write, 1));
  write.write.has_head = true;
  EXPECT_TRUE(refused(write, 1));
  EXPECT_FALSE(refused(write, 2));
  write.write.extent.count = {1};
  EXPECT_TRUE(refused(write, 2)) << "nothing is left between the edges";
  write = data_of(1);
  write.write.kind = WriteKind::kZero;
  EXPECT_TRUE(refused(write, 1));
  EXPECT_FALSE(refused(write, 0));
  write = data_of(1);
  write.write.kind = WriteKind::kRollback;
  write.write.extent = {};
  write.write.target = {41};
  EXPECT_TRUE(refused(write, 0)) << "a rollback to itself";
}

// A log would not take them, nor an index.
TEST_F(WireWrites, BeyondWhatARecordOrAVolumeHasAreRefused) {
  constexpr std::uint64_t kMost = kWirePayloadBytesMax / kBlockBytes;
  EXPECT_FALSE(refused(data_of(kMost), kMost));
  EXPECT_TRUE(refused(data_of(kMost + 1), kMost + 1));
  WriteMessage zeros = data_of(1);
  zeros.write.kind = WriteKind::kZero;
  zeros.write.extent = {{0}, {kWireBlocksMax}};
  EXPECT_FALSE(refused(zeros, 0));
  zeros.write.extent = {{1}, {kWireBlocksMax}};
  EXPECT_TRUE(refused(zeros, 0));
  zeros.write.extent = {{kWireBlocksMax}, {1}};
  EXPECT_TRUE(refused(zeros, 0));
  WriteMessage applied = data_of(1);
  applied.frontier = applied.stamp.sequence;
  EXPECT_TRUE(refused(applied, 1)) << "before it was written: a start would leave it out";
}

TEST(Wire, NonsenseIsRefused) {
  const auto refused = [](const wire::NodeMessage& message) {
    return !decode(message.SerializeAsString(), {}).has_value();
  };
  EXPECT_FALSE(decode("\xff\xff\xff\xff", {}).has_value());
  EXPECT_FALSE(decode("", {}).has_value());
  wire::NodeMessage message;
  message.set_volume(7);
  EXPECT_TRUE(refused(message)) << "it says nothing";
  message.mutable_open_log()->set_epoch(1);
  EXPECT_FALSE(refused(message));
  message.set_volume(0);
  EXPECT_TRUE(refused(message));
  message.set_volume(7);
  EXPECT_FALSE(decode(message.SerializeAsString(), Payload::allocate(kBlockBytes)).has_value())
      << "a payload that belongs to nothing";
  message.mutable_write()->set_kind(static_cast<wire::Write::Kind>(17));
  EXPECT_TRUE(refused(message));
  message.mutable_log_failed()->mutable_failure()->set_code(200);
  EXPECT_TRUE(refused(message));
  message.mutable_log_opened()->set_last(20);
  const auto add = [&](std::uint64_t first, std::uint64_t last) {
    wire::Range& hole = *message.mutable_log_opened()->add_holes();
    hole.set_first(first);
    hole.set_last(last);
  };
  add(5, 6);
  add(7, 7);
  EXPECT_FALSE(refused(message));
  add(7, 8);
  EXPECT_TRUE(refused(message)) << "they overlap";
  message.mutable_log_opened()->clear_holes();
  add(19, 21);
  EXPECT_TRUE(refused(message)) << "behind the end";
  message.mutable_log_opened()->clear_holes();
  message.mutable_log_opened()->set_last(100'000);
  for (std::uint64_t i = 1; i <= kWireHolesMax + 1; ++i) add(2 * i, 2 * i);
  EXPECT_TRUE(refused(message)) << "too many";
}

// What follows the last number is the first one again.
TEST(Wire, NumbersThatNobodyCountsToAreRefused) {
  const auto refused = [](const auto& message) {
    Envelope envelope{1, kVolume, {}};
    if constexpr (std::is_constructible_v<FromCoordinator, decltype(message)>) {
      envelope.message = FromCoordinator(message);
    } else {
      envelope.message = ToCoordinator(message);
    }
    const Result<Envelope> decoded = there_and_back(envelope);
    return !decoded.has_value() && decoded.error().code == ErrorCode::kProtocol;
  };
  constexpr SequenceNumber kMost{kWireNumberMax};
  constexpr SequenceNumber kAll{UINT64_MAX};
  EXPECT_FALSE(refused(VoidMessage{kVolume, kEpoch, {5}, kMost}));
  EXPECT_TRUE(refused(VoidMessage{kVolume, kEpoch, {5}, kMost.next()}));
  EXPECT_TRUE(refused(VoidMessage{kVolume, {UINT64_MAX}, {5}, {6}}));
  EXPECT_TRUE(refused(OpenLog{kVolume, kEpoch, kAll}));
  EXPECT_TRUE(refused(OpenStorage{kVolume, kEpoch, kAll}));
  EXPECT_TRUE(refused(CommitMessage{kVolume, kEpoch, kAll}));
  EXPECT_TRUE(refused(RaiseFloor{kVolume, kEpoch, {UINT64_MAX}}));
  EXPECT_TRUE(refused(LogOpened{kVolume, kEpoch, kAll, {}, {99}, kAll}));
  EXPECT_TRUE(refused(LogOpened{kVolume, kEpoch, {5}, {}, {UINT64_MAX}, {5}}));
  EXPECT_TRUE(refused(StorageOpened{kVolume, kEpoch, kAll, {}}));
  EXPECT_TRUE(refused(Refused{kVolume, {UINT64_MAX}, {ErrorCode::kStaleEpoch, "over"}}));
  EXPECT_FALSE(refused(StorageProgress{kVolume, kEpoch, {5}, {4}, UINT64_MAX})) << "no bound";
  WriteMessage write = data_of(1);
  write.stamp.sequence = kAll;
  EXPECT_TRUE(refused(write));
  write = data_of(1);
  write.stamp.time = {UINT64_MAX};
  EXPECT_TRUE(refused(write));
}

TEST(Wire, MessagesGoToWhoeverTakesThem) {
  EXPECT_TRUE(to_logger(OpenLog{kVolume, kEpoch}).has_value());
  EXPECT_FALSE(to_logger(OpenStorage{kVolume, kEpoch}).has_value());
  EXPECT_FALSE(to_logger(CloseChannel{}).has_value());
  EXPECT_TRUE(to_storage(VoidMessage{kVolume, kEpoch, {1}, {2}}).has_value());
  EXPECT_FALSE(to_storage(RaiseFloor{kVolume, kEpoch, {1}}).has_value());
  EXPECT_TRUE(from_logger(Refused{kVolume, kEpoch, {}}).has_value());
  EXPECT_TRUE(from_storage(Refused{kVolume, kEpoch, {}}).has_value());
  EXPECT_FALSE(from_storage(Logged{kVolume, kEpoch, {1}}).has_value());
  EXPECT_TRUE(std::holds_alternative<Resume>(widen(ToStorage(Resume{kVolume, kEpoch, {1}}))));
  EXPECT_TRUE(std::holds_alternative<Logged>(widen(FromLogger(Logged{kVolume, kEpoch, {1}}))));
}

}  // namespace
}  // namespace mariner::replication

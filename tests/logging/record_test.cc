#include "logging/record.h"

#include <gtest/gtest.h>

#include "proto/bytes.h"
#include "tests/logging/log_testing.h"

namespace mariner::logging {
namespace {

using test::hex;
using test::record_of;

// Every field different, so that a swapped one shows.
Record full_record() {
  Record r;
  r.type = RecordType::kWrite;
  r.flags = kRepeats | kHasHead;
  r.volume = VolumeId{0x01020304};
  r.epoch = Epoch{0x1112131415161718};
  r.sequence = SequenceNumber{0x2122232425262728};
  r.time = VersionTime{0x3132333435363738};
  r.extent = {Lbn{0x0004424344454647}, BlockCount{0x5152}};
  r.payload_blocks = 2;
  r.payload_offset = 0x61626364;
  r.target_sequence = SequenceNumber{0x7172737475767778};
  r.target_time = VersionTime{0x8182838485868788};
  r.previous_sector = 0x9192939495969798;
  r.previous_slot = 0xa1a2;
  r.frontier = SequenceNumber{0xb1b2b3b4b5b6b7b8};
  r.settled = SequenceNumber{0xc1c2c3c4c5c6c7c8};
  r.ordinal = 0xd1d2d3d4d5d6d7d8;
  return r;
}

std::vector<std::byte> packed(const Record& record, std::vector<std::uint32_t> crcs) {
  std::vector<std::byte> bytes(record.packed_bytes());
  pack_record(record, crcs, bytes.data());
  return bytes;
}

bool consistent(RecordType type, std::uint16_t flags, std::uint64_t extent,
                std::uint32_t payload_blocks) {
  Record r;
  r.type = type;
  r.flags = flags;
  r.extent = {Lbn{5}, BlockCount{extent}};
  r.payload_blocks = payload_blocks;
  r.sequence = SequenceNumber{10};
  r.target_sequence = SequenceNumber{type == RecordType::kRollback ? 9u : 10u};
  if (type == RecordType::kRelocated) {
    r.sequence = {};
    r.target_time = {11};
  }
  return record_is_consistent(r);
}

// "payload 5+3@0": kind, first and count of its blocks, block of the payload.
std::string pieces_text(std::uint16_t flags, std::uint64_t extent, std::uint32_t payload_blocks,
                        RecordType type = RecordType::kWrite) {
  Record r;
  r.type = type;
  r.flags = flags;
  r.extent = {Lbn{5}, BlockCount{extent}};
  r.payload_blocks = payload_blocks;
  EXPECT_TRUE(record_is_consistent(r));
  std::string text;
  for (const RecordPiece& piece : pieces_of(r)) {
    const char* kind = piece.kind == RecordPiece::Kind::kPayload    ? "payload "
                       : piece.kind == RecordPiece::Kind::kRepeated ? "repeated "
                                                                    : "zero ";
    text += (text.empty() ? "" : ", ") + std::string(kind) +
            std::to_string(piece.range.first.value) + "+" + std::to_string(piece.range.count.value);
    if (piece.kind != RecordPiece::Kind::kZero) text += "@" + std::to_string(piece.payload_block);
  }
  return text;
}

TEST(Record, GoldenBytes) {
  EXPECT_EQ(hex(packed(full_record(), {0xd1d2d3d4, 0xe1e2e3e4})),
            "01000300 0000a2a1 04030201 02000000\n"
            "18171615 14131211 28272625 24232221\n"
            "38373635 34333231 47464544 43420400\n"
            "52510000 00000000 64636261 00000000\n"
            "78777675 74737271 88878685 84838281\n"
            "98979695 94939291 b8b7b6b5 b4b3b2b1\n"
            "c8c7c6c5 c4c3c2c1 d8d7d6d5 d4d3d2d1\n"
            "d4d3d2d1 e4e3e2e1");
}

TEST(Record, UnpacksWhatWasPacked) {
  const Record record = full_record();
  const std::vector<std::byte> bytes = packed(record, {0xd1d2d3d4, 0xe1e2e3e4});
  const auto unpacked = unpack_record(bytes);
  ASSERT_TRUE(unpacked.has_value());
  EXPECT_EQ(unpacked->record, record);
  EXPECT_EQ(unpacked->packed_bytes, kRecordHeaderBytes + 8);
  ASSERT_EQ(unpacked->block_crcs.size(), 8u);
  EXPECT_EQ(load_le<std::uint32_t>(unpacked->block_crcs.data() + 4), 0xe1e2e3e4u);
}

TEST(Record, TypesHaveTheirNumbersAndNames) {
  const std::pair<int, std::string_view> expected[] = {
      {1, "write"}, {2, "zero"}, {3, "before-image"}, {4, "void"},   {5, "rollback"},
      {6, "gap"},   {7, "mark"}, {8, "relocated"},    {9, "encoded"}};
  for (const auto& [number, name] : expected) {
    EXPECT_EQ(record_type_name(static_cast<RecordType>(number)), name);
  }
  EXPECT_EQ(record_type_name(static_cast<RecordType>(0)), "unknown");
  EXPECT_EQ(record_type_name(RecordType::kRebase), "rebase");
  EXPECT_EQ(record_type_name(RecordType::kWithdrawal), "withdrawal");
  EXPECT_EQ(record_type_name(static_cast<RecordType>(12)), "unknown");
}

TEST(Record, AWriteHasAsManyBlocksAsItsExtent) {
  EXPECT_TRUE(consistent(RecordType::kWrite, 0, 1, 1));
  EXPECT_TRUE(consistent(RecordType::kWrite, 0, 1024, 1024));
  EXPECT_FALSE(consistent(RecordType::kWrite, 0, 1025, 1025));
  EXPECT_FALSE(consistent(RecordType::kWrite, 0, 0, 0));
  EXPECT_FALSE(consistent(RecordType::kWrite, 0, 2, 1));
  EXPECT_FALSE(consistent(RecordType::kWrite, kHasHead, 2, 2));
}

TEST(Record, ARepeatedWriteHasAPatternAndItsEdges) {
  EXPECT_TRUE(consistent(RecordType::kWrite, kRepeats, 1, 1));
  EXPECT_TRUE(consistent(RecordType::kWrite, kRepeats, 1u << 20, 1));
  EXPECT_TRUE(consistent(RecordType::kWrite, kRepeats | kHasHead, 2, 2));
  EXPECT_TRUE(consistent(RecordType::kWrite, kRepeats | kHasHead | kHasTail, 3, 3));
  EXPECT_FALSE(consistent(RecordType::kWrite, kRepeats, 0, 1));
  EXPECT_FALSE(consistent(RecordType::kWrite, kRepeats, 5, 2));
  EXPECT_FALSE(consistent(RecordType::kWrite, kRepeats | kHasHead | kHasTail, 2, 3));
}

TEST(Record, AZeroHasEdgesOnly) {
  EXPECT_TRUE(consistent(RecordType::kZero, 0, 1, 0));
  EXPECT_TRUE(consistent(RecordType::kZero, kHasTail, 2, 1));
  EXPECT_TRUE(consistent(RecordType::kZero, kHasHead | kHasTail, 3, 2));
  EXPECT_FALSE(consistent(RecordType::kZero, 0, 0, 0));
  EXPECT_FALSE(consistent(RecordType::kZero, 0, 1, 1));
  EXPECT_FALSE(consistent(RecordType::kZero, kHasHead, 1, 1));
  EXPECT_FALSE(consistent(RecordType::kZero, kRepeats, 1, 1));
}

TEST(Record, BeforeImagesAndRelocatedOnesAreWhole) {
  for (const RecordType type : {RecordType::kBeforeImage, RecordType::kRelocated}) {
    EXPECT_TRUE(consistent(type, 0, 7, 7));
    EXPECT_FALSE(consistent(type, 0, 7, 6));
    EXPECT_FALSE(consistent(type, 0, 0, 0));
    EXPECT_FALSE(consistent(type, kRepeats, 7, 1));
  }
  EXPECT_FALSE(consistent(RecordType::kBeforeImage, 0, 7, 0));
  EXPECT_TRUE(consistent(RecordType::kRelocated, 0, 7, 0)) << "zeros";
}

TEST(Record, ARelocatedOneIsForMomentsFromOneToAnother) {
  Record r;
  r.type = RecordType::kRelocated;
  r.extent = {{5}, {2}};
  r.target_sequence = {7};
  r.target_time = {7};
  EXPECT_TRUE(record_is_consistent(r));
  r.target_time = {6};
  EXPECT_FALSE(record_is_consistent(r));
  r.target_time = {9};
  r.sequence = {3};
  EXPECT_FALSE(record_is_consistent(r)) << "it is no write of its own";
}

TEST(Record, RangesOfSequenceNumbersHaveNeitherExtentNorPayload) {
  for (const RecordType type : {RecordType::kVoid, RecordType::kGap, RecordType::kRollback}) {
    EXPECT_TRUE(consistent(type, 0, 0, 0));
    EXPECT_FALSE(consistent(type, 0, 1, 0));
    EXPECT_FALSE(consistent(type, 0, 0, 1));
    EXPECT_FALSE(consistent(type, kHasHead, 0, 0));
  }
}

TEST(Record, AVoidEndsAtOrAfterItsStartAndARollbackGoesBack) {
  Record r;
  r.type = RecordType::kVoid;
  r.sequence = SequenceNumber{10};
  r.target_sequence = SequenceNumber{9};
  EXPECT_FALSE(record_is_consistent(r));
  r.type = RecordType::kRollback;
  EXPECT_TRUE(record_is_consistent(r));
  r.target_sequence = SequenceNumber{10};
  EXPECT_FALSE(record_is_consistent(r));
}

TEST(Record, AMarkIsOneBlockOfName) {
  EXPECT_TRUE(consistent(RecordType::kMark, 0, 0, 1));
  EXPECT_FALSE(consistent(RecordType::kMark, 0, 0, 0));
  EXPECT_FALSE(consistent(RecordType::kMark, 0, 0, 2));
  EXPECT_FALSE(consistent(RecordType::kMark, 0, 1, 1));
}

TEST(Record, ARebaseNamesAnExtentAndCarriesNothing) {
  EXPECT_TRUE(consistent(RecordType::kRebase, 0, 5, 0));
  EXPECT_FALSE(consistent(RecordType::kRebase, 0, 0, 0));
  EXPECT_FALSE(consistent(RecordType::kRebase, 0, 1, 1));
  EXPECT_FALSE(consistent(RecordType::kRebase, kHasHead, 1, 0));
  Record rebase;
  rebase.type = RecordType::kRebase;
  rebase.extent = {{3}, {5}};
  EXPECT_EQ(pieces_of(rebase).count, 0u);
}

TEST(Record, AWithdrawalNamesAnOrdinalAndBelongsToNoVolume) {
  Record r;
  r.type = RecordType::kWithdrawal;
  EXPECT_FALSE(record_is_consistent(r)) << "ordinals begin with 1";
  r.target_sequence.value = 1;
  EXPECT_TRUE(record_is_consistent(r));
  EXPECT_EQ(pieces_of(r).count, 0u);
  r.volume = VolumeId{1};
  EXPECT_FALSE(record_is_consistent(r));
  r.volume = {};
  r.payload_blocks = 1;
  EXPECT_FALSE(record_is_consistent(r));
  r.payload_blocks = 0;
  r.extent = {{0}, {1}};
  EXPECT_FALSE(record_is_consistent(r));
}

TEST(Record, WhatIsNotDefinedYetIsRefused) {
  EXPECT_FALSE(consistent(RecordType::kEncoded, 0, 1, 1));
  EXPECT_FALSE(consistent(RecordType::kWrite, 1u << 3, 1, 1));
  Record r = record_of(1, 1);
  r.codec = 1;
  EXPECT_FALSE(record_is_consistent(r));
}

TEST(Record, AnExtentEndsWithin64BitsOfBytes) {
  Record r = record_of(1, 1, 1, RecordType::kZero);
  const std::uint64_t last = UINT64_MAX / kBlockBytes;
  r.extent = {Lbn{last - 1}, BlockCount{1}};
  EXPECT_TRUE(record_is_consistent(r));
  r.extent = {Lbn{last}, BlockCount{1}};
  EXPECT_FALSE(record_is_consistent(r));
  r.extent = {Lbn{0}, BlockCount{last}};
  EXPECT_TRUE(record_is_consistent(r));
  r.extent = {Lbn{0}, BlockCount{last + 1}};
  EXPECT_FALSE(record_is_consistent(r));
  r.extent = {Lbn{UINT64_MAX / 2}, BlockCount{UINT64_MAX / 2 + 7}};
  EXPECT_FALSE(record_is_consistent(r));
}

TEST(Record, PiecesCoverTheExtentInOrder) {
  EXPECT_EQ(pieces_text(0, 3, 3), "payload 5+3@0");
  EXPECT_EQ(pieces_text(kRepeats, 9, 1), "repeated 5+9@0");
  EXPECT_EQ(pieces_text(kRepeats | kHasHead, 9, 2), "payload 5+1@0, repeated 6+8@1");
  EXPECT_EQ(pieces_text(kRepeats | kHasTail, 9, 2), "repeated 5+8@0, payload 13+1@1");
  EXPECT_EQ(pieces_text(kRepeats | kHasHead | kHasTail, 9, 3),
            "payload 5+1@0, repeated 6+7@1, payload 13+1@2");
  EXPECT_EQ(pieces_text(0, 9, 0, RecordType::kZero), "zero 5+9");
  EXPECT_EQ(pieces_text(kHasHead | kHasTail, 9, 2, RecordType::kZero),
            "payload 5+1@0, zero 6+7, payload 13+1@1");
  EXPECT_EQ(pieces_text(0, 2, 2, RecordType::kBeforeImage), "payload 5+2@0");
}

TEST(Record, ARecordWithoutExtentHasNoPieces) {
  Record r;
  r.type = RecordType::kVoid;
  EXPECT_EQ(pieces_of(r).count, 0u);
}

TEST(Record, BytesThatEndEarlyAreNoRecord) {
  const std::vector<std::byte> bytes = packed(record_of(1, 1, 2), {1, 2});
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(unpack_record(std::span(bytes).first(length)).has_value()) << length;
  }
  EXPECT_TRUE(unpack_record(bytes).has_value());
}

TEST(Record, AnUnknownTypeIsNoRecord) {
  std::vector<std::byte> bytes = packed(record_of(1, 1), {1});
  for (const int type : {0, 11, 255}) {
    bytes[0] = static_cast<std::byte>(type);
    EXPECT_FALSE(unpack_record(bytes).has_value()) << type;
  }
}

TEST(Record, ReservedBytesAreIgnored) {
  std::vector<std::byte> bytes = packed(record_of(1, 1), {1});
  for (const std::size_t at : {1u, 60u, 63u}) {
    EXPECT_EQ(bytes[at], std::byte{0});
    bytes[at] = std::byte{0xff};
  }
  const auto unpacked = unpack_record(bytes);
  ASSERT_TRUE(unpacked.has_value());
  EXPECT_EQ(unpacked->record, record_of(1, 1));
}

TEST(RecordOrder, CopiesStandSideBySideAndOthersOfTheirOrdinalAreNone) {
  Record a;
  a.ordinal = 7;
  a.volume = VolumeId{1};
  a.sequence = SequenceNumber{3};
  Record copy = a;
  copy.previous_sector = 99;  // each disk has a chain of its own
  EXPECT_TRUE(is_copy(a, copy));
  Record other = a;  // its ordinal was given again
  other.sequence = SequenceNumber{4};
  EXPECT_FALSE(is_copy(a, other));
  EXPECT_TRUE(is_before(a, other));
  EXPECT_FALSE(is_before(a, copy) || is_before(copy, a));
  Record later = a;
  later.ordinal = 8;
  later.sequence = SequenceNumber{1};
  EXPECT_TRUE(is_before(other, later));
}

}  // namespace
}  // namespace mariner::logging

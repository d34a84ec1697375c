#include "uvfs/ntfs_record.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <vector>

#include "proto/bytes.h"

namespace mariner::uvfs {
namespace {

using Bytes = std::vector<std::byte>;

template <typename T>
void put(Bytes& bytes, std::size_t at, T value) {
  store_le<T>(bytes.data() + at, value);
}

constexpr std::size_t kTimes = 56 + 24;
constexpr std::size_t kData = 56 + 72;

// In use, with times, and contents of 5000 bytes that lie elsewhere.
Bytes record() {
  Bytes bytes(1024);
  std::memcpy(bytes.data(), "FILE", 4);
  put<std::uint16_t>(bytes, 4, 48);  // ends of sectors
  put<std::uint16_t>(bytes, 6, 3);
  put<std::uint16_t>(bytes, 16, 7);  // sequence number
  put<std::uint16_t>(bytes, 18, 2);  // names
  put<std::uint16_t>(bytes, 20, 56);
  put<std::uint16_t>(bytes, 22, 1);
  put<std::uint32_t>(bytes, 56, 0x10);
  put<std::uint32_t>(bytes, 60, 72);
  put<std::uint32_t>(bytes, 56 + 16, 48);
  put<std::uint16_t>(bytes, 56 + 20, 24);
  put<std::uint64_t>(bytes, kTimes + 8, 116'444'736'000'000'000 + 15'000'000);
  put<std::uint64_t>(bytes, kTimes + 16, 116'444'736'000'000'000 - 1);
  put<std::uint32_t>(bytes, kData, 0x80);
  put<std::uint32_t>(bytes, kData + 4, 72);
  put<std::uint8_t>(bytes, kData + 8, 1);
  put<std::uint64_t>(bytes, kData + 48, 5000);
  put<std::uint32_t>(bytes, kData + 72, 0xffff'ffff);
  // What belongs to the ends of sectors is in the array.
  put<std::uint16_t>(bytes, 48, 0x1111);
  put<std::uint16_t>(bytes, 510, 0x1111);
  put<std::uint16_t>(bytes, 1022, 0x1111);
  return bytes;
}

std::optional<NtfsRecord> parsed(Bytes bytes) { return parse_ntfs_record(bytes); }

TEST(NtfsRecordTest, ItSaysWhatAFileIs) {
  const auto found = parsed(record());
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->sequence, 7u);
  const ObjectState& state = found->state;
  EXPECT_TRUE(state.exists);
  EXPECT_EQ(state.mode, S_IFREG | 0777);
  EXPECT_EQ(state.links, 2u);
  EXPECT_EQ(state.generation, 7u);
  EXPECT_EQ(state.size, 5000u);
  EXPECT_EQ(state.modified, (FileTime{1, 500'000'000}));
  EXPECT_EQ(state.changed, (FileTime{-1, 999'999'900}));
}

TEST(NtfsRecordTest, ContentsMayBeInIt) {
  Bytes bytes = record();
  put<std::uint8_t>(bytes, kData + 8, 0);
  put<std::uint32_t>(bytes, kData + 16, 30);
  put<std::uint16_t>(bytes, kData + 20, 24);
  EXPECT_EQ(parsed(bytes)->state.size, 30u);
  // Those with a name are others.
  put<std::uint8_t>(bytes, kData + 9, 4);
  EXPECT_EQ(parsed(bytes)->state.size, 0u);
}

TEST(NtfsRecordTest, FlagsAreModes) {
  Bytes bytes = record();
  put<std::uint16_t>(bytes, 22, 3);
  put<std::uint32_t>(bytes, kTimes + 32, 1);
  EXPECT_EQ(parsed(bytes)->state.mode, S_IFDIR | 0555);
}

TEST(NtfsRecordTest, WhatIsNotInUseOrTornIsNone) {
  Bytes bytes = record();
  put<std::uint16_t>(bytes, 22, 0);
  EXPECT_FALSE(parsed(bytes).has_value());
  bytes = record();
  put<std::uint64_t>(bytes, 32, 40);  // it belongs to another one
  EXPECT_FALSE(parsed(bytes).has_value());
  bytes = record();
  put<std::uint16_t>(bytes, 1022, 0x2222);
  EXPECT_FALSE(parsed(bytes).has_value());
  EXPECT_FALSE(parsed(Bytes(1024)).has_value());
  EXPECT_FALSE(parsed(Bytes(100)).has_value());
}

TEST(NtfsRecordTest, WhateverTheBytesSayItEnds) {
  for (std::size_t at = 4; at < 256; ++at) {
    for (const unsigned byte : {0x00u, 0x01u, 0x7fu, 0xffu}) {
      Bytes bytes = record();
      bytes[at] = static_cast<std::byte>(byte);
      (void)parsed(bytes);
    }
  }
}

}  // namespace
}  // namespace mariner::uvfs

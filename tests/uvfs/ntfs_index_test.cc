#include "uvfs/ntfs_index.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "proto/bytes.h"

namespace mariner::uvfs {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint8_t kWin32 = 1;
constexpr std::uint8_t kDos = 2;

struct Entry {
  std::u16string name;
  std::uint64_t reference = 0;
  std::uint8_t space = kWin32;
  bool directory = false;
};

template <typename T>
void put(Bytes& bytes, std::size_t at, T value) {
  store_le<T>(bytes.data() + at, value);
}

void add(Bytes& to, const Entry& entry) {
  const std::size_t at = to.size();
  const std::size_t length = (16 + 66 + 2 * entry.name.size() + 7) / 8 * 8;
  to.resize(at + length);
  put<std::uint64_t>(to, at, entry.reference);
  put<std::uint16_t>(to, at + 8, static_cast<std::uint16_t>(length));
  put<std::uint32_t>(to, at + 16 + 56, entry.directory ? 0x1000'0000 : 0);
  put<std::uint8_t>(to, at + 16 + 64, static_cast<std::uint8_t>(entry.name.size()));
  put<std::uint8_t>(to, at + 16 + 65, entry.space);
  std::memcpy(to.data() + at + 16 + 66, entry.name.data(), 2 * entry.name.size());
}

// A header at `header`, entries, and the end.
Bytes index(std::size_t header, const std::vector<Entry>& entries) {
  Bytes bytes(header + 16);
  for (const Entry& each : entries) add(bytes, each);
  const std::size_t end = bytes.size();
  bytes.resize(end + 16);
  put<std::uint16_t>(bytes, end + 8, 16);
  put<std::uint16_t>(bytes, end + 12, 2);
  put<std::uint32_t>(bytes, header, 16);
  put<std::uint32_t>(bytes, header + 4, static_cast<std::uint32_t>(bytes.size() - header));
  return bytes;
}

Bytes root(const std::vector<Entry>& entries) {
  Bytes bytes = index(16, entries);
  put<std::uint32_t>(bytes, 8, 4096);
  return bytes;
}

// As it stands on a disk: what was at the ends of sectors is in the head.
Bytes block(const std::vector<Entry>& entries) {
  Bytes bytes = index(24, entries);
  // (Entries behind the array that has the ends.)
  bytes.insert(bytes.begin() + 40, 24, std::byte{});
  put<std::uint32_t>(bytes, 24, 40);
  put<std::uint32_t>(bytes, 28, static_cast<std::uint32_t>(bytes.size() - 24));
  bytes.resize(4096);
  std::memcpy(bytes.data(), "INDX", 4);
  put<std::uint16_t>(bytes, 4, 40);
  put<std::uint16_t>(bytes, 6, 9);
  put<std::uint16_t>(bytes, 40, 7);
  for (std::size_t i = 1; i < 9; ++i) {
    std::memcpy(bytes.data() + 40 + 2 * i, bytes.data() + i * 512 - 2, 2);
    put<std::uint16_t>(bytes, i * 512 - 2, 7);
  }
  return bytes;
}

std::vector<NtfsName> of_root(const Bytes& bytes) {
  std::vector<NtfsName> all;
  add_names_of_index_root(bytes, all);
  return all;
}
std::vector<NtfsName> of_block(Bytes bytes) {
  std::vector<NtfsName> all;
  add_names_of_index_block(bytes, all);
  return all;
}

constexpr std::uint64_t kReference = std::uint64_t{3} << 48 | 64;

TEST(NtfsIndexTest, ANameHasAReferenceWithASequenceNumber) {
  EXPECT_EQ(of_root(root({{u"grün\U0001F600", kReference}, {u"d", 70, kWin32, true}})),
            (std::vector<NtfsName>{{"grün\U0001F600", kReference, false}, {"d", 70, true}}));
  EXPECT_EQ(ntfs_index_block_bytes(root({})), 4096u);
}

TEST(NtfsIndexTest, AShortNameIsNoOther) {
  EXPECT_EQ(of_root(root({{u"a long name", 64}, {u"ALONGN~1", 64, kDos}})).size(), 1u);
}

TEST(NtfsIndexTest, MetadataFilesAreNotShown) {
  EXPECT_EQ(of_root(root({{u"$MFT", std::uint64_t{1} << 48}, {u".", 5}, {u"$Extend", 11}})).size(),
            0u);
  EXPECT_EQ(of_root(root({{u"f", 16}})).size(), 1u);
}

TEST(NtfsIndexTest, ABlockIsReadWithTheEndsOfItsSectors) {
  std::vector<Entry> many;
  for (int i = 0; i < 30; ++i)
    many.push_back(
        {u"a name that is long " + std::u16string(1, static_cast<char16_t>(u'a' + i)), 64});
  const Bytes bytes = block(many);
  const auto names = of_block(bytes);
  ASSERT_EQ(names.size(), many.size());
  EXPECT_EQ(names[20].name, std::string("a name that is long ") + static_cast<char>('a' + 20));
}

TEST(NtfsIndexTest, ATornBlockHasNoNames) {
  Bytes bytes = block({{u"f", 64}});
  EXPECT_EQ(of_block(bytes).size(), 1u);
  put<std::uint16_t>(bytes, 3 * 512 - 2, 8);
  EXPECT_EQ(of_block(bytes).size(), 0u);
  EXPECT_EQ(of_block(Bytes(4096)).size(), 0u);
}

TEST(NtfsIndexTest, WhetherNamesMayBeMissingIsSaid) {
  std::vector<NtfsName> all;
  Bytes whole = block({{u"f", 64}, {u"g", 65}});
  Bytes torn = whole;
  put<std::uint16_t>(torn, 3 * 512 - 2, 8);
  Bytes cut = whole;
  put<std::uint16_t>(cut, 24 + 40 + 8, 3);  // the first one's length
  EXPECT_TRUE(add_names_of_index_block(whole, all));
  EXPECT_FALSE(add_names_of_index_block(torn, all));
  EXPECT_FALSE(add_names_of_index_block(cut, all));
  EXPECT_EQ(all.size(), 2u);
  EXPECT_TRUE(add_names_of_index_root(root({{u"f", 64}}), all));
  Bytes endless = root({{u"f", 64}});
  put<std::uint16_t>(endless, endless.size() - 4, 0);  // the last one is none
  EXPECT_FALSE(add_names_of_index_root(endless, all));
}

TEST(NtfsIndexTest, WhateverTheBytesSayItEnds) {
  const Bytes good = root({{u"first", 64}, {u"second", 65}});
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const unsigned byte : {0x00u, 0x01u, 0x7fu, 0xffu}) {
      Bytes bytes = good;
      bytes[at] = static_cast<std::byte>(byte);
      EXPECT_LE(of_root(bytes).size(), 2u);
      EXPECT_LE(
          of_root(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(at))).size(),
          2u);
    }
  }
  const Bytes good_block = block({{u"first", 64}, {u"second", 65}});
  for (std::size_t at = 0; at < 300; ++at) {
    Bytes bytes = good_block;
    bytes[at] = std::byte{0xff};
    EXPECT_LE(of_block(bytes).size(), 2u);
  }
}

TEST(NtfsIndexTest, BlocksHaveASizeThatTheyCanHave) {
  Bytes bytes = root({});
  for (const std::uint32_t size : {0u, 511u, 1000u, 128u << 10}) {
    put<std::uint32_t>(bytes, 8, size);
    EXPECT_FALSE(ntfs_index_block_bytes(bytes).has_value());
  }
  EXPECT_FALSE(ntfs_index_block_bytes(std::span(bytes).first(31)).has_value());
}

}  // namespace
}  // namespace mariner::uvfs

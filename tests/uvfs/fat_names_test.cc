#include "uvfs/fat_names.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "proto/bytes.h"
#include "uvfs/fat_time.h"

namespace mariner::uvfs {
namespace {

using Bytes = std::vector<std::byte>;
using Names = std::vector<FatName>;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// Entries, numbered from 100 on.
Names names_of(const std::string& entries, bool exfat = false) {
  FatNames names(exfat);
  for (std::size_t i = 0; i < entries.size() / kFatEntryBytes; ++i) {
    if (!names.add(bytes_of(entries).subspan(i * kFatEntryBytes, kFatEntryBytes), 100 + i)) break;
  }
  return names.take();
}

std::string entry(const std::string& name, char attributes, char small = 0) {
  std::string all(kFatEntryBytes, '\0');
  all.replace(0, 11, name);
  all[11] = attributes;
  all[12] = small;
  return all;
}

unsigned char checksum(const std::string& name) {
  unsigned sum = 0;
  for (const char each : name)
    sum = ((sum & 1) << 7) + (sum >> 1) + static_cast<unsigned char>(each), sum &= 0xff;
  return static_cast<unsigned char>(sum);
}

// The pieces of a long name, in front of a short one.
std::string long_name(std::u16string name, const std::string& short_name) {
  const std::size_t pieces = (name.size() + 12) / 13;
  if (name.size() % 13 != 0) name += u'\0';
  name.resize(pieces * 13, u'\xffff');
  std::string all;
  for (std::size_t i = pieces; i > 0; --i) {
    std::string piece(kFatEntryBytes, '\0');
    piece[0] = static_cast<char>(i | (i == pieces ? 0x40 : 0));
    piece[11] = 0x0f;
    piece[13] = static_cast<char>(checksum(short_name));
    const char* const units = reinterpret_cast<const char*>(name.data() + 13 * (i - 1));
    std::memcpy(piece.data() + 1, units, 10);
    std::memcpy(piece.data() + 14, units + 10, 12);
    std::memcpy(piece.data() + 28, units + 22, 4);
    all += piece;
  }
  return all;
}

TEST(FatNamesTest, AShortNameIsAsLinuxShowsIt) {
  EXPECT_EQ(names_of(entry("README  TXT", 0x20)), (Names{{"README.TXT", 100, false}}));
  EXPECT_EQ(names_of(entry("README  TXT", 0x20, 0x18)), (Names{{"readme.txt", 100, false}}));
  EXPECT_EQ(names_of(entry("FOLDER     ", 0x10, 0x08)), (Names{{"folder", 100, true}}));
  EXPECT_EQ(names_of(entry("GR\x9aN    X  ", 0)), (Names{{"GRÜN.X", 100, false}}));
  EXPECT_EQ(names_of(entry("\x05X         ", 0)), (Names{{"σX", 100, false}}));
}

TEST(FatNamesTest, ALongNameStandsBeforeItsEntry) {
  const std::string name = "ALONGN~1TXT";
  const std::string all = long_name(u"a long name, in grün.txt", name) + entry(name, 0x20);
  EXPECT_EQ(names_of(all), (Names{{"a long name, in grün.txt", 102, false}}));
  // Of exactly one piece there is no end.
  EXPECT_EQ(names_of(long_name(u"thirteen char", name) + entry(name, 0)),
            (Names{{"thirteen char", 101, false}}));
}

TEST(FatNamesTest, ALongNameThatIsNotItsOwnIsNone) {
  const std::string name = "ALONGN~1TXT";
  const std::string pieces = long_name(u"a long name of two pieces", name);
  EXPECT_EQ(names_of(pieces + entry("OTHER   TXT", 0)), (Names{{"OTHER.TXT", 102, false}}));
  EXPECT_EQ(names_of(pieces.substr(32) + entry(name, 0)), (Names{{"ALONGN~1.TXT", 101, false}}));
  EXPECT_EQ(names_of(pieces.substr(0, 32) + entry(name, 0)), (Names{{"ALONGN~1.TXT", 101, false}}));
  const std::string deleted = "\xe5" + entry(name, 0).substr(1);
  EXPECT_EQ(names_of(pieces + deleted + entry(name, 0)), (Names{{"ALONGN~1.TXT", 103, false}}));
}

TEST(FatNamesTest, WhatIsNoFileHasNoName) {
  EXPECT_EQ(names_of(entry("LABEL      ", 0x08) + entry(".          ", 0x10) +
                     entry("..         ", 0x10) + "\xe5" + entry("XDELETED   ", 0).substr(1)),
            Names{});
  // Behind the end.
  EXPECT_EQ(names_of(entry("A          ", 0) + std::string(32, '\0') + entry("B          ", 0)),
            (Names{{"A", 100, false}}));
}

// ---- exFAT

std::string exfat(const std::u16string& name, char attributes) {
  const std::size_t pieces = (name.size() + 14) / 15;
  std::string set((2 + pieces) * kFatEntryBytes, '\0');
  set[0] = '\x85';
  set[1] = static_cast<char>(1 + pieces);
  set[4] = attributes;
  set[32] = '\xC0';
  set[35] = static_cast<char>(name.size());
  for (std::size_t i = 0; i < pieces; ++i) {
    char* const piece = set.data() + (2 + i) * kFatEntryBytes;
    *piece = '\xC1';
    std::memcpy(piece + 2, name.data() + 15 * i,
                2 * std::min<std::size_t>(15, name.size() - 15 * i));
  }
  std::uint16_t sum = 0;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (i == 2 || i == 3) continue;
    sum = static_cast<std::uint16_t>((sum >> 1 | sum << 15) + static_cast<unsigned char>(set[i]));
  }
  store_le<std::uint16_t>(set.data() + 2, sum);
  return set;
}

TEST(FatNamesTest, ASetOfExfatIsOneName) {
  const std::string first = exfat(u"a long näme, more than one entry", 0x20);
  const std::string second = exfat(u"d", 0x10);
  EXPECT_EQ(names_of(first + second, true),
            (Names{{"a long näme, more than one entry", 100, false}, {"d", 105, true}}));
}

TEST(FatNamesTest, ASetOfExfatIsWholeOrNone) {
  const std::string good = exfat(u"a long name, more than one entry", 0x20);
  const std::string other = exfat(u"other", 0);
  for (std::size_t at = 1; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    for (const FatName& each : names_of(bad + other, true)) EXPECT_EQ(each.name, "other");
  }
  EXPECT_EQ(names_of(good.substr(0, 96) + other, true).size(), 1u);
  std::string deleted = good;
  for (std::size_t i = 0; i < deleted.size(); i += 32)
    deleted[i] = static_cast<char>(deleted[i] & 0x7f);
  EXPECT_EQ(names_of(deleted + other, true), (Names{{"other", 105, false}}));
}

TEST(FatTimeTest, AClockSaysHowFarItIsFromUtc) {
  // 2026-11-25 18:30:04 and 570 ms, two hours east; as many west; unknown.
  const std::uint32_t stamp = (46u << 25 | 11u << 21 | 25u << 16) | (18u << 11 | 30u << 5 | 2u);
  const std::int64_t local = 1'795'631'404;
  EXPECT_EQ(time_of({stamp, 57, 0x80 | 8}), (FileTime{local - 7200, 570'000'000}));
  EXPECT_EQ(time_of({stamp, 157, 0x80 | (0x7f & -8)}), (FileTime{local + 7201, 570'000'000}));
  EXPECT_FALSE(time_of({stamp, 57, 8}).has_value());
  EXPECT_FALSE(time_of({stamp & ~(31u << 16), 0, 0x80}).has_value());
  EXPECT_FALSE(time_of({stamp | 31u, 0, 0x80}).has_value());
  EXPECT_FALSE(time_of({stamp, 200, 0x80}).has_value());
}

}  // namespace
}  // namespace mariner::uvfs

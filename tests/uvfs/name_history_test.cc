#include "uvfs/name_history.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "proto/bytes.h"

namespace mariner::uvfs {
namespace {

using Spans = std::vector<NameHistory::Span>;
using Entries = std::vector<std::pair<std::string, std::uint32_t>>;

std::vector<std::byte> block(const Entries& entries, std::size_t bytes = 1024) {
  std::vector<std::byte> all(bytes);
  std::size_t at = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& [name, inode] = entries[i];
    const std::size_t length = i + 1 == entries.size() ? bytes - at : (8 + name.size() + 3) / 4 * 4;
    store_le<std::uint32_t>(all.data() + at, inode);
    store_le<std::uint16_t>(all.data() + at + 4, static_cast<std::uint16_t>(length));
    store_le<std::uint8_t>(all.data() + at + 6, static_cast<std::uint8_t>(name.size()));
    std::memcpy(all.data() + at + 8, name.data(), name.size());
    at += length;
  }
  return all;
}

Instant at(std::uint64_t moment) { return {{moment}, {moment * 10}}; }

Spans spans(const NameHistory& names, std::string_view name) {
  const auto* const found = names.find(name);
  return found == nullptr ? Spans{} : *found;
}

TEST(NameHistoryTest, NamesComeAndGo) {
  NameHistory names;
  names.set(at(1), 0, block({{".", 2}, {"..", 2}, {"a", 11}, {"b", 12}}));
  names.set(at(5), 0, block({{".", 2}, {"..", 2}, {"a", 11}, {"", 0}, {"c", 13}}));
  names.set(at(9), 0, block({{".", 2}, {"..", 2}, {"a", 14}}));
  EXPECT_EQ(spans(names, "a"), (Spans{{at(1), 11}, {at(9), 14}}));
  EXPECT_EQ(spans(names, "b"), (Spans{{at(1), 12}, {at(5), 0}}));
  EXPECT_EQ(spans(names, "c"), (Spans{{at(5), 13}, {at(9), 0}}));
  EXPECT_EQ(spans(names, "."), Spans{});
  EXPECT_EQ(names.find("a", {0}), 0u);
  EXPECT_EQ(names.find("a", {8}), 11u);
  EXPECT_EQ(names.find("a", {9}), 14u);
  EXPECT_EQ(names.changes(), (std::vector{at(5), at(9)}));
}

TEST(NameHistoryTest, ANameThatMovesToAnotherBlockStays) {
  NameHistory names;
  names.set(at(1), 0, block({{"a", 11}, {"b", 12}}));
  // By one write, as it seems; and by two.
  names.set(at(2), 0, block({{"b", 12}}));
  names.set(at(2), 1, block({{"a", 11}}));
  names.set(at(3), 1, block({{"a", 11}, {"b", 12}}));
  names.set(at(4), 0, block({}));
  EXPECT_EQ(spans(names, "a"), (Spans{{at(1), 11}}));
  EXPECT_EQ(spans(names, "b"), (Spans{{at(1), 12}}));
  EXPECT_EQ(names.changes(), std::vector<Instant>{});
}

TEST(NameHistoryTest, OfANameThatIsTwiceTheFirstIsMeant) {
  NameHistory names;
  names.set(at(1), 4, block({{"a", 20}, {"a", 21}}));
  names.set(at(2), 3, block({{"a", 30}}));
  names.forget(at(3), 3);
  EXPECT_EQ(spans(names, "a"), (Spans{{at(1), 20}, {at(2), 30}, {at(3), 20}}));
}

TEST(NameHistoryTest, WhatIsNoDirectoryHasNoNames) {
  NameHistory names;
  names.set(at(1), 0, block({{"a", 11}}));
  names.set(at(1), 1, block({{"b", 12}}));
  names.forget_all(at(6));
  names.set(at(8), 0, block({{"a", 11}}));
  EXPECT_EQ(spans(names, "a"), (Spans{{at(1), 11}, {at(6), 0}, {at(8), 11}}));
  EXPECT_EQ(spans(names, "b"), (Spans{{at(1), 12}, {at(6), 0}}));
  std::vector<std::string> all;
  names.for_each(
      [&](std::string_view name, std::span<const NameHistory::Span>) { all.emplace_back(name); });
  EXPECT_EQ(all, (std::vector<std::string>{"a", "b"}));
}

TEST(NameHistoryTest, ABlockThatIsNoneHasWhatStandsBeforeThat) {
  NameHistory names;
  auto bytes = block({{"a", 11}, {"b", 12}, {"c", 13}});
  store_le<std::uint16_t>(bytes.data() + 12 + 4, 3);  // of "b": no length
  names.set(at(1), 0, bytes);
  EXPECT_EQ(names.find("a", {1}), 11u);
  EXPECT_EQ(names.find("b", {1}), 0u);
  names.set(at(2), 0, std::vector<std::byte>(1024, std::byte{0xff}));
  EXPECT_EQ(names.find("a", {2}), 0u);
}

TEST(NameHistoryTest, AllNamesMayBeToldAtOnce) {
  constexpr ObjectNumber kLarge = ObjectNumber{7} << kSequenceShift | 64;
  NameHistory names;
  names.set_all(at(1), {{"b", 2}, {"a", kLarge}, {"b", 3}});
  names.set_all(at(2), {{"a", kLarge}, {"c", 4}});
  names.forget_all(at(3));
  EXPECT_EQ(spans(names, "a"), (Spans{{at(1), kLarge}, {at(3), 0}}));
  EXPECT_EQ(spans(names, "b"), (Spans{{at(1), 2}, {at(2), 0}}));  // the first is meant
  EXPECT_EQ(spans(names, "c"), (Spans{{at(2), 4}, {at(3), 0}}));
  EXPECT_FALSE(names.is_damaged());
  names.set_all(at(4), {{"a", kLarge}}, false);
  EXPECT_TRUE(names.is_damaged());
}

}  // namespace
}  // namespace mariner::uvfs

#include "uvfs/open_history.h"

#include <gtest/gtest.h>

#include "tests/uvfs/made_foreign.h"
#include "tests/uvfs/made_writes.h"
#include "uvfs/path_search.h"

namespace mariner::uvfs {
namespace {

TEST(OpenHistoryTest, ContentsAreThoseOfTheirMoment) {
  for (const char* const kind : {"-t ext2 -b 4096", "-t ext4 -b 4096", "-t ext3 -b 1024"}) {
    MadeWrites made(kind);
    const auto file = made.volume.find("/many/a file with a long name, number 3");
    const auto block = made.map_of(file).runs.front().physical;
    const auto then = made.put<std::uint8_t>(made.offset_of(block), 'a');
    const auto later = made.put<std::uint8_t>(made.offset_of(block), 'b');
    auto past = made.past();
    auto history = open_history(past, {{}, later}).value();
    std::array<std::byte, 1> first{};
    EXPECT_EQ(history.contents(file, {})->read(0, first).value(), 1u);
    EXPECT_EQ(static_cast<char>(first[0]), 'x') << kind;
    EXPECT_EQ(history.contents(file, then)->read(0, first).value(), 1u);
    EXPECT_EQ(static_cast<char>(first[0]), 'a') << kind;
    EXPECT_EQ(history.contents(file, later)->read(0, first).value(), 1u);
    EXPECT_EQ(static_cast<char>(first[0]), 'b') << kind;
  }
}

TEST(OpenHistoryTest, WithoutAFileSystemThatIsSaid) {
  MadeWrites made("-t ext2 -b 4096");
  const auto at =
      made.put<std::uint16_t>(SUPERBLOCK_OFFSET + offsetof(ext2_super_block, s_magic), 0);
  auto past = made.past();
  EXPECT_EQ(open_history(past, {{}, at}).error().code, ErrorCode::kNotFound);
}

TEST(OpenHistoryTest, OtherFileSystemsAreReadAlike) {
  MadeNtfs made;
  made.copy("few", "/small");
  const auto at = made.flush();
  auto past = made.past();
  auto history = open_history(past, {at, at}).value();
  EXPECT_EQ(history.replayed, nullptr);
  const auto found = PathSearch(*history.files).find("/small").value();
  ASSERT_EQ(found.incarnations.size(), 1u);
  EXPECT_EQ(history.contents(found.incarnations[0].inode, at)->size(), 3u);
  const auto moment = open_moment(past, at).value();
  EXPECT_EQ(moment->find(moment->root(), "small").value(), found.incarnations[0].inode);
}

TEST(OpenHistoryTest, WhatIsThereInsteadIsSaid) {
  MadeForeign made("true", 1u << 20);
  made.put(512, "EFI PART");
  const auto at = made.flush();
  auto past = made.past();
  for (const Error& error : {open_history(past, {at, at}).error(), open_moment(past, at).error()}) {
    EXPECT_EQ(error.code, ErrorCode::kNotFound);
    EXPECT_NE(error.message.find("a partition table (GPT)"), std::string::npos) << error.message;
  }
}

TEST(OpenHistoryTest, ADamagedExtIsNotAnother) {
  MadeWrites made("-t ext4 -b 4096");
  const auto at =
      made.put<std::uint32_t>(SUPERBLOCK_OFFSET + offsetof(ext2_super_block, s_log_block_size), 99);
  auto past = made.past();
  const Error error = open_history(past, {{}, at}).error();
  EXPECT_NE(error.message.find("superblock is corrupt"), std::string::npos) << error.message;
}

}  // namespace
}  // namespace mariner::uvfs

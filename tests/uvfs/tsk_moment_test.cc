#include "uvfs/tsk_moment.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/uvfs/made_foreign.h"

namespace mariner::uvfs {
namespace {

std::string contents_of(TskMoment& moment, const std::string& name) {
  const auto number = moment.find(moment.root(), name).value();
  auto contents = moment.contents(number);
  if (!contents) return "none";
  std::string all(contents->size(), ' ');
  EXPECT_EQ(contents->read(0, std::as_writable_bytes(std::span(all))).value(), all.size());
  return all;
}

TEST(TskMomentTest, AMomentStaysWhatItWas) {
  MadeFat made("-F 16 -s 1", 6u << 20);
  made.tool("mmd", "::/folder");
  made.copy("before", "/a file");
  const auto first = made.flush();
  made.copy("behind", "/a file");
  made.copy("new", "/another");
  const auto last = made.flush();
  auto past = made.past();
  const auto then = TskMoment::open(past, first).value();
  const auto now = TskMoment::open(past, last).value();
  EXPECT_EQ(then->at(), first);
  EXPECT_EQ(contents_of(*then, "a file"), "before");
  EXPECT_EQ(contents_of(*now, "a file"), "behind");
  EXPECT_EQ(then->find(then->root(), "another").value(), 0u);
  const auto names = now->names(now->root()).value();
  ASSERT_EQ(names->size(), 3u);
  EXPECT_EQ((*names)[0].name, "a file");
  EXPECT_EQ((*names)[2].name, "folder");
  EXPECT_EQ((*names)[2].kind, S_IFDIR);
  EXPECT_EQ(now->names(now->root()).value(), names);
  EXPECT_TRUE(S_ISDIR(now->state((*names)[2].number)->mode));
  EXPECT_EQ(now->names((*names)[0].number).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(now->contents(now->root()).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(now->state(1'000'000'000).error().code, ErrorCode::kNotFound);
}

TEST(TskMomentTest, ContentsOfEveryFormAreRead) {
  MadeNtfs made;
  made.copy("few bytes", "/small");
  made.copy(std::string(300'000, 'x'), "/large");
  made.copy("", "/empty");
  made.copy_stream("beside", "/small", "note");
  const auto at = made.flush();
  auto past = made.past();
  auto moment = TskMoment::open(past, at).value();
  EXPECT_EQ(contents_of(*moment, "small"), "few bytes");
  EXPECT_EQ(contents_of(*moment, "large"), std::string(300'000, 'x'));
  EXPECT_EQ(contents_of(*moment, "empty"), "");
  const auto small = moment->find(moment->root(), "small").value();
  EXPECT_EQ(moment->attributes(small)->all.size(), 1u);
  // What it gave may be used without it.
  auto contents = moment->contents(small).value();
  moment.reset();
  std::array<std::byte, 9> to{};
  EXPECT_EQ(contents.read(0, to).value(), 9u);
}

TEST(TskMomentTest, WhatIsSaidToBeLargerThanTheVolumeIsNotRead) {
  MadeUfs made;
  made.change();
  (void)made.flush();
  auto past = made.past();
  auto moment = TskMoment::open(past, made.last).value();
  const auto names = moment->names(moment->root()).value();
  const auto file = std::ranges::find_if(*names, [](const auto& each) { return each.kind == 0; });
  ASSERT_NE(file, names->end());
  ASSERT_TRUE(moment->contents(file->number).has_value());
  // Its inode, wherever it is: a mode, a number of names, a size.
  const auto size = moment->state(file->number)->size;
  std::string inode(16, '\0');
  store_le<std::uint16_t>(inode.data(), 0100644);
  store_le<std::uint16_t>(inode.data() + 2, 1);
  store_le<std::uint64_t>(inode.data() + 8, size);
  std::string larger = inode;
  store_le<std::uint64_t>(larger.data() + 8, std::uint64_t{1} << 50);
  made.put(made.find(inode), larger);
  const auto at = made.flush();
  auto later = made.past();
  moment = TskMoment::open(later, at).value();
  EXPECT_EQ(moment->state(file->number)->size, std::uint64_t{1} << 50);
  EXPECT_EQ(moment->contents(file->number).error().code, ErrorCode::kCorrupt);
}

TEST(TskMomentTest, WithoutAFileSystemThatIsSaid) {
  MadeForeign made("true", 4u << 20);
  auto past = made.past();
  EXPECT_EQ(TskMoment::open(past, {}).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace mariner::uvfs

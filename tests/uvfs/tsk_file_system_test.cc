#include "uvfs/tsk_file_system.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/uvfs/opened_foreign.h"

namespace mariner::uvfs {
namespace {

bool overlaps(const std::vector<ByteRange>& ranges, std::uint64_t at) {
  return std::ranges::any_of(
      ranges, [at](const ByteRange& each) { return each.offset <= at && at < each.end(); });
}

TEST(TskFileSystemTest, WhatIsReadForAnObjectIsItsOwn) {
  MadeNtfs made;
  for (int i = 0; i < 4; ++i) made.copy(std::string(50'000, 'x'), "/file" + std::to_string(i));
  OpenedForeign opened(made);
  const auto root = opened.names(opened.files->root());
  const auto place = [&](const std::string& name) {
    return made.first_record() + shown_number(root.at(name)) * 1024;
  };
  const auto read = opened.read_for(root.at("file1"));
  EXPECT_EQ(read, (std::vector<ByteRange>{{place("file1"), 1024}}));
  // And nothing of it in opening.
  EXPECT_FALSE(overlaps(opened.read_by, place("file1")));
  EXPECT_TRUE(overlaps(opened.read_by, 0));
  EXPECT_TRUE(overlaps(opened.read_by, made.first_record()));
}

TEST(TskFileSystemTest, WhatWasReadForAnotherIsReadAgain) {
  MadeFat made("-F 16 -s 1", 6u << 20);
  made.copy(std::string(5000, 'x'), "/one");
  made.copy(std::string(5000, 'x'), "/other");
  OpenedForeign opened(made);
  const auto root = opened.names(opened.files->root());
  const auto first = opened.read_for(root.at("one"));
  (void)opened.read_for(root.at("other"));
  EXPECT_EQ(opened.read_for(root.at("one")), first);
  EXPECT_GE(first.size(), 2u);  // its entry, and the table
}

TEST(TskFileSystemTest, WhatWasReadForAnotherInExfatIsReadAgain) {
  MadeExfat made;
  (void)made.make(u"one", std::string(5000, 'x'), 5000);
  (void)made.make(u"other", std::string(5000, 'x'), 5000);
  OpenedForeign opened(made);
  const auto root = opened.names(opened.files->root());
  const auto first = opened.read_for(root.at("one"));
  (void)opened.read_for(root.at("other"));
  EXPECT_EQ(opened.read_for(root.at("one")), first);
}

TEST(TskFileSystemTest, OfFatIsKnownWhatOpeningHasLearned) {
  MadeFat made("-F 16 -s 1", 6u << 20);
  const std::string before = OpenedForeign(made).files->learned();
  EXPECT_NE(before, "");
  // (Opening reads the root directory.)
  made.copy("x", "/x");
  EXPECT_EQ(OpenedForeign(made).files->learned(), before);
  made.put(37, "\1");  // it was not unmounted, says the boot sector
  EXPECT_NE(OpenedForeign(made).files->learned(), before);
  MadeNtfs other;
  EXPECT_EQ(OpenedForeign(other).files->learned(), "");
}

TEST(TskFileSystemTest, AnotherFileSystemHasAnotherIdentity) {
  MadeFat made("-F 12", 2u << 20);
  const std::string before = OpenedForeign(made).files->identity();
  EXPECT_EQ(OpenedForeign(made).files->identity(), before);
  made.copy("x", "/x");
  EXPECT_EQ(OpenedForeign(made).files->identity(), before);
  MadeFat other("-F 12 -i 87654321", 2u << 20);
  EXPECT_NE(OpenedForeign(other).files->identity(), before);
}

TEST(TskFileSystemTest, WhatIsNoneIsNotFound) {
  MadeForeign made("true", 4u << 20);
  EXPECT_EQ(OpenedForeign(made).error.code, ErrorCode::kNotFound);
  MadeFat fat("-F 12", 2u << 20);
  OpenedForeign opened(fat, TskFileSystem::Kind::kNtfs);
  EXPECT_EQ(opened.error.code, ErrorCode::kNotFound);
  EXPECT_TRUE(overlaps(opened.read_by, 0));
}

// (libtsk frees what it has read a record into, and may get its place for something else.)
TEST(TskFileSystemTest, WhatItIsOpenedByDoesNotDependOnWhereMemoryIs) {
  std::mt19937 random(1);
  for (const char* cluster : {"512", "1024", "4096"}) {
    MadeForeign made(std::string("mkntfs -q -F -f -c ") + cluster, 8u << 20);
    OpenedForeign opened(made);
    ASSERT_NE(opened.files, nullptr);
    for (int i = 0; i < 2000; ++i) {
      std::vector<std::unique_ptr<char[]>> places;
      for (int k = 0; k < 20; ++k) places.emplace_back(new char[256 + random() % 4096]);
      std::ranges::shuffle(places, random);
      places.resize(random() % places.size());
      ASSERT_EQ(opened.opened_again_by(TskFileSystem::Kind::kNtfs), opened.read_by) << i;
    }
  }
}

TEST(TskFileSystemTest, RangesOfReadsAreMerged) {
  EXPECT_EQ(merged_ranges({{100, 10}, {0, 10}, {10, 5}, {12, 20}, {101, 2}}),
            (std::vector<ByteRange>{{0, 32}, {100, 10}}));
}

}  // namespace
}  // namespace mariner::uvfs

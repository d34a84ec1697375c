#include "ifsck/finding.h"

#include <gtest/gtest.h>

#include <set>

namespace mariner::ifsck {
namespace {

TEST(Finding, EachIsSaidInWordsOfItsOwn) {
  std::set<std::string> texts;
  const auto last = static_cast<int>(Finding::Code::kDirectories);
  for (int code = 0; code <= last; ++code) {
    texts.insert(describe({.code = static_cast<Finding::Code>(code), .inode = 12, .block = 34}));
  }
  EXPECT_EQ(texts.size(), static_cast<std::size_t>(last) + 1);
  EXPECT_FALSE(texts.contains("?"));
  EXPECT_EQ(
      describe(
          {.code = Finding::Code::kFreeInodes, .group = Finding::kAll, .expected = 5, .found = 6}),
      "the file system: free inodes: 5 are expected, 6 are said");
}

}  // namespace
}  // namespace mariner::ifsck

#include <gmock/gmock.h>

#include "tests/uvfs/program/program_files.h"

namespace mariner::uvfs {
namespace {

using testing::HasSubstr;

class CatVerb : public ProgramFiles {};

TEST_F(CatVerb, PrintsBytes) {
  const std::string before("one\0\xff two\n", 10);
  file("one", before);
  file("two", "two\n");
  const SequenceNumber one = change("write {}/one f\n");
  const SequenceNumber two = change("rm f\nwrite {}/two f\n");
  EXPECT_EQ(say({"cat", at("/f", one)}), before);
  EXPECT_EQ(say({"cat", at("/f", two)}), "two\n");
  EXPECT_EQ(say({"cat", "/f"}), "two\n");
  EXPECT_EQ(say({"cat", "/a/b/sparse@#0"}).size(), 899u * 50'000 + 4);
}

TEST_F(CatVerb, WhatIsNoFileIsRefused) {
  EXPECT_THAT(refuse(2, {"cat", "/a"}), HasSubstr("/a is no file but a directory"));
  EXPECT_THAT(refuse(1, {"cat", "/none"}), HasSubstr("/none was not there"));
  EXPECT_THAT(refuse(3, {"cat", "/a/large@#99999"}), HasSubstr("not there yet"));
}

}  // namespace
}  // namespace mariner::uvfs

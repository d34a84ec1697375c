#include <gmock/gmock.h>

#include "proto/files.pb.h"
#include "tests/uvfs/program/program_files.h"

namespace mariner::uvfs {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;

class FindVerb : public ProgramFiles {
 protected:
  std::vector<std::string> paths(const std::vector<std::string>& words) {
    std::vector<std::string> all;
    const auto found = ask<api::FoundFiles>(words);
    for (const auto& each : found.files()) {
      all.push_back(each.path().text());
    }
    return all;
  }
};

TEST_F(FindVerb, WhatWasDeletedCanBeRead) {
  file("lost", "found\n");
  const SequenceNumber made = change("mkdir d\ncd d\nwrite {}/lost \"a file\"\n");
  const SequenceNumber gone = change("rm \"d/a file\"\nrmdir d\n");
  EXPECT_THAT(paths({"find", "/", "--deleted"}), ElementsAre("/d", "/d/a file"));
  EXPECT_THAT(paths({"find", "--deleted", "--type", "f"}), ElementsAre("/d/a file"));
  EXPECT_THAT(paths({"find", "--deleted", "--until", "#" + std::to_string(made.value)}),
              ElementsAre());
  const auto found = ask<api::FoundFiles>({"find", "/d", "--deleted", "--name", "a*"});
  ASSERT_EQ(found.files_size(), 1);
  const auto& one = found.files(0);
  EXPECT_LE(one.deleted().sequence(), gone.value);
  EXPECT_EQ(one.argument(), "'/d/a file'@#" + std::to_string(one.deleted().sequence() - 1));
  EXPECT_EQ(say({"cat", "/d/a file@#" + std::to_string(one.deleted().sequence() - 1)}), "found\n");
  EXPECT_THAT(say({"find", "/", "--deleted"}), HasSubstr(one.argument() + "\n"));
}

TEST_F(FindVerb, WhatExisted) {
  EXPECT_THAT(paths({"find", "/a", "--type", "d"}), ElementsAre("/a", "/a/b", "/a/b/c"));
  EXPECT_THAT(paths({"find", "--type", "l"}), ElementsAre("/long", "/short"));
  EXPECT_EQ(paths({"find", "/many", "--name", "*number 1?"}).size(), 10u);
  EXPECT_THAT(say({"find", "/a"}), ContainsRegex("FROM +UNTIL +KIND +SIZE +PATH\n"));
  EXPECT_THAT(refuse(1, {"find", "/none"}), HasSubstr("/none never was there"));
}

}  // namespace
}  // namespace mariner::uvfs

#include <gmock/gmock.h>

#include "proto/files.pb.h"
#include "tests/uvfs/program/program_files.h"

namespace mariner::uvfs {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class LsVerb : public ProgramFiles {};

TEST_F(LsVerb, ListsWhatWasThere) {
  file("hello", "hello\n");
  const SequenceNumber made = change("write {}/hello new\nmknod pipe p\n");
  const SequenceNumber gone = change("rm new\n");
  const std::string text = say({"ls", at("/", made)});
  EXPECT_THAT(text, ContainsRegex("MODE +LINKS +USER +GROUP +SIZE +MODIFIED +NAME"));
  EXPECT_THAT(text, ContainsRegex("\n-r[-wxr]+ +1 +[0-9]+ +[0-9]+ +6 +[-0-9: ]+  new\n"));
  EXPECT_THAT(text, HasSubstr("  short -> a/large\n"));
  EXPECT_THAT(text, HasSubstr("\ndrwx"));
  EXPECT_THAT(text, HasSubstr("\np"));
  EXPECT_THAT(text, HasSubstr("#" + std::to_string(made.value)));
  EXPECT_THAT(say({"ls", at("/", gone)}), Not(HasSubstr("  new\n")));
  EXPECT_THAT(say({"ls", "/"}), Not(HasSubstr("  new\n"))) << "now";
  EXPECT_THAT(say({"ls", ":/a/b@#0", "--quiet"}), ContainsRegex("^MODE"));
}

TEST_F(LsVerb, AFileListsItself) {
  const auto list = ask<api::FileList>({"ls", "/a/large@#0"});
  ASSERT_EQ(list.entries_size(), 1);
  EXPECT_EQ(list.entries(0).name().text(), "/a/large");
  EXPECT_EQ(list.entries(0).object().kind(), "file");
  EXPECT_EQ(list.entries(0).object().size(), 6u << 20);
  EXPECT_EQ(list.entries(0).object().links(), 2u);
  EXPECT_EQ(list.schema(), 1u);
  const auto link = ask<api::FileList>({"ls", "/long@#0"});
  EXPECT_EQ(link.entries(0).object().target().text(), std::string(200, 's'));
}

TEST_F(LsVerb, AMomentIsMendedWhenSomethingInItCannotBeRead) {
  file("one", "one\n");
  const SequenceNumber sound = change("write {}/one f\nmkdir d\nwrite {}/one d/g\n");
  const SequenceNumber torn = change("clri f\n");
  const auto before = ask<api::FileList>({"ls", at("/", sound)});
  EXPECT_FALSE(before.mended());
  EXPECT_EQ(run({"ls", at("/", torn)}), 0);
  EXPECT_THAT(made_.take(), AllOf(HasSubstr("  d\n"), Not(HasSubstr("  f\n"))));
  EXPECT_THAT(made_.take_errors(), HasSubstr("it was mended for this reading"));
  const auto list = ask<api::FileList>({"ls", at("/", torn)});
  EXPECT_TRUE(list.mended());
  EXPECT_EQ(list.entries_size(), before.entries_size() - 1);
  EXPECT_EQ(list.skipped_size(), 0);
  // Where nothing is wrong nothing is mended, whatever is wrong elsewhere.
  EXPECT_FALSE(ask<api::FileList>({"ls", at("/d", torn)}).mended());
  EXPECT_THAT(refuse(1, {"ls", at("/f", torn)}), HasSubstr("/f was not there"));
}

TEST_F(LsVerb, WhatIsNotThereIsSaidWithWhatToDo) {
  EXPECT_THAT(refuse(1, {"ls", "/nothing@#0"}),
              HasSubstr("/nothing was not there at #0; uvfs find --deleted"));
  EXPECT_THAT(refuse(1, {"ls", "/short/x@#0"}),
              HasSubstr("/short is a symbolic link to a/large, which is not followed"));
}

}  // namespace
}  // namespace mariner::uvfs

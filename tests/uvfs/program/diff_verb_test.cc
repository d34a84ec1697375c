#include <gmock/gmock.h>

#include "proto/files.pb.h"
#include "tests/uvfs/program/program_files.h"

namespace mariner::uvfs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class DiffVerb : public ProgramFiles {
 protected:
  static std::string number(SequenceNumber at) { return "@#" + std::to_string(at.value); }
};

TEST_F(DiffVerb, OfTwoFiles) {
  file("one", "a\nb\nc\n");
  file("two", "a\nB\nc\n");
  file("bytes", std::string("a\0b", 3));
  const SequenceNumber one = change("write {}/one f\n");
  const SequenceNumber two = change("rm f\nwrite {}/two f\n");
  const SequenceNumber three = change("rm f\nwrite {}/bytes f\nwrite {}/one g\n");
  const std::string text = say({"diff", at("/f", one), number(two)});
  EXPECT_THAT(text, StartsWith("--- /f" + number(one) + "  1970-01-01T00:"));
  EXPECT_THAT(text, HasSubstr("@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"));
  EXPECT_EQ(say({"diff", at("/f", one), number(one)}), "");
  EXPECT_EQ(say({"diff", at("/f", one), at("/g", three)}), "");
  EXPECT_EQ(say({"diff", at("/f", one), number(three)}),
            "Binary files /f" + number(one) + " and /f" + number(three) + " differ\n");
  const auto diff = ask<api::FileDiff>({"diff", at("/f", two), number(one)});
  EXPECT_TRUE(diff.differ());
  EXPECT_THAT(diff.unified(), HasSubstr("-B\n+b\n"));
  EXPECT_THAT(refuse(1, {"diff", "/f@#0", number(one)}), HasSubstr("/f was not there at #0"));
  EXPECT_THAT(refuse(2, {"diff", at("/f", one), "@sometime"}), HasSubstr("append @now"));
}

TEST_F(DiffVerb, OfDirectories) {
  file("one", "a\n");
  const SequenceNumber before = change(
      "write {}/one a/old\nwrite {}/one a/same\n"
      "write {}/one a/kind\nwrite {}/one a/twice\n");
  (void)change("write {}/one a/between\n");
  const SequenceNumber after = change(
      "rm a/between\nrm a/old\nmkdir a/new\nrm a/kind\nsymlink a/kind anywhere\n"
      "set_inode_field a/twice uid 5\nset_inode_field a/b/c mode 040700\n");
  const auto changes = [&](SequenceNumber from, SequenceNumber to) {
    std::vector<std::string> all;
    const auto diff = ask<api::FileDiff>({"diff", at("/a", from), number(to)});
    for (const auto& each : diff.changes()) {
      all.push_back(each.path().text() + " " + each.change());
    }
    return all;
  };
  EXPECT_THAT(changes(before, after), ElementsAre("/a/b/c modified", "/a/kind type", "/a/new added",
                                                  "/a/old removed", "/a/twice modified"));
  EXPECT_THAT(changes(after, before),
              ElementsAre("/a/b/c modified", "/a/kind type", "/a/new removed", "/a/old added",
                          "/a/twice modified"));
  EXPECT_EQ(say({"diff", at("/a", before), number(after)}),
            "M /a/b/c\nT /a/kind\nA /a/new\nD /a/old\nM /a/twice\n");
  EXPECT_THAT(refuse(2, {"diff", at("/a", before), at("/many", after)}),
              HasSubstr("one path at two moments"));
}

}  // namespace
}  // namespace mariner::uvfs

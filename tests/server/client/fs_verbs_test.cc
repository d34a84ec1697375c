#include <gmock/gmock.h>

#include "tests/server/client/stand_in_program.h"

namespace mariner::client {
namespace {

using testing::ExitedWithCode;
using testing::HasSubstr;

class FsVerbs : public StandInProgramTest {
 protected:
  FsVerbs() : StandInProgramTest("uvfs", 3) {}
};

TEST_F(FsVerbs, WordsAreHandedOver) {
  EXPECT_EXIT(become({"fs", "ls", "db1:/etc@-1h", "--socket", "/s"}), ExitedWithCode(3),
              "\\[ls db1:/etc@-1h --socket /s\\]");
  EXPECT_EXIT(become({"--json", "fs", "cat", "db1:/a", "--quiet", "--no-color", "--socket", "/s"}),
              ExitedWithCode(3), "\\[cat db1:/a --socket /s --json --quiet --no-color\\]");
  EXPECT_EXIT(become({"fs", "versions", "db1:/a", "--below", "--every-write", "--since", "-1d",
                      "--until", "#7", "--socket", "/s"}),
              ExitedWithCode(3),
              "\\[versions db1:/a --since -1d --until #7 --below --every-write --socket /s\\]");
  EXPECT_EXIT(become({"fs", "incarnations", "db1:/a", "--since", "-1d", "--socket", "/s"}),
              ExitedWithCode(3), "\\[incarnations db1:/a --since -1d --socket /s\\]");
  EXPECT_EXIT(become({"fs", "diff", "db1:/a@#1", "@#2", "--socket", "/s"}), ExitedWithCode(3),
              "\\[diff db1:/a@#1 @#2 --socket /s\\]");
  EXPECT_EXIT(
      become({"fs", "find", "db1", "--deleted", "--name", "x", "--type", "f", "--socket", "/s"}),
      ExitedWithCode(3), "\\[find db1 --name x --type f --deleted --socket /s\\]");
  EXPECT_EXIT(become({"fs", "restore", "db1:/a@-1h", "--to", "./a", "--force", "--dry-run",
                      "--socket", "/s"}),
              ExitedWithCode(3), "\\[restore db1:/a@-1h --to ./a --force --dry-run --socket /s\\]");
}

TEST_F(FsVerbs, WordsThatMakeNoSenseDoNotReachIt) {
  EXPECT_EXIT(become({"fs"}), ExitedWithCode(2), "");
  EXPECT_EXIT(become({"fs", "ls"}), ExitedWithCode(2), "");
  EXPECT_EXIT(become({"fs", "diff", "db1:/a@#1"}), ExitedWithCode(2), "");
  EXPECT_EXIT(become({"fs", "restore", "db1:/a@#1"}), ExitedWithCode(2), "");
  EXPECT_EXIT(become({"fs", "find", "db1", "--type", "x"}), ExitedWithCode(2), "");
}

TEST_F(FsVerbs, WithoutTheProgramThatIsSaid) {
  run_without_program({"fs", "ls", "db1:/"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(err, HasSubstr("the program uvfs, which reads the files of the past, is neither"));
}

}  // namespace
}  // namespace mariner::client

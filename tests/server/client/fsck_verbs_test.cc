#include <gmock/gmock.h>

#include "tests/server/client/stand_in_program.h"

namespace mariner::client {
namespace {

using testing::ExitedWithCode;
using testing::HasSubstr;

class FsckVerbs : public StandInProgramTest {
 protected:
  FsckVerbs() : StandInProgramTest("ifsck", 10) {}
};

TEST_F(FsckVerbs, CheckHandsOver) {
  EXPECT_EXIT(become({"fsck", "db1@14:32:05", "--socket", "/s"}), ExitedWithCode(10),
              "\\[check db1@14:32:05 --socket /s\\]");
  EXPECT_EXIT(become({"--json", "fsck", "db1@#7", "--level", "3", "--path", "/etc", "--quiet",
                      "--no-color", "--dry-run", "--socket", "/s"}),
              ExitedWithCode(10),
              "\\[check db1@#7 --level 3 --path /etc --no-save --socket /s --json --quiet "
              "--no-color\\]");
}

TEST_F(FsckVerbs, FindCleanHandsOver) {
  EXPECT_EXIT(become({"find-clean", "db1", "--socket", "/s"}), ExitedWithCode(10),
              "\\[find-clean db1 --socket /s\\]");
  EXPECT_EXIT(become({"find-clean", "db1", "--before", "-10m", "--socket", "/s"}),
              ExitedWithCode(10), "\\[find-clean db1 --before -10m --socket /s\\]");
}

TEST_F(FsckVerbs, WordsThatMakeNoSenseDoNotReachIt) {
  EXPECT_EXIT(become({"fsck"}), ExitedWithCode(2), "");
  EXPECT_EXIT(become({"fsck", "db1@sometime"}), ExitedWithCode(2), "");
  EXPECT_EXIT(become({"fsck", "db1", "--level", "4"}), ExitedWithCode(2), "");
  EXPECT_EXIT(become({"find-clean", "db1", "--before", "sometime"}), ExitedWithCode(2), "");
}

TEST_F(FsckVerbs, WithoutTheProgramThatIsSaid) {
  run_without_program({"fsck", "db1"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(err, HasSubstr("the program ifsck, which checks file systems, is neither"));
  EXPECT_TRUE(control.asked.empty());
}

}  // namespace
}  // namespace mariner::client

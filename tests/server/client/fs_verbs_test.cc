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

// The daemon has the program, and tells what it says.
class FsQueries : public DaemonTest {
 protected:
  FsQueries() { control.of_files.error.reset(); }
};

TEST_F(FsQueries, TheDaemonAnswers) {
  control.of_files.bytes = "a file\n";
  control.of_files.errors = "uvfs: half of it\n";
  control.of_files.exit_code = 3;
  run({"fs", "find", "db1", "--since", "-1d", "--name", "x", "--type", "f", "--deleted"});
  EXPECT_EQ(code, 3);
  EXPECT_EQ(out, "a file\n");
  EXPECT_EQ(err, "uvfs: half of it\n");
  EXPECT_EQ(control.of_files.asked,
            "verb: \"find\" object: \"db1\" since: \"-1d\" deleted: true name: \"x\" type: \"f\" "
            "time_zone: \"Europe/Berlin\"");
  run({"--json", "fs", "diff", "db1:/a@#1", "@#2", "--quiet"});
  EXPECT_EQ(control.of_files.asked,
            "verb: \"diff\" object: \"db1:/a@#1\" other: \"@#2\" json: true quiet: true "
            "time_zone: \"Europe/Berlin\"");
}

TEST_F(FsQueries, ItsErrorsAreSaid) {
  control.of_files.error = Error{ErrorCode::kLimit, "8 questions"};
  run({"fs", "ls", "db1:/"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(err, HasSubstr("mariner: 8 questions"));
}

}  // namespace
}  // namespace mariner::client

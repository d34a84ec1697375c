#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/logging/temporary_directory.h"
#include "tests/server/client/daemon.h"

namespace mariner::client {
namespace {

using testing::ExitedWithCode;
using testing::HasSubstr;

// In the place of ifsck stands a script that says its words, and ends with 10.
class FsckVerbs : public DaemonTest {
 protected:
  FsckVerbs() {
    const std::string program = folder_ + "/ifsck";
    std::ofstream(program) << "#!/bin/sh\necho \"[$*]\" >&2\nexit 10\n";
    ::chmod(program.c_str(), 0755);
  }
  // Never returns if ifsck was found.
  void become(const std::vector<std::string>& words) {
    ::setenv("PATH", (folder_ + ":/bin").c_str(), 1);
    run_as_is(words);
    std::exit(code);
  }

  logging::test::TemporaryDirectory made_;
  const std::string folder_ = made_.file("");
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
  const char* const set = std::getenv("PATH");
  const std::string path = set == nullptr ? "" : set;
  ::unsetenv("PATH");
  run({"fsck", "db1"});
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(code, 1);
  EXPECT_THAT(err, HasSubstr("the program ifsck, which checks file systems, is neither"));
  EXPECT_TRUE(control.asked.empty());
}

}  // namespace
}  // namespace mariner::client

#include "uvfs/program/files_command.h"

#include <gmock/gmock.h>

#include "tests/uvfs/program/program_files.h"

namespace mariner::uvfs {
namespace {

using testing::HasSubstr;

class FilesCommand : public ProgramFiles {};

TEST_F(FilesCommand, SaysWhatIsWrongWithTheWords) {
  const ifsck::Utc zone;
  EXPECT_EQ(run_as_is({}, zone), 2);
  EXPECT_EQ(run_as_is({"ls"}, zone), 2);
  EXPECT_EQ(run_as_is({"restore", "/a"}, zone), 2);
  EXPECT_EQ(run_as_is({"--version"}, zone), 0);
  EXPECT_EQ(run_as_is({"ls", "db1"}, zone), 2);
  EXPECT_THAT(made_.take_errors(), HasSubstr("expected VOLUME:PATH[@TIME]"));
  EXPECT_EQ(run_as_is({"ls", "db1:/a", "--socket", folder_.file("nobody")}, zone), 1);
  EXPECT_THAT(refuse(2, {"ls", "db1:/a"}), HasSubstr("with --image, expected PATH[@TIME]"));
  EXPECT_THAT(refuse(2, {"ls", "/a/../b"}), HasSubstr("\"..\" is not followed"));
}

TEST_F(FilesCommand, WhatIsNoFileSystemIsSaid) {
  const ifsck::Utc zone;
  const std::string none = folder_.file("none");
  std::ofstream(none) << std::string(100'000, 'n');
  EXPECT_EQ(run_as_is({"ls", "/", "--image", none}, zone), 1);
  EXPECT_THAT(made_.take_errors(), HasSubstr("expected ext2, ext3, ext4, NTFS"));
  EXPECT_EQ(run_as_is({"ls", "/", "--image", image_}, zone), 0) << "without a trace";
  made_.take();
  EXPECT_EQ(run_as_is({"ls", "/x", "--image", image_, "--json"}, zone), 1);
  EXPECT_EQ(admin::error_from_json(made_.take()).code, ErrorCode::kNotFound);
}

// Where this is refused nothing of a file system is parsed.
TEST_F(FilesCommand, GivesUpWhatItDoesNotNeedBeforeItReads) {
  std::vector<client::SandboxRules> given_up;
  confine_ = [&](const client::SandboxRules& rules) -> Result<void> {
    given_up.push_back(rules);
    return Error{ErrorCode::kIo, "no sandbox"};
  };
  using Files = client::SandboxRules::Files;
  const std::string to = folder_.file("to");
  for (const std::vector<std::string>& each :
       std::vector<std::vector<std::string>>{{"ls", "/"},
                                             {"cat", "/nothing"},
                                             {"versions", "/nothing"},
                                             {"incarnations", "/nothing"},
                                             {"diff", "/@#0", "@now"},
                                             {"find", "/"}}) {
    EXPECT_THAT(refuse(1, each), HasSubstr("uvfs: no sandbox")) << each.front();
    ASSERT_EQ(given_up.size(), 1u) << each.front();
    EXPECT_EQ(given_up.back().files, Files::kNone);
    given_up.clear();
  }
  EXPECT_THAT(refuse(1, {"restore", "/nothing", "--to", to}), HasSubstr("uvfs: no sandbox"));
  ASSERT_EQ(given_up.size(), 1u);
  EXPECT_EQ(given_up.back().files, Files::kMade);
  EXPECT_GE(given_up.back().folder, 0);
}

TEST_F(FilesCommand, PrintsAsForATerminalIfThatIsSaid) {
  EXPECT_EQ(say({"ls", "/"}).find('\x1b'), std::string::npos);
  EXPECT_NE(say({"ls", "/", "--terminal"}).find('\x1b'), std::string::npos);
  EXPECT_EQ(say({"ls", "/", "--terminal", "--no-color"}).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace mariner::uvfs

#include "server/client/helper_program.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "tests/server/client/script_folder.h"

namespace mariner::client {
namespace {

using ::testing::HasSubstr;

class HelperProgramTest : public ScriptFolderTest {};

TEST_F(HelperProgramTest, PrintsAndEnds) {
  const auto ended = run_program(script("a", "cat; echo \"$2\"; exit 10"), {"x", "two words"});
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->exit_code, 10);
  EXPECT_EQ(ended->out, "two words\n");
  EXPECT_THAT(run_program(script("b", "kill -9 $$"), {}).error().message,
              HasSubstr("was ended by signal 9"));
  EXPECT_EQ(run_program(in("none"), {}).error().code, ErrorCode::kIo);
  EXPECT_EQ(run_program(script("c", "exec cat /dev/zero"), {}).error().code, ErrorCode::kLimit);
}

TEST_F(HelperProgramTest, OneBecomesIt) {
  const std::string program = script("a", "echo \"I am $1\" >&2; exit 3");
  EXPECT_EXIT((void)become(program, {"it"}), ::testing::ExitedWithCode(3), "I am it");
  EXPECT_THAT(become(in("none"), {}).message, HasSubstr("cannot be started"));
}

}  // namespace
}  // namespace mariner::client

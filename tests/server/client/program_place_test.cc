#include "server/client/program_place.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "tests/server/client/script_folder.h"

namespace mariner::client {
namespace {

using ::testing::HasSubstr;

class ProgramPlaceTest : public ScriptFolderTest {};

TEST_F(ProgramPlaceTest, IsFoundBesideTheCommandOrInThePath) {
  const std::string self = in("build/server/client/mariner");
  std::filesystem::create_directories(in("build/server/client"));
  const auto none = find_program(kFsckProgram, {self, in("nowhere") + "::" + in("some")});
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(none.error().message, HasSubstr("neither in " + in("build/server/client")));
  script("data", "", 0644);
  std::filesystem::create_directories(in("folder/ifsck"));
  const std::string path = in("data") + ":" + in("folder") + ":" + in("some");
  script("some");
  EXPECT_EQ(*find_program(kFsckProgram, {self, path}), in("some/ifsck"))
      << "the first that is a program";
  script("build/ifsck/program");
  EXPECT_TRUE(std::filesystem::equivalent(*find_program(kFsckProgram, {self, path}),
                                          in("build/ifsck/program/ifsck")));
  EXPECT_THAT(find_program(kFilesProgram, {self, path}).error().message,
              HasSubstr("the program uvfs, which reads the files of the past, is neither in"));
  script("build/server/client");
  EXPECT_EQ(*find_program(kFsckProgram, {self, path}), in("build/server/client/ifsck"));
}

}  // namespace
}  // namespace mariner::client

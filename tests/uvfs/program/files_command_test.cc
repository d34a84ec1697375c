#include "uvfs/program/files_command.h"

#include <gmock/gmock.h>

#include "tests/uvfs/program/made_files.h"

namespace mariner::uvfs {
namespace {

using testing::HasSubstr;

class FilesCommand : public MadeFiles {};

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

}  // namespace
}  // namespace mariner::uvfs

#include "server/client/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/bytes.h"
#include "tests/server/client/image_folder.h"

namespace mariner::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class OutputFileTest : public ::testing::Test {
 protected:
  ImageFolder folder_;
};

TEST_F(OutputFileTest, HasItsNameOnceItIsWhole) {
  auto file = folder_.open("disk.raw");
  EXPECT_FALSE(file->is_device());
  ASSERT_TRUE(file->write(4, as_byte_span("data")));
  ASSERT_TRUE(file->set_length(12));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("disk.raw")));
  ASSERT_TRUE(file->commit());
  file.reset();
  EXPECT_EQ(folder_.text("disk.raw"), std::string("\0\0\0\0data\0\0\0\0", 12));
  EXPECT_THAT(folder_.names(), ElementsAre("disk.raw"));
  struct stat status {};
  ASSERT_EQ(::stat(folder_.path("disk.raw").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u) << "what is on a disk is not for everybody";
}

TEST_F(OutputFileTest, LeavesNothingWhereItWasNotWhole) {
  auto file = folder_.open("disk.raw");
  ASSERT_TRUE(file->write(0, as_byte_span("data")));
  file.reset();
  EXPECT_THAT(folder_.names(), IsEmpty());
}

TEST_F(OutputFileTest, ReplacesByForceOnlyAndInTheEnd) {
  folder_.put("disk.raw", "old");
  const auto refused = OutputFile::open(folder_.path("disk.raw"), false);
  EXPECT_EQ(refused.error().code, ErrorCode::kAlreadyExists);
  EXPECT_THAT(refused.error().message, HasSubstr("disk.raw exists"));
  EXPECT_THAT(refused.error().message, HasSubstr("--force"));
  EXPECT_EQ(*OutputFile::look(folder_.path("disk.raw"), true), OutputFile::Kind::kReplaced);
  folder_.open("disk.raw", true).reset();
  EXPECT_EQ(folder_.text("disk.raw"), "old");
  auto file = folder_.open("disk.raw", true);
  ASSERT_TRUE(file->write(0, as_byte_span("new")));
  EXPECT_EQ(folder_.text("disk.raw"), "old");
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(folder_.text("disk.raw"), "new");
  EXPECT_THAT(folder_.names(), ElementsAre("disk.raw"));
}

TEST_F(OutputFileTest, WhatHasTheNameByNowStays) {
  auto file = folder_.open("disk.raw");
  ASSERT_TRUE(file->write(0, as_byte_span("mine")));
  folder_.put("disk.raw", "theirs");
  EXPECT_EQ(file->commit().error().code, ErrorCode::kAlreadyExists);
  file.reset();
  EXPECT_EQ(folder_.text("disk.raw"), "theirs");
  EXPECT_THAT(folder_.names(), ElementsAre("disk.raw"));
}

TEST_F(OutputFileTest, PlacesWithoutSenseAreRefused) {
  const auto code_of = [](const std::string& path) {
    const auto file = OutputFile::open(path, true);
    return file ? ErrorCode::kMiscompare : file.error().code;
  };
  EXPECT_EQ(code_of(""), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(folder_.path("")), ErrorCode::kInvalidArgument) << "a directory";
  EXPECT_EQ(code_of(folder_.path(".")), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of("/dev/null"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(folder_.path("missing/disk.raw")), ErrorCode::kIo);
}

TEST_F(OutputFileTest, WhatCannotBeWrittenIsSaidWithItsName) {
  auto file = folder_.open("disk.raw");
  const Result<void> written = file->write(std::uint64_t{1} << 62, as_byte_span("far"));
  ASSERT_FALSE(written) << "longer than any file";
  EXPECT_THAT(written.error().message, HasSubstr("disk.raw: write: "));
}

TEST_F(OutputFileTest, ARangeIsZeroed) {
  folder_.put("old", std::string(64 << 10, 'x'));
  const int fd = ::open(folder_.path("old").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(zero_range(fd, {4096, 8192}), 0);
  EXPECT_EQ(zero_range(fd, {4096, 0}), 0);
  ::close(fd);
  EXPECT_EQ(folder_.text("old"), std::string(4096, 'x') + std::string(8192, '\0') +
                                     std::string((64 << 10) - 12288, 'x'));
  EXPECT_EQ(zero_range(-1, {0, 4096}), EBADF);
}

}  // namespace
}  // namespace mariner::client

#include "logging/timed_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/logging/temporary_directory.h"

namespace mariner::logging {
namespace {

using Access = TimedDevice::Access;
using test::TemporaryDirectory;
using ::testing::HasSubstr;

void expect_refused(const std::string& path, Access access, ErrorCode code,
                    const std::string& words) {
  const auto device = TimedDevice::open(path, access);
  ASSERT_FALSE(device.has_value());
  EXPECT_EQ(device.error().code, code) << device.error().message;
  EXPECT_THAT(device.error().message, HasSubstr(words));
  EXPECT_THAT(device.error().message, HasSubstr(path));
}

class TimedDeviceTest : public ::testing::Test {
 protected:
  std::string file_of(std::size_t bytes) {
    const std::string path = directory_.file("file");
    std::ofstream(path) << std::string(bytes, 'x');
    return path;
  }
  TemporaryDirectory directory_;
};

TEST_F(TimedDeviceTest, ReadsAFileInSectorsOfABlock) {
  const auto device = TimedDevice::open(file_of(3 * 4096 + 100), Access::kRead);
  ASSERT_TRUE(device.has_value()) << device.error().message;
  EXPECT_TRUE((*device)->is_file());
  EXPECT_EQ((*device)->sector_bytes(), 4096u);
  EXPECT_EQ((*device)->sectors(), 3u);
  const auto first = (*device)->access(2);
  const auto second = (*device)->access(0);
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_GE(*second, *first);
}

TEST_F(TimedDeviceTest, RefusesWhatIsNoDisk) {
  expect_refused(directory_.file("."), Access::kRead, ErrorCode::kInvalidArgument, "a directory");
  expect_refused("/dev/null", Access::kRead, ErrorCode::kInvalidArgument, "a character device");
  const std::string pipe = directory_.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_refused(pipe, Access::kRead, ErrorCode::kInvalidArgument, "a pipe");
  expect_refused(directory_.file("none"), Access::kRead, ErrorCode::kNotFound, "does not exist");
}

TEST_F(TimedDeviceTest, RefusesAFileThatIsTooShort) {
  expect_refused(file_of(100), Access::kRead, ErrorCode::kInvalidArgument, "found 100 bytes");
}

TEST_F(TimedDeviceTest, RefusesToWriteToAFile) {
  expect_refused(file_of(8192), Access::kRewrite, ErrorCode::kInvalidArgument, "--write");
}

TEST_F(TimedDeviceTest, RefusesWhatADaemonHolds) {
  const std::string path = file_of(8192);
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  expect_refused(path, Access::kRead, ErrorCode::kBusy, "marinerd");
  ::close(fd);
  EXPECT_TRUE(TimedDevice::open(path, Access::kRead).has_value());
}

TEST_F(TimedDeviceTest, AFileThatShrinksIsAnError) {
  const std::string path = file_of(4 * 4096);
  const auto device = TimedDevice::open(path, Access::kRead);
  ASSERT_TRUE(device.has_value());
  std::filesystem::resize_file(path, 4096);
  const auto done = (*device)->access(3);
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, ErrorCode::kIo);
  EXPECT_THAT(done.error().message, HasSubstr("sector 3"));
}

}  // namespace
}  // namespace mariner::logging

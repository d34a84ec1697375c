#include "tests/bench/counting_file_system.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace mariner::bench {
namespace {

TEST(CountingFileSystemTest, CountsEachReadAndWrite) {
  const std::string path =
      testing::TempDir() + "counting_file_system_test." + std::to_string(::getpid());
  FileCounts counts;
  CountingFileSystem files(rocksdb::FileSystem::Default(), counts);
  std::unique_ptr<rocksdb::FSWritableFile> written;
  ASSERT_TRUE(files.NewWritableFile(path, {}, &written, nullptr).ok());
  ASSERT_TRUE(written->Append("twelve bytes", {}, nullptr).ok());
  ASSERT_TRUE(written->Append("four", {}, nullptr).ok());
  ASSERT_TRUE(written->Close({}, nullptr).ok());
  EXPECT_EQ(counts.writes, 2u);
  EXPECT_EQ(counts.bytes_written, 16u);

  char scratch[64];
  rocksdb::Slice result;
  std::unique_ptr<rocksdb::FSRandomAccessFile> random;
  ASSERT_TRUE(files.NewRandomAccessFile(path, {}, &random, nullptr).ok());
  ASSERT_TRUE(random->Read(12, 64, {}, &result, scratch, nullptr).ok());
  EXPECT_EQ(result.ToString(), "four");
  std::unique_ptr<rocksdb::FSSequentialFile> sequential;
  ASSERT_TRUE(files.NewSequentialFile(path, {}, &sequential, nullptr).ok());
  ASSERT_TRUE(sequential->Read(6, {}, &result, scratch, nullptr).ok());
  EXPECT_EQ(result.ToString(), "twelve");
  EXPECT_EQ(counts.reads, 2u);
  EXPECT_EQ(counts.bytes_read, 10u);

  EXPECT_FALSE(files.NewRandomAccessFile(path + ".none", {}, &random, nullptr).ok());
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace mariner::bench

#include "ifsck/file_reads.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "tests/logging/temporary_directory.h"

namespace mariner::ifsck {
namespace {

class FileReadsTest : public testing::Test {
 protected:
  static constexpr std::size_t kPiece = 512;
  static constexpr std::size_t kPieces = 3 * kReadersMax;

  FileReadsTest() {
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    std::vector<std::byte> all;
    for (std::size_t i = 0; i < kPieces; ++i) all.resize(all.size() + kPiece, std::byte(i + 1));
    EXPECT_EQ(::pwrite(fd_, all.data(), all.size(), 0), static_cast<ssize_t>(all.size()));
  }
  ~FileReadsTest() override { ::close(fd_); }

  // Backwards, so that none follows the one before.
  std::vector<FileRead> all_of_them() {
    std::vector<FileRead> reads;
    for (std::size_t i = kPieces; i-- > 0;) {
      reads.push_back({fd_, i * kPiece, std::span(bytes_).subspan(i * kPiece, kPiece), &path_});
    }
    return reads;
  }
  void expect_all() const {
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      ASSERT_EQ(bytes_[i], std::byte(i / kPiece + 1)) << i;
    }
  }

  int fd_ = -1;
  logging::test::TemporaryDirectory folder_;
  const std::string path_ = folder_.file("pieces");
  std::vector<std::byte> bytes_ = std::vector<std::byte>(kPieces * kPiece);
};

TEST_F(FileReadsTest, WhatIsInThePageCacheIsRead) {
  auto reads = all_of_them();
  ASSERT_TRUE(read_files(reads));
  expect_all();
}

TEST_F(FileReadsTest, WhatIsNotInThePageCacheIsReadByMany) {
  ASSERT_EQ(::fsync(fd_), 0);
  ASSERT_EQ(::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED), 0);
  auto reads = all_of_them();
  ASSERT_TRUE(read_files(reads));
  expect_all();
}

// With gaps of all sizes between them, some larger than is worth reading; and some of a piece
// twice.
TEST_F(FileReadsTest, WhatLiesInBetweenGoesNowhere) {
  std::vector<std::byte> far(1000 * kPiece);
  for (std::size_t i = 0; i < far.size(); ++i) far[i] = static_cast<std::byte>(i / 7);
  ASSERT_EQ(::pwrite(fd_, far.data(), far.size(), 0), static_cast<ssize_t>(far.size()));
  std::vector<FileRead> reads;
  std::vector<std::byte> to(2 * far.size(), std::byte{0xee});
  std::vector<std::pair<std::uint64_t, std::span<const std::byte>>> wanted;
  std::size_t used = 0;
  for (std::uint64_t at = 1; at + kPiece < far.size(); at += kPiece + at % 20'000) {
    for (std::size_t times = at % 5 == 0 ? 2 : 1; times > 0; --times) {
      const auto place = std::span(to).subspan(used + 1, kPiece - at % 100);
      reads.push_back({fd_, at, place, &path_});
      wanted.emplace_back(at, place);
      used += kPiece + 1;
    }
  }
  ASSERT_GT(wanted.size(), 30u);
  ASSERT_TRUE(read_files(reads));
  for (const auto& [at, place] : wanted) {
    EXPECT_TRUE(std::ranges::equal(place, std::span(far).subspan(at, place.size()))) << at;
    EXPECT_EQ(*(place.data() - 1), std::byte{0xee});
    EXPECT_EQ(*(place.data() + place.size()), std::byte{0xee});
  }
}

TEST_F(FileReadsTest, ZerosFollowTheFilesEnd) {
  std::vector<std::byte> to(3 * kPiece, std::byte{0xee});
  std::vector<FileRead> reads{
      {fd_, (kPieces - 1) * kPiece, std::span(to).first(2 * kPiece), &path_},
      {fd_, 10 * kPieces * kPiece, std::span(to).last(kPiece), &path_}};
  ASSERT_TRUE(read_files(reads));
  for (std::size_t i = 0; i < to.size(); ++i) {
    ASSERT_EQ(to[i], i < kPiece ? std::byte(kPieces) : std::byte{}) << i;
  }
}

TEST_F(FileReadsTest, NothingIsReadOfNothing) { EXPECT_TRUE(read_files({})); }

TEST_F(FileReadsTest, AnErrorNamesTheFile) {
  auto reads = all_of_them();
  const std::string other = "another file";
  for (FileRead& each : reads) {
    each.fd = -1;
    each.path = &other;
  }
  const auto read = read_files(reads);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kIo);
  EXPECT_NE(read.error().message.find(other), std::string::npos) << read.error().message;
}

}  // namespace
}  // namespace mariner::ifsck

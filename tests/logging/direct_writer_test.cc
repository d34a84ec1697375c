#include "logging/direct_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

#include "proto/payload.h"
#include "tests/logging/temporary_directory.h"

namespace mariner::logging {
namespace {

constexpr std::uint64_t kBlocks = 1024;

// A file of 4 MiB that is open through the page cache, and a writer beside that.
class DirectWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(file_, 0);
    const Payload first = filled(kBlocks, 'a');
    ASSERT_EQ(::pwrite(file_, first.data(), first.size(), 0),
              static_cast<ssize_t>(kBlocks * kBlockBytes));
    Result<std::unique_ptr<DirectWriter>> opened = DirectWriter::open(file_);
    ASSERT_TRUE(opened) << to_string(opened.error());
    writer_ = *std::move(opened);
  }
  void TearDown() override { ::close(file_); }

  static Payload filled(std::uint64_t blocks, char letter) {
    Payload payload = Payload::allocate(blocks * kBlockBytes);
    std::ranges::fill(payload.bytes(), static_cast<std::byte>(letter));
    return payload;
  }
  // What a read through the page cache finds, by the first and last byte of each block.
  std::string found(std::uint64_t first, std::uint64_t count) const {
    std::string out;
    std::vector<char> block(kBlockBytes);
    for (std::uint64_t i = first; i < first + count; ++i) {
      EXPECT_EQ(::pread(file_, block.data(), block.size(), static_cast<off_t>(i * kBlockBytes)),
                static_cast<ssize_t>(kBlockBytes));
      out += block.front() == block.back() ? block.front() : '?';
    }
    return out;
  }

  test::TemporaryDirectory directory_;
  const std::string path_ = directory_.file("image");
  int file_ = -1;
  std::unique_ptr<DirectWriter> writer_;
};

TEST_F(DirectWriterTest, WhatIsInThePageCacheIsNotReadAnyMore) {
  ASSERT_EQ(found(0, 8), "aaaaaaaa") << "not even written back yet";
  const Payload b = filled(2, 'b');
  const Payload c = filled(1, 'c');
  EXPECT_TRUE(writer_
                  ->write(std::vector<Disk::Write>{{1 * kBlockBytes, {b.bytes(), c.bytes()}},
                                                   {6 * kBlockBytes, {c.bytes()}}})
                  .empty());
  EXPECT_EQ(found(0, 8), "abbcaaca");
  ASSERT_EQ(::pwrite(file_, b.data(), kBlockBytes, 0), static_cast<ssize_t>(kBlockBytes));
  EXPECT_EQ(found(0, 8), "bbbcaaca") << "and both ways go on together";
}

TEST_F(DirectWriterTest, MoreThanAreUnderWayAtATime) {
  std::vector<std::uint64_t> places(kBlocks);
  std::iota(places.begin(), places.end(), 0);
  std::shuffle(places.begin(), places.end(), std::mt19937(1));  // a fixed seed: any order will do
  const std::vector<Payload> letters{filled(1, 'x'), filled(1, 'y'), filled(1, 'z')};
  std::vector<Disk::Write> writes;
  for (const std::uint64_t place : places) {
    writes.push_back({place * kBlockBytes, {letters[place % 3].bytes()}});
  }
  ASSERT_GT(writes.size(), 4 * DirectWriter::kWritesAtATime);
  EXPECT_TRUE(writer_->write(writes).empty());
  std::string expected;
  for (std::uint64_t i = 0; i < kBlocks; ++i) expected += "xyz"[i % 3];
  EXPECT_EQ(found(0, kBlocks), expected);
}

TEST_F(DirectWriterTest, SaysWhatItDidNotWrite) {
  const Payload b = filled(2, 'b');
  const std::vector<Disk::Write> writes{
      {0, {b.bytes().first(512)}},                                 // no whole block
      {kBlockBytes, {b.bytes().first(kBlockBytes)}},               // is written
      {2 * kBlockBytes, {b.bytes().subspan(8, kBlockBytes)}},      // memory
      {3 * kBlockBytes + 512, {b.bytes().first(kBlockBytes)}},     // place
      {4 * kBlockBytes, std::vector<ConstBytes>(2000, b.bytes())}  // more than the kernel takes
  };
  std::vector<std::size_t> failed = writer_->write(writes);
  std::ranges::sort(failed);
  EXPECT_EQ(failed, (std::vector<std::size_t>{0, 2, 3, 4}));
  EXPECT_EQ(found(0, 6), "abaaaa");
}

TEST_F(DirectWriterTest, WhatTheFileSystemRefusesIsAmongThat) {
  const Payload b = filled(1, 'b');
  EXPECT_EQ(writer_->write(std::vector<Disk::Write>{{std::uint64_t{1} << 62, {b.bytes()}},
                                                    {kBlockBytes, {b.bytes()}}}),
            std::vector<std::size_t>{0});
  EXPECT_EQ(found(0, 3), "aba");
}

TEST(DirectWriterOpening, AnErrorWhereThereIsNoFile) { EXPECT_FALSE(DirectWriter::open(-1)); }

}  // namespace
}  // namespace mariner::logging

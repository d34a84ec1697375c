#include "tests/powerdisk/power_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "proto/bytes.h"

namespace mariner::powerdisk {
namespace {

class PowerFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = std::filesystem::temp_directory_path() / "powerfile-XXXXXX";
    const int fd = ::mkstemp(path.data());
    ASSERT_GE(fd, 0);
    backing_ = ::open(path.c_str(), O_RDWR);
    ::unlink(path.c_str());
    file_ = std::make_unique<PowerFile>(fd, "file");
  }
  void TearDown() override { ::close(backing_); }

  WriteId write(std::uint64_t offset, std::string_view text) {
    WriteId id;
    EXPECT_EQ(file_->write(offset, as_byte_span(text), ids_, &id), 0);
    return id;
  }
  std::string read(std::uint64_t offset, std::size_t length) {
    std::string text(length, '?');
    const ssize_t n = file_->read(offset, std::as_writable_bytes(std::span(text)));
    EXPECT_GE(n, 0);
    return text.substr(0, static_cast<std::size_t>(n));
  }
  std::string medium() {
    std::string text(static_cast<std::size_t>(::lseek(backing_, 0, SEEK_END)), '?');
    EXPECT_EQ(::pread(backing_, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    return text;
  }

  int backing_ = -1;
  std::atomic<std::uint64_t> ids_{0};
  std::unique_ptr<PowerFile> file_;
};

TEST_F(PowerFileTest, nothing_reaches_the_medium_before_a_flush) {
  write(0, "hello");
  EXPECT_EQ(read(0, 10), "hello");
  EXPECT_EQ(medium(), "");
  EXPECT_EQ(file_->flush(), 0);
  EXPECT_EQ(medium(), "hello");
  EXPECT_TRUE(file_->clean());
}

TEST_F(PowerFileTest, appends_of_odd_lengths_merge_within_sectors) {
  std::string expected;
  for (int i = 0; i < 300; ++i) {
    const std::string piece(static_cast<std::size_t>(i % 37 + 1), static_cast<char>('a' + i % 26));
    write(expected.size(), piece);
    expected += piece;
    if (i % 50 == 0) {
      EXPECT_EQ(file_->flush(), 0);
    }
  }
  EXPECT_EQ(read(0, expected.size() + 100), expected);
  EXPECT_EQ(file_->flush(), 0);
  EXPECT_EQ(medium(), expected);
}

TEST_F(PowerFileTest, a_hole_reads_as_zeros_and_a_flush_persists_the_size) {
  write(10'000, "x");
  EXPECT_EQ(read(9'999, 5), std::string("\0x", 2));
  EXPECT_EQ(file_->flush(), 0);
  EXPECT_EQ(medium().size(), 10'001u);
}

TEST_F(PowerFileTest, a_synchronous_write_leaves_earlier_ones_volatile) {
  write(0, std::string(4096, 'a'));
  const WriteId id = write(8192, std::string(512, 'b'));
  EXPECT_EQ(file_->flush_write({8192, 512}, id), 0);
  EXPECT_EQ(medium(), std::string(8192, '\0') + std::string(512, 'b'));
  EXPECT_FALSE(file_->clean());
}

TEST_F(PowerFileTest, zeroing_is_volatile_and_respects_the_edges) {
  write(0, std::string(2000, 'a'));
  EXPECT_EQ(file_->flush(), 0);
  EXPECT_EQ(file_->write_zeros({100, 1500}, false, ids_), 0);
  const std::string expected =
      std::string(100, 'a') + std::string(1500, '\0') + std::string(400, 'a');
  EXPECT_EQ(read(0, 2000), expected);
  EXPECT_EQ(medium(), std::string(2000, 'a'));
  EXPECT_EQ(file_->flush(), 0);
  EXPECT_EQ(medium(), expected);
  EXPECT_EQ(file_->write_zeros({1900, 1000}, false, ids_), 0);
  EXPECT_EQ(file_->size(), 2000u);
  EXPECT_EQ(file_->write_zeros({1900, 1000}, true, ids_), 0);
  EXPECT_EQ(file_->size(), 2900u);
}

TEST_F(PowerFileTest, truncation_is_durable_at_once) {
  write(0, std::string(1000, 'a'));
  EXPECT_EQ(file_->truncate(700), 0);
  EXPECT_EQ(file_->truncate(900), 0);
  EXPECT_EQ(read(0, 1000), std::string(700, 'a') + std::string(200, '\0'));
  EXPECT_EQ(medium(), std::string(900, '\0'));
}

TEST_F(PowerFileTest, a_cut_never_takes_what_was_flushed) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const char value = static_cast<char>('a' + seed % 26);
    write(0, std::string(4096, value));
    EXPECT_EQ(file_->flush(), 0);
    write(4096, std::string(4096, '-'));
    file_->cut(Fates(seed));
    EXPECT_EQ(medium().substr(0, 4096), std::string(4096, value));
    EXPECT_EQ(file_->truncate(4096), 0);
  }
}

TEST_F(PowerFileTest, a_grown_size_ends_behind_the_last_survivor) {
  bool short_file = false, whole_file = false;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    EXPECT_EQ(file_->truncate(0), 0);
    write(0, std::string(5000, 'z'));
    file_->cut(Fates(seed));
    const std::size_t size = medium().size();
    EXPECT_TRUE(size % kSectorBytes == 0 || size == 5000) << size;
    short_file |= size < 5000;
    whole_file |= medium() == std::string(5000, 'z');
  }
  EXPECT_TRUE(short_file && whole_file);
}

}  // namespace
}  // namespace mariner::powerdisk

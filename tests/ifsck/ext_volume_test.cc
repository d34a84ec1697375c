#include "ifsck/ext_volume.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "ifsck/write_trace.h"
#include "proto/bytes.h"
#include "tests/logging/temporary_directory.h"

namespace mariner::ifsck {
namespace {

constexpr std::uint64_t kVolume = 32u << 20;

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Moment 0 is an empty file system; then "hello" is made in it, block by block.
class ExtVolumeTest : public ::testing::TestWithParam<const char*> {
 protected:
  ExtVolumeTest() {
    run("truncate -s 32M " + folder_.file("image"));
    run("mke2fs -q " + std::string(GetParam()) + " " + folder_.file("image"));
    std::ofstream(folder_.file("hello")) << text_;
    run("cp " + folder_.file("image") + " " + folder_.file("later"));
    run("debugfs -w -R 'write " + folder_.file("hello") + " hello' " + folder_.file("later"));
    trace_changes();
    past_.emplace(TracePast::open(folder_.file("image"), folder_.file("trace")).value());
  }
  static void run(const std::string& command) {
    ASSERT_EQ(std::system(("PATH=$PATH:/sbin:/usr/sbin; " + command + " >/dev/null 2>&1").c_str()),
              0)
        << command;
  }
  void trace_changes() {
    const std::string before = bytes_of(folder_.file("image"));
    const std::string after = bytes_of(folder_.file("later"));
    ASSERT_EQ(after.size(), kVolume);
    TraceWriter writer = TraceWriter::create(folder_.file("trace"), kVolume).value();
    std::uint64_t time = 0;
    for (std::uint64_t at = 0; at < kVolume; at += kBlockBytes) {
      const std::string block = after.substr(at, kBlockBytes);
      if (before.compare(at, kBlockBytes, block) == 0) continue;
      ASSERT_TRUE(writer.write({++time}, {at >> kBlockShift}, as_byte_span(block)).has_value());
    }
    newest_ = {time};
  }
  static ext2_ino_t find(const ExtVolume& volume, const char* path) {
    ext2_ino_t inode = 0;
    const errcode_t error = ext2fs_namei(volume.fs(), EXT2_ROOT_INO, EXT2_ROOT_INO, path, &inode);
    EXPECT_TRUE(error == 0 || error == EXT2_ET_FILE_NOT_FOUND) << ext_error_text(error);
    return inode;
  }
  static std::string read(const ExtVolume& volume, ext2_ino_t inode) {
    ext2_file_t file = nullptr;
    EXPECT_EQ(ext2fs_file_open(volume.fs(), inode, 0, &file), 0);
    std::string bytes(100'000, '?');
    unsigned int got = 0;
    EXPECT_EQ(ext2fs_file_read(file, bytes.data(), static_cast<unsigned>(bytes.size()), &got), 0);
    ext2fs_file_close(file);
    bytes.resize(got);
    return bytes;
  }

  const std::string text_ = std::string(5000, 'a') + std::string(40'000, 'b') + "end";
  logging::test::TemporaryDirectory folder_;
  std::optional<TracePast> past_;
  SequenceNumber newest_;
  Overlay overlay_;
};

TEST_P(ExtVolumeTest, IsWhatItWasAtEachMoment) {
  View before(*past_, {0}, overlay_);
  const auto empty = ExtVolume::open(before, {.ignore_checksums = false});
  ASSERT_TRUE(empty.has_value()) << empty.error().message;
  EXPECT_EQ(find(*empty, "hello"), 0u);
  EXPECT_NE(find(*empty, "lost+found"), 0u);
  View after(*past_, newest_, overlay_);
  const auto volume = ExtVolume::open(after, {.ignore_checksums = false});
  ASSERT_TRUE(volume.has_value()) << volume.error().message;
  const ext2_ino_t inode = find(*volume, "hello");
  ASSERT_NE(inode, 0u);
  EXPECT_EQ(read(*volume, inode), text_);
  EXPECT_EQ(find(*empty, "hello"), 0u);
  EXPECT_EQ(overlay_.size(), 0u);
}

TEST_P(ExtVolumeTest, RepairsGoToTheOverlayAlone) {
  View view(*past_, newest_, overlay_);
  {
    const auto volume = ExtVolume::open(view, {.writable = true});
    ASSERT_TRUE(volume.has_value()) << volume.error().message;
    ext2_inode inode{};
    const ext2_ino_t number = find(*volume, "hello");
    ASSERT_EQ(ext2fs_read_inode(volume->fs(), number, &inode), 0);
    inode.i_mtime = 77;
    ASSERT_EQ(ext2fs_write_inode(volume->fs(), number, &inode), 0);
    ASSERT_EQ(ext2fs_flush(volume->fs()), 0);
  }
  EXPECT_GT(overlay_.size(), 0u);
  View again(*past_, newest_, overlay_);
  Overlay none;
  View untouched(*past_, newest_, none);
  for (const auto& [one, repaired] : {std::pair{&again, true}, {&untouched, false}}) {
    const auto volume = ExtVolume::open(*one, {.ignore_checksums = false});
    ASSERT_TRUE(volume.has_value()) << volume.error().message;
    ext2_inode inode{};
    ASSERT_EQ(ext2fs_read_inode(volume->fs(), find(*volume, "hello"), &inode), 0);
    EXPECT_EQ(inode.i_mtime == 77, repaired);
  }
}

// Served as a file, they are a file system that e2fsck has nothing to say about.
TEST_P(ExtVolumeTest, RepairedItIsStillAFileSystem) {
  View view(*past_, newest_, overlay_);
  {
    auto volume = ExtVolume::open(view, {.writable = true});
    ASSERT_TRUE(volume.has_value());
    ASSERT_EQ(ext2fs_read_bitmaps(volume->fs()), 0);
    ASSERT_EQ(ext2fs_mkdir(volume->fs(), EXT2_ROOT_INO, 0, "made"), 0);
    ASSERT_EQ(ext2fs_flush(volume->fs()), 0);
  }
  const int fd = ::open(folder_.file("later").c_str(), O_WRONLY | O_CLOEXEC);
  overlay_.for_each([&](Lbn lbn, const Overlay::Block& block) {
    EXPECT_EQ(pwrite(fd, block.data(), block.size(), static_cast<off_t>(lbn.byte_offset())),
              static_cast<ssize_t>(block.size()));
  });
  ::close(fd);
  run("e2fsck -fn " + folder_.file("later"));
}

INSTANTIATE_TEST_SUITE_P(Kinds, ExtVolumeTest,
                         ::testing::Values("-t ext2 -b 1024", "-t ext2 -b 4096", "-t ext3",
                                           "-t ext4", "-t ext4 -O ^has_journal",
                                           "-t ext4 -O inline_data,64bit -I 256"));

class NoExtVolumeTest : public ::testing::Test {
 protected:
  ErrorCode open_with(std::string_view superblock) {
    std::ofstream(folder_.file("image"), std::ios::binary)
        << std::string(1024, '\0') << superblock << std::string(100'000, '\0');
    (void)TraceWriter::create(folder_.file("trace"), 1u << 20).value();
    TracePast past = TracePast::open(folder_.file("image"), folder_.file("trace")).value();
    Overlay overlay;
    View view(past, {0}, overlay);
    const auto volume = ExtVolume::open(view, {});
    EXPECT_FALSE(volume.has_value());
    return volume ? ErrorCode::kAborted : volume.error().code;
  }
  logging::test::TemporaryDirectory folder_;
};

TEST_F(NoExtVolumeTest, SaysWhatItIsNot) {
  EXPECT_EQ(open_with(""), ErrorCode::kNotFound);
  std::string block(1024, '\0');
  block[56] = '\x53';
  block[57] = '\xef';
  EXPECT_EQ(open_with(block), ErrorCode::kCorrupt);
  block[76] = '\x63';  // a revision of the future
  EXPECT_EQ(open_with(block), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace mariner::ifsck

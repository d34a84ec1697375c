// File systems that mke2fs has made of a folder, as a view; with what libext2fs says of them.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ifsck/census.h"
#include "ifsck/ext_layout.h"
#include "ifsck/ext_volume.h"
#include "ifsck/write_trace.h"
#include "tests/logging/temporary_directory.h"

namespace mariner::ifsck {

// Options of mke2fs: each a kind of file system that people have.
inline constexpr const char* kKinds[] = {
    "-t ext2 -b 1024",
    "-t ext2 -b 4096",
    "-t ext3 -b 1024",
    "-t ext4 -b 4096",
    "-t ext4 -b 1024 -O ^has_journal",
    "-t ext4 -b 4096 -O inline_data,64bit,quota -I 256",
    "-t ext4 -b 1024 -O ^flex_bg,^metadata_csum,uninit_bg",
    "-t ext4 -b 2048 -O meta_bg,^resize_inode -g 2048",
};

// The image of one kind, which is made once and never written to.
class MadeImage {
 public:
  static constexpr std::uint64_t kBytes = 48u << 20;

  [[nodiscard]] static const MadeImage& of(const std::string& options) {
    static std::map<std::string, std::unique_ptr<MadeImage>> made;
    auto& one = made[options];
    if (one == nullptr) one = std::unique_ptr<MadeImage>(new MadeImage(options));
    return *one;
  }
  static void run(const std::string& command) {
    ASSERT_EQ(std::system(("PATH=$PATH:/sbin:/usr/sbin; " + command + " >/dev/null 2>&1").c_str()),
              0)
        << command;
  }
  [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(name); }

 private:
  explicit MadeImage(const std::string& options) {
    make_files();
    run("truncate -s " + std::to_string(kBytes) + " " + folder_.file("image"));
    run("mke2fs -q -N 2000 -d " + folder_.file("tree") + " " + options + " " +
        folder_.file("image"));
    punch();
    (void)TraceWriter::create(folder_.file("trace"), kBytes).value();
  }
  // Small and large, sparse, deep, many in a folder, linked twice.
  void make_files() {
    const std::filesystem::path tree = folder_.file("tree");
    std::filesystem::create_directories(tree / "a/b/c");
    std::filesystem::create_directories(tree / "many");
    for (int i = 0; i < 600; ++i) {
      std::ofstream(tree / "many" / ("a file with a long name, number " + std::to_string(i)))
          << std::string(static_cast<std::size_t>(i % 7) * 700, 'x');
    }
    std::ofstream(tree / "a/large") << std::string(6u << 20, 'l');
    std::ofstream sparse(tree / "a/b/sparse");
    for (int i = 0; i < 900; ++i) {
      sparse.seekp(static_cast<std::streamoff>(i) * 50'000);
      sparse << "here";
    }
    sparse.close();
    std::filesystem::create_symlink("a/large", tree / "short");
    std::filesystem::create_symlink(std::string(200, 's'), tree / "long");
    std::filesystem::create_hard_link(tree / "a/large", tree / "a/b/c/linked");
  }
  // Extents of a file that is not in one piece are more than an inode has room for.
  void punch() {
    std::ofstream commands(folder_.file("commands"));
    for (int i = 0; i < 700; ++i) commands << "punch /a/large " << 4 * i << " " << 4 * i << "\n";
    commands.close();
    run("debugfs -w -f " + folder_.file("commands") + " " + folder_.file("image"));
    // (debugfs leaves what quota files count to e2fsck.)
    run("e2fsck -fy " + folder_.file("image") + " >/dev/null 2>&1; test $? -le 1");
    run("e2fsck -fn " + folder_.file("image"));
  }

  logging::test::TemporaryDirectory folder_;
};

class MadeVolume {
 public:
  explicit MadeVolume(const std::string& options) : image_(MadeImage::of(options)) {
    past.emplace(TracePast::open(image(), image_.file("trace")).value());
    view.emplace(*past, SequenceNumber{0}, overlay);
    volume.emplace(ExtVolume::open(*view, {.writable = true}).value());
    layout.emplace(ExtLayout::of(*volume).value());
  }

  [[nodiscard]] std::vector<std::byte> inode(InodeNumber number) {
    std::vector<std::byte> bytes(layout->inode_bytes());
    EXPECT_TRUE(view->read(layout->inode_place(number), bytes).has_value());
    return bytes;
  }
  [[nodiscard]] InodeNumber find(const char* path) const {
    ext2_ino_t number = 0;
    EXPECT_EQ(ext2fs_namei(volume->fs(), EXT2_ROOT_INO, EXT2_ROOT_INO, path, &number), 0);
    return number;
  }
  // Of the overlay.
  template <typename T>
  void put(std::uint64_t offset, T value) {
    EXPECT_TRUE(
        view->write({offset, sizeof value}, std::as_bytes(std::span(&value, 1))).has_value());
  }
  // A field of an inode.
  template <typename T>
  void put(InodeNumber number, std::uint64_t at, T value) {
    put(layout->inode_place(number).offset + at, value);
  }
  // What a census of it finds, with what is in the overlay.
  [[nodiscard]] Census census() {
    const ExtVolume again = ExtVolume::open(*view, {}).value();
    const ExtLayout where = ExtLayout::of(again).value();
    return Census::take(again, where, {}).value();
  }
  [[nodiscard]] std::string image() const { return image_.file("image"); }

  std::optional<TracePast> past;
  Overlay overlay;
  std::optional<View> view;
  std::optional<ExtVolume> volume;
  std::optional<ExtLayout> layout;

 private:
  const MadeImage& image_;
};

}  // namespace mariner::ifsck

#include "uvfs/object_attributes.h"

#include <gtest/gtest.h>

#include <fstream>

#include "proto/bytes.h"
#include "tests/ifsck/made_volume.h"
#include "tests/logging/temporary_directory.h"
#include "uvfs/file_contents.h"

namespace mariner::uvfs {
namespace {

using ifsck::MadeImage;

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// A file with attributes that debugfs has given it, in a copy of an image.
ObjectAttributes attributes(const std::string& options, const std::string& commands) {
  const logging::test::TemporaryDirectory folder;
  const std::string image = folder.file("image");
  MadeImage::run("cp --sparse=always " + MadeImage::of(options).file("image") + " " + image);
  std::ofstream(folder.file("long")) << std::string(700, 'v');
  std::ofstream(folder.file("commands")) << commands;
  MadeImage::run("cd " + folder.file("") + " && debugfs -w -f commands image");
  auto past = ifsck::TracePast::open(image, "").value();
  ifsck::Overlay none;
  ifsck::View view(past, {}, none);
  const auto volume = ifsck::ExtVolume::open(view, {}).value();
  const auto layout = ifsck::ExtLayout::of(volume).value();
  ext2_ino_t number = 0;
  EXPECT_EQ(ext2fs_namei(volume.fs(), EXT2_ROOT_INO, EXT2_ROOT_INO, "/a/large", &number), 0);
  std::vector<std::byte> inode(layout.inode_bytes());
  EXPECT_TRUE(view.read(layout.inode_place(number), inode).has_value());
  return read_attributes(past, ifsck::ExtContext(volume, layout), inode, {}).value();
}

TEST(ObjectAttributes, StandInTheInodeAndInABlock) {
  for (const char* options : {"-t ext2 -b 1024", "-t ext4 -b 4096"}) {
    const ObjectAttributes found =
        attributes(options, "ea_set /a/large user.short one\nea_set -f long /a/large user.long\n");
    EXPECT_TRUE(found.skipped.empty());
    ASSERT_EQ(found.all.size(), 2u) << options;
    for (const auto& each : found.all) {
      EXPECT_EQ(each.value, bytes_of(each.name == "user.short" ? "one" : std::string(700, 'v')));
    }
  }
  EXPECT_TRUE(attributes("-t ext2 -b 1024", "").all.empty());
}

TEST(ObjectAttributes, AnAccessControlListIsAsProgramsSeeIt) {
  std::vector<std::byte> kept(4 + 4 + 8);
  store_le<std::uint32_t>(kept.data(), 1);
  store_le<std::uint16_t>(kept.data() + 4, 0x01);
  store_le<std::uint16_t>(kept.data() + 6, 6);
  store_le<std::uint16_t>(kept.data() + 8, 0x02);
  store_le<std::uint16_t>(kept.data() + 10, 4);
  store_le<std::uint32_t>(kept.data() + 12, 1000);
  const auto given = acl_as_given(kept);
  ASSERT_EQ(given.size(), 4u + 2 * 8);
  EXPECT_EQ(load_le<std::uint32_t>(given.data()), 2u);
  EXPECT_EQ(load_le<std::uint32_t>(given.data() + 8), 0xFFFFFFFFu);
  EXPECT_EQ(load_le<std::uint16_t>(given.data() + 12), 0x02u);
  EXPECT_EQ(load_le<std::uint32_t>(given.data() + 16), 1000u);
  EXPECT_TRUE(acl_as_given(std::span(kept).first(14)).empty());
  EXPECT_TRUE(acl_as_given({}).empty());
  store_le<std::uint32_t>(kept.data(), 9);
  EXPECT_TRUE(acl_as_given(kept).empty());
}

}  // namespace
}  // namespace mariner::uvfs

#include "ifsck/attribute_check.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "ifsck/ext_inode.h"
#include "ifsck/mend.h"
#include "proto/bytes.h"
#include "tests/ifsck/made_moment.h"
#include "tests/ifsck/made_verdict.h"
#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

constexpr std::size_t kInodeBytes = 256;
constexpr std::size_t kMagicAt = 160;
constexpr std::size_t kEntryAt = kMagicAt + 4;
constexpr std::size_t kValueAt = 40;  // from the entries on

// One attribute, "user.a", of five bytes.
std::vector<std::byte> made_inode() {
  std::vector<std::byte> inode(kInodeBytes);
  store_le<std::uint16_t>(inode.data() + 128, 32);
  store_le<std::uint32_t>(inode.data() + kMagicAt, 0xEA020000);
  std::byte* const entry = inode.data() + kEntryAt;
  store_le<std::uint8_t>(entry, 1);
  store_le<std::uint8_t>(entry + 1, 1);
  store_le<std::uint16_t>(entry + 2, kValueAt);
  store_le<std::uint32_t>(entry + 8, 5);
  entry[16] = std::byte{'a'};
  store_le<std::uint32_t>(entry + kValueAt, 0x64636261);
  return inode;
}

TEST(AttributeCheck, NoneAreRight) {
  EXPECT_TRUE(has_right_attributes(std::vector<std::byte>(128)));
  EXPECT_TRUE(has_right_attributes(std::vector<std::byte>(kInodeBytes)));
  EXPECT_FALSE(is_right_attribute_block(std::vector<std::byte>(1024)));
}

TEST(AttributeCheck, OfAnInodeAreApartAndWithinIt) {
  EXPECT_TRUE(has_right_attributes(made_inode()));
  const auto right = [](std::size_t at, auto value) {
    std::vector<std::byte> inode = made_inode();
    store_le(inode.data() + kEntryAt + at, value);
    return has_right_attributes(inode);
  };
  EXPECT_FALSE(right(0, std::uint8_t{200})) << "a name";
  EXPECT_FALSE(right(2, std::uint16_t{0})) << "a value where the entry is";
  EXPECT_FALSE(right(2, std::uint16_t{90})) << "a value behind the end";
  EXPECT_FALSE(right(2, std::uint16_t{65535}));
  EXPECT_FALSE(right(4, std::uint32_t{12})) << "an inode";
  EXPECT_FALSE(right(8, std::uint32_t{80}));
  EXPECT_FALSE(right(8, ~std::uint32_t{0}));
  EXPECT_FALSE(right(12, std::uint32_t{1})) << "a hash";
  EXPECT_FALSE(right(20, std::uint32_t{1})) << "an entry that is none";
  EXPECT_TRUE(right(8, std::uint32_t{0})) << "an empty value";
}

// Whatever one bit says.
TEST(AttributeCheck, FindsWhatE2fsckFindsAndMendsIt) {
  constexpr std::uint64_t kBlockBytesHere = 1024;
  const std::string options = "-t ext4 -b 1024 -I 256 -O ^metadata_csum";
  logging::test::TemporaryDirectory folder;
  const std::string image = folder.file("image");
  MadeImage::run("cp --sparse=always " + MadeImage::of(options).file("image") + " " + image);
  std::ofstream(folder.file("value")) << std::string(300, 'v');
  std::ofstream(folder.file("commands"))
      << "ea_set /a/large user.one abcdefgh\n"
      << "ea_set /a/large user.two hello\n"
      << "ea_set -f " << folder.file("value") << " /a/large user.big\n";
  MadeImage::run("debugfs -w -f " + folder.file("commands") + " " + image);
  MadeVerdict verdict(image);
  TracePast past = TracePast::open(image, MadeImage::of(options).file("trace")).value();
  MadeMoment made(past);
  ASSERT_EQ(made.census().findings_all, 0u);
  ext2_ino_t number = 0;
  ASSERT_EQ(ext2fs_namei(made.volume->fs(), EXT2_ROOT_INO, EXT2_ROOT_INO, "/a/large", &number), 0);
  const std::uint64_t inode = made.layout->inode_place(number).offset;
  std::vector<std::byte> bytes(kInodeBytes);
  ASSERT_TRUE(made.view.read({inode, kInodeBytes}, bytes).has_value());
  ASSERT_NE(ExtInode(bytes).attributes(), 0u);
  const std::uint64_t block = made.layout->bytes_of(ExtInode(bytes).attributes()).offset;
  std::mt19937_64 random(5);
  const char* const more = std::getenv("MARINER_TEST_SEEDS");
  const int rounds = more != nullptr ? std::atoi(more) : 30;
  int wrong = 0;
  for (int i = 0; i < rounds; ++i) {
    made.overlay.clear();
    std::uint64_t at = inode + kMagicAt + random() % (kInodeBytes - kMagicAt);
    if (i % 3 == 1) at = block + random() % 64;
    if (i % 3 == 2) at = block + kBlockBytesHere - 1 - random() % 320;
    made.flip(at, random() % 8);
    made.open();
    const Census census = made.census();
    EXPECT_EQ(census.findings_all > 0, verdict.of(made.overlay) != "") << "byte " << at;
    if (census.findings_all == 0) continue;
    ++wrong;
    const Mended mended = mend_in_full(made.view).value();
    EXPECT_TRUE(mended.left.empty()) << "byte " << at;
    EXPECT_EQ(verdict.of(made.overlay), "") << "byte " << at;
  }
  EXPECT_GT(wrong, rounds / 4);
}

}  // namespace
}  // namespace mariner::ifsck

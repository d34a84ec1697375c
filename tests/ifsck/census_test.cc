#include "ifsck/census.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;

class CensusTest : public ::testing::TestWithParam<const char*> {
 protected:
  Result<Census> take() {
    auto volume = ExtVolume::open(*made_.view, {});
    if (!volume) return volume.error();
    const auto layout = ExtLayout::of(*volume);
    if (!layout) return layout.error();
    return Census::take(*volume, *layout, {});
  }
  static std::string text(const Census& census) {
    std::string all;
    for (const Finding& each : census.findings) all += describe(each) + "\n";
    return all;
  }
  // What is in the overlay, too, goes into the file, for e2fsck.
  bool e2fsck_objects() {
    const std::string copy = folder_.file("copy");
    MadeImage::run("cp --sparse=always " + made_.image() + " " + copy);
    const int fd = ::open(copy.c_str(), O_WRONLY | O_CLOEXEC);
    made_.overlay.for_each([&](Lbn lbn, const Overlay::Block& block) {
      EXPECT_EQ(pwrite(fd, block.data(), block.size(), static_cast<off_t>(lbn.byte_offset())),
                static_cast<ssize_t>(block.size()));
    });
    ::close(fd);
    const int status = std::system(
        ("PATH=$PATH:/sbin:/usr/sbin; e2fsck -fn " + copy + " > " + copy + ".said 2>&1").c_str());
    std::ifstream in(copy + ".said");
    said_ = {std::istreambuf_iterator<char>(in), {}};
    return status != 0;
  }
  logging::test::TemporaryDirectory folder_;
  MadeVolume made_{GetParam()};
  std::string said_;  // by e2fsck
};

TEST_P(CensusTest, FindsNothingWhereThereIsNothing) {
  const auto census = take();
  ASSERT_TRUE(census.has_value()) << census.error().message;
  EXPECT_EQ(census->findings_all, 0u) << text(*census);
  EXPECT_GE(census->inodes_in_use, 605u);
  EXPECT_EQ(census->directories, 6u);
  EXPECT_EQ(census->blocks_in_use + ext2fs_free_blocks_count(made_.volume->fs()->super) +
                made_.volume->fs()->super->s_first_data_block,
            made_.layout->blocks());
}

// Damage of metadata at random: where e2fsck has something to say, so do we.
TEST_P(CensusTest, FindsWhatE2fsckFinds) {
  std::mt19937_64 random(11);
  std::vector<FsBlock> metadata;
  for (FsBlock block = 0; block < made_.layout->blocks(); ++block) {
    const auto kind = made_.layout->place_of(block).kind;
    if (kind != ExtLayout::Kind::kData && kind != ExtLayout::Kind::kSuperblock &&
        kind != ExtLayout::Kind::kGroupDescriptors) {
      metadata.push_back(block);
    }
  }
  int objected = 0;
  const char* const more = std::getenv("MARINER_TEST_SEEDS");
  const int rounds = more != nullptr ? std::atoi(more) : 25;
  for (int i = 0; i < rounds; ++i) {
    made_.overlay.clear();
    // Inodes that are in use, most of all.
    FsBlock block = metadata[random() % metadata.size()];
    std::uint64_t at = random() % made_.layout->block_bytes();
    if (i % 2 == 0) {
      const ByteRange inode =
          made_.layout->inode_place(static_cast<InodeNumber>(12 + random() % 600));
      block = inode.offset / made_.layout->block_bytes();
      at = inode.offset % made_.layout->block_bytes() + random() % 128;
    }
    const ByteRange place{made_.layout->bytes_of(block).offset + at, 1};
    std::byte byte{};
    ASSERT_TRUE(made_.view->read(place, std::span(&byte, 1)).has_value());
    byte ^= static_cast<std::byte>(1u << random() % 8);
    ASSERT_TRUE(made_.view->write(place, std::span(&byte, 1)).has_value());
    const auto census = take();
    ASSERT_TRUE(census.has_value()) << census.error().message;
    const bool objects = e2fsck_objects();
    objected += objects ? 1 : 0;
    EXPECT_EQ(census->findings_all > 0, objects)
        << "byte " << at << " of block " << block << " ("
        << describe(made_.layout->place_of(block).kind) << "): " << text(*census) << said_;
  }
  EXPECT_GT(objected, 5);
}

INSTANTIATE_TEST_SUITE_P(Kinds, CensusTest, ::testing::ValuesIn(kKinds));

}  // namespace
}  // namespace mariner::ifsck

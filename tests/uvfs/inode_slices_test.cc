#include "uvfs/inode_slices.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "ifsck/ext_inode.h"
#include "tests/uvfs/counted_past.h"
#include "tests/uvfs/made_writes.h"

namespace mariner::uvfs {
namespace {

using ifsck::InodeAt;

std::vector<std::uint64_t> moments(const std::vector<InodeSlice>& slices) {
  std::vector<std::uint64_t> all;
  for (const InodeSlice& each : slices) all.push_back(each.from.value);
  return all;
}
using Moments = std::vector<std::uint64_t>;

TEST(InodeSlicesTest, ASliceBeginsWhereAnInodeIsAnother) {
  MadeWrites made("-t ext2 -b 4096");
  const auto file = made.volume.find("/a/large");
  const auto beside = file % 2 == 0 ? file - 1 : file + 1;  // in the same block
  made.put<std::uint16_t>(file, InodeAt::kMode, 0100600);
  made.put<std::uint16_t>(beside, InodeAt::kMode, 0100600);
  made.put<std::uint32_t>(file, 8, 77);  // when it was read
  made.put<std::uint32_t>(file, InodeAt::kChanged, 77);
  made.put<std::uint16_t>(file, InodeAt::kMode, 0100600);  // as it is
  auto past = made.past();
  auto timelines = BlockTimelines::open(past, {{}, {5}}).value();
  const ifsck::InodeNumber both[] = {file, beside};
  InodeSliceReader reader(timelines, *made.volume.layout);
  const auto slices = reader.read(both).value();
  EXPECT_EQ(moments(slices.at(file)), (Moments{0, 1, 4}));
  EXPECT_EQ(moments(slices.at(beside)), (Moments{0, 2}));
  EXPECT_EQ(slices.at(file)[1].time.ns, MadeWrites::kSecond);
  EXPECT_EQ(slices.at(file)[2].bytes, made.volume.inode(file));
}

TEST(InodeSlicesTest, AStretchBeginsWithWhatWasThen) {
  MadeWrites made("-t ext2 -b 4096");
  const auto file = made.volume.find("/a/large");
  made.put<std::uint16_t>(file, InodeAt::kMode, 0100600);
  made.put<std::uint16_t>(file, InodeAt::kMode, 0100644);
  made.put<std::uint16_t>(file, InodeAt::kMode, 0100600);
  auto past = made.past();
  auto timelines = BlockTimelines::open(past, {{2}, {2}}).value();
  InodeSliceReader reader(timelines, *made.volume.layout);
  const auto slices = reader.read(std::span(&file, 1));
  EXPECT_EQ(moments(slices->at(file)), Moments{2});
  EXPECT_EQ(ifsck::ExtInode(slices->at(file)[0].bytes).mode(), 0100644);
}

// What stood beside an inode that was asked for is not read again.
TEST(InodeSlicesTest, ABlockIsReadOnceForWhoIsAskedForLater) {
  MadeWrites made("-t ext4 -b 1024 -I 256");
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    made.put<std::uint32_t>(static_cast<ifsck::InodeNumber>(11 + random() % 30), InodeAt::kMode,
                            0100600 + static_cast<std::uint32_t>(random() % 3));
  }
  auto past = made.past();
  CountedPast counted(past);
  auto timelines = BlockTimelines::open(counted, {{20}, {200}}).value();
  InodeSliceReader together(timelines, *made.volume.layout);
  std::vector<ifsck::InodeNumber> all;
  for (ifsck::InodeNumber number = 11; number <= 40; ++number) all.push_back(number);
  const auto wanted = together.read(all).value();
  const std::uint64_t blocks = counted.blocks;
  InodeSliceReader one_by_one(timelines, *made.volume.layout);
  for (const ifsck::InodeNumber number : all) {
    const auto slices = one_by_one.read(std::span(&number, 1)).value();
    ASSERT_EQ(slices.size(), 1u);
    EXPECT_EQ(moments(slices.at(number)), moments(wanted.at(number))) << number;
    EXPECT_EQ(slices.at(number).back().bytes, made.volume.inode(number)) << number;
  }
  EXPECT_EQ(counted.blocks, 2 * blocks);
}

}  // namespace
}  // namespace mariner::uvfs

#include "uvfs/inode_slices.h"

#include <gtest/gtest.h>

#include <vector>

#include "ifsck/ext_inode.h"
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
  const auto slices = read_inode_slices(timelines, *made.volume.layout, both).value();
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
  const auto slices = read_inode_slices(timelines, *made.volume.layout, std::span(&file, 1));
  EXPECT_EQ(moments(slices->at(file)), Moments{2});
  EXPECT_EQ(ifsck::ExtInode(slices->at(file)[0].bytes).mode(), 0100644);
}

}  // namespace
}  // namespace mariner::uvfs

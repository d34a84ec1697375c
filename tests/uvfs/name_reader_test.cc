#include "uvfs/name_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ifsck/ext_inode.h"
#include "ifsck/moment.h"
#include "tests/uvfs/made_writes.h"
#include "uvfs/inode_record.h"

namespace mariner::uvfs {
namespace {

using ifsck::InodeAt;
using Spans = std::vector<NameHistory::Span>;

class NameReaderTest : public ::testing::TestWithParam<const char*> {
 protected:
  NameHistory read(ifsck::InodeNumber number, SequenceNumber last) {
    auto past = made_.past();
    ifsck::Overlay none;
    ifsck::Moment moment(past, last, none);
    EXPECT_TRUE(moment.open().has_value());
    auto timelines = BlockTimelines::open(past, {{}, last}).value();
    const auto& layout = moment.context().layout;
    VersionCache cache(timelines);
    const auto slices = InodeSliceReader(timelines, layout).read(std::span(&number, 1)).value();
    const auto maps =
        read_map_spans(timelines, cache, moment.context(), number, slices.at(number)).value();
    std::vector<Lbn> blocks;
    for (const auto& map : maps) {
      for (const auto& run : map.map.runs) {
        for (std::uint64_t i = 0; i < run.count; ++i) {
          blocks.push_back(layout.bytes_of(run.physical + i).covering_blocks().first);
        }
      }
    }
    EXPECT_TRUE(timelines.load(blocks).has_value());
    NameHistory names;
    NameReader reader(timelines, layout);
    EXPECT_TRUE(reader.add(number, slices.at(number), maps, names).has_value());
    EXPECT_TRUE(reader.read().has_value());
    return names;
  }
  static std::vector<std::uint64_t> moments(const NameHistory& names, std::string_view name) {
    std::vector<std::uint64_t> all;
    if (const auto* const spans = names.find(name)) {
      for (const auto& each : *spans) all.push_back(each.from.at.value);
    }
    return all;
  }
  using Moments = std::vector<std::uint64_t>;

  MadeWrites made_{GetParam()};
};

TEST_P(NameReaderTest, NamesOfAllBlocksAndWhatIsWrittenToThem) {
  const auto many = made_.volume.find("/many");
  const std::string name = "a file with a long name, number 300";
  const auto inode = made_.volume.find(("/many/" + name).c_str());
  const auto place = made_.place_of(many, name);
  made_.put<std::uint32_t>(place, 0);                    // 1
  made_.put<std::uint32_t>(many, InodeAt::kChanged, 5);  // 2
  made_.put<std::uint32_t>(place, inode);                // 3
  made_.put<std::uint32_t>(place + 8, 0x62626262);       // 4: "bbbble with ..."
  const NameHistory names = read(many, {4});
  EXPECT_EQ(moments(names, name), (Moments{0, 1, 3, 4}));
  EXPECT_EQ(moments(names, "bbbble with a long name, number 300"), Moments{4});
  for (int i = 0; i < 300; ++i) {
    const std::string each = "a file with a long name, number " + std::to_string(i);
    EXPECT_EQ(names.find(each, {0}), made_.volume.find(("/many/" + each).c_str())) << i;
  }
  EXPECT_EQ(names.find(".", {0}), 0u);
}

TEST_P(NameReaderTest, ADirectoryThatIsNoneHasNoNames) {
  const auto folder = made_.volume.find("/a");
  made_.put<std::uint16_t>(folder, InodeAt::kLinks, 0);  // 1
  made_.put<std::uint16_t>(folder, InodeAt::kLinks, 3);  // 2
  made_.put<std::uint32_t>(folder, InodeAt::kSize, 0);   // 3: its blocks are behind its end
  const NameHistory names = read(folder, {3});
  EXPECT_EQ(moments(names, "large"), (Moments{0, 1, 2, 3}));
  EXPECT_EQ(names.find("large", {1}), 0u);
  EXPECT_NE(names.find("large", {2}), 0u);
  EXPECT_EQ(names.find("large", {3}), 0u);
}

TEST_P(NameReaderTest, ADirectoryOfAnySizeIsRefused) {
  auto past = made_.past();
  auto timelines = BlockTimelines::open(past, {{}, {}}).value();
  const auto folder = made_.volume.find("/a");
  const InodeSlice slice{{}, {}, made_.volume.inode(folder)};
  for (const std::uint64_t blocks : {kDirectoryBlocksMax, kDirectoryBlocksMax + 1}) {
    const MapSpan span{{}, {}, {.runs = {{0, 9, blocks, true}}, .nodes = {}, .faults = {}}};
    NameHistory names;
    NameReader reader(timelines, *made_.volume.layout);
    const auto added = reader.add(folder, std::span(&slice, 1), std::span(&span, 1), names);
    EXPECT_EQ(added.has_value(), blocks == kDirectoryBlocksMax);
    if (!added) {
      EXPECT_EQ(added.error().code, ErrorCode::kLimit);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Blocks, NameReaderTest,
                         ::testing::Values("-t ext2 -b 1024", "-t ext2 -b 4096",
                                           "-t ext4 -b 4096"));

}  // namespace
}  // namespace mariner::uvfs

#include "index/index_file.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "tests/logging/log_testing.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/manual_executor.h"

namespace mariner::index {
namespace {

using test::FaultyDisk;
using test::ManualExecutor;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

IndexShape shape_of(std::uint32_t block_bytes, std::uint32_t group_blocks) {
  IndexShape shape;
  for (std::size_t i = 0; i < shape.file.size(); ++i) shape.file[i] = static_cast<std::byte>(i + 1);
  shape.block_bytes = block_bytes;
  shape.group_blocks = group_blocks;
  return shape;
}

class IndexFileTest : public ::testing::Test {
 protected:
  FaultyDisk& disk(std::uint64_t bytes) {
    disk_ = std::make_unique<FaultyDisk>(executor_, FaultyDisk::Options{.size_bytes = bytes});
    return *disk_;
  }
  // What formatting is refused with.
  std::string refusal(std::uint64_t bytes, const IndexShape& shape) {
    const Result<IndexSuperblock> result = format_index_file(disk(bytes), shape);
    if (result) return "it was not refused";
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    return result.error().message;
  }
  void write(const IndexSuperblock& superblock) {
    std::vector<std::byte> block(kBlockBytes);
    pack_index_superblock(superblock, block);
    disk_->overwrite(superblock_offset(superblock.generation), block);
  }
  ErrorCode read_error() {
    const Result<IndexSuperblock> result = read_index_superblock(*disk_);
    EXPECT_FALSE(result.has_value());
    return result ? ErrorCode{} : result.error().code;
  }

  ManualExecutor executor_;
  std::unique_ptr<FaultyDisk> disk_;
};

// FORMAT.md section 1.
TEST_F(IndexFileTest, GoldenBytesOfASuperblock) {
  IndexSuperblock superblock;
  superblock.file = shape_of(0, 0).file;
  superblock.block_bytes = 0x4000;
  superblock.group_blocks = 0x21222324;
  superblock.blocks = 0x31323334;
  superblock.checkpoint_crc = 0x41424344;
  superblock.area_bytes = 0x5152535455565758;
  superblock.generation = 0x6162636465666768;
  superblock.checkpoint_bytes = 0x7172737475767778;
  std::vector<std::byte> block(kBlockBytes, std::byte{0xff});
  pack_index_superblock(superblock, block);
  EXPECT_EQ(logging::test::hex(std::span(block).first(80)),
            "4d41524e 494e4458 01000000 9420adc1\n"
            "01020304 05060708 090a0b0c 0d0e0f10\n"
            "00400000 24232221 34333231 44434241\n"
            "58575655 54535251 68676665 64636261\n"
            "78777675 74737271 00000000 00000000");
  for (std::size_t i = 80; i < block.size(); ++i) ASSERT_EQ(block[i], std::byte{0}) << i;
}

TEST_F(IndexFileTest, IsReadAsItWasFormatted) {
  const Result<IndexSuperblock> made = format_index_file(disk(64 * kMiB), shape_of(16384, 32));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->file, shape_of(0, 0).file);
  EXPECT_EQ(made->block_bytes, 16384u);
  EXPECT_EQ(made->generation, 0u);
  EXPECT_EQ(made->checkpoint_bytes, 0u);
  disk_->cut_power();  // durable on return
  disk_->restore_power();
  const Result<IndexSuperblock> found = read_index_superblock(*disk_);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(*found, *made);
}

TEST_F(IndexFileTest, NothingOverlapsWhateverTheShape) {
  for (const std::uint32_t block_bytes : {4096u, 16384u, 1u << 20}) {
    for (const std::uint32_t group_blocks : {1u, 7u, 256u}) {
      const std::uint64_t bytes = 5 * kMiB + 6ull * 2 * group_blocks * block_bytes - 4096;
      const Result<IndexSuperblock> made =
          format_index_file(disk(bytes), shape_of(block_bytes, group_blocks));
      ASSERT_TRUE(made.has_value());
      ASSERT_EQ(made->blocks, 5 * group_blocks) << "all that there is room for";
      std::map<std::uint64_t, std::uint64_t> ranges;  // offset to end
      ranges[superblock_offset(0)] = superblock_offset(0) + kBlockBytes;
      ranges[superblock_offset(1)] = superblock_offset(1) + kBlockBytes;
      ranges[made->area_offset(0)] = made->area_offset(0) + made->area_bytes;
      ranges[made->area_offset(1)] = made->area_offset(1) + made->area_bytes;
      EXPECT_EQ(made->area_offset(2), made->area_offset(0));
      for (std::uint32_t i = 0; i < made->blocks; ++i) {
        for (const unsigned place : {0u, 1u}) {
          const std::uint64_t at = made->offset_of({i}, place);
          ranges[at] = at + block_bytes;
        }
      }
      ASSERT_EQ(ranges.size(), 4 + 2 * std::size_t{made->blocks});
      std::uint64_t end = 0;
      for (const auto& [from, to] : ranges) {
        ASSERT_GE(from, end);
        end = to;
      }
      EXPECT_EQ(end, made->end_offset());
      EXPECT_LE(end, bytes);
    }
  }
}

TEST_F(IndexFileTest, NeighboursOfAGroupStandTogetherInEachPlace) {
  const Result<IndexSuperblock> made = format_index_file(disk(64 * kMiB), shape_of(4096, 8));
  ASSERT_TRUE(made.has_value());
  for (const unsigned place : {0u, 1u}) {
    for (std::uint32_t i = 8; i < 15; ++i) {
      EXPECT_EQ(made->offset_of({i + 1}, place), made->offset_of({i}, place) + 4096);
    }
  }
  EXPECT_EQ(made->offset_of({8}, 1), made->offset_of({15}, 0) + 4096);
  EXPECT_EQ(made->offset_of({8}, 0), made->offset_of({7}, 1) + 4096);
}

TEST_F(IndexFileTest, TheSmallestFileThatIsTakenIsTheOneThatTheRefusalNames) {
  const std::uint64_t least = 2 * 32 * 16384 + 5 * kMiB;
  EXPECT_EQ(refusal(least - 4096, shape_of(16384, 32)),
            "an index file needs " + std::to_string(least) + " bytes at least; this one has " +
                std::to_string(least - 4096));
  EXPECT_EQ(refusal(0, shape_of(16384, 32)),
            "an index file needs " + std::to_string(least) + " bytes at least; this one has 0");
  EXPECT_TRUE(format_index_file(disk(least), shape_of(16384, 32)).has_value());
}

TEST_F(IndexFileTest, WrongShapesAreRefusedWithWhatWasExpected) {
  for (const std::uint32_t bytes : {0u, 2048u, 5000u, 1u << 21}) {
    EXPECT_EQ(refusal(64 * kMiB, shape_of(bytes, 32)),
              "an index block must be a power of two from 4 KiB to 1 MiB; " +
                  std::to_string(bytes) + " bytes were asked for");
  }
  for (const std::uint32_t blocks : {0u, 257u}) {
    EXPECT_EQ(
        refusal(64 * kMiB, shape_of(4096, blocks)),
        "a group must have 1 to 256 index blocks; " + std::to_string(blocks) + " were asked for");
  }
  EXPECT_TRUE(disk_->writes().empty());
}

TEST_F(IndexFileTest, TheNewerCopyCountsAndADamagedOneFallsBack) {
  IndexSuperblock superblock = *format_index_file(disk(64 * kMiB), shape_of(4096, 8));
  for (std::uint64_t generation = 1; generation <= 4; ++generation) {
    superblock.generation = generation;
    write(superblock);
    ASSERT_EQ(read_index_superblock(*disk_)->generation, generation);
  }
  disk_->flip_bit(superblock_offset(4) + 100, 2);
  EXPECT_EQ(read_index_superblock(*disk_)->generation, 3u);
  disk_->fail_reads({superblock_offset(4), kBlockBytes});
  EXPECT_EQ(read_index_superblock(*disk_)->generation, 3u);
  disk_->flip_bit(superblock_offset(3) + 100, 2);
  EXPECT_EQ(read_error(), ErrorCode::kIo) << "the unreadable one may be good";
  disk_->fail_reads({});
  EXPECT_EQ(read_error(), ErrorCode::kCorrupt);
}

TEST_F(IndexFileTest, FormattingAgainLeavesNothingOfBefore) {
  IndexSuperblock superblock = *format_index_file(disk(64 * kMiB), shape_of(4096, 8));
  superblock.generation = 7;
  write(superblock);
  ASSERT_TRUE(format_index_file(*disk_, shape_of(8192, 8)).has_value());
  const Result<IndexSuperblock> found = read_index_superblock(*disk_);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->block_bytes, 8192u);
  EXPECT_EQ(found->generation, 0u);
}

TEST_F(IndexFileTest, ADiskThatIsShorterThanItSaysIsCorrupt) {
  IndexSuperblock superblock = *format_index_file(disk(64 * kMiB), shape_of(4096, 8));
  disk(superblock.end_offset() - 4096);
  write(superblock);
  EXPECT_EQ(read_error(), ErrorCode::kCorrupt);
  disk(superblock.end_offset());
  write(superblock);
  EXPECT_TRUE(read_index_superblock(*disk_).has_value());
}

TEST_F(IndexFileTest, ShapesThatCannotBeAreCorruptEvenUnderAGoodChecksum) {
  const IndexSuperblock good = *format_index_file(disk(64 * kMiB), shape_of(4096, 8));
  const auto refused = [&](auto change) {
    IndexSuperblock bad = good;
    change(bad);
    write(bad);
    return read_error() == ErrorCode::kCorrupt;
  };
  EXPECT_TRUE(refused([](IndexSuperblock& s) { s.block_bytes = 6000; }));
  EXPECT_TRUE(refused([](IndexSuperblock& s) { s.block_bytes = 2048; }));
  EXPECT_TRUE(refused([](IndexSuperblock& s) { s.group_blocks = 0; }));
  EXPECT_TRUE(refused([](IndexSuperblock& s) { s.group_blocks = 257; }));
  EXPECT_TRUE(refused([](IndexSuperblock& s) { s.blocks += 1; }));
  EXPECT_TRUE(refused([](IndexSuperblock& s) { s.area_bytes += 4096; }));
  EXPECT_TRUE(refused([](IndexSuperblock& s) { s.checkpoint_bytes = s.area_bytes + 4096; }));
  EXPECT_TRUE(refused([](IndexSuperblock& s) { s.checkpoint_bytes = 100; }));
  write(good);
  EXPECT_TRUE(read_index_superblock(*disk_).has_value());
}

}  // namespace
}  // namespace mariner::index

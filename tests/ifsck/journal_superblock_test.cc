#include "ifsck/journal_superblock.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "ifsck/ext_checksum.h"
#include "ifsck/journal_block.h"
#include "proto/bytes.h"

namespace mariner::ifsck {
namespace {

using Super = JournalSuperblock;
using Bytes = std::vector<std::byte>;

Bytes make(std::uint32_t incompatible) {
  Bytes bytes(Super::kBytes);
  const std::uint32_t fields[] = {JournalHead::kMagic, 4, 0, 4096, 2048, 1, 9, 5, 0, 0,
                                  incompatible};
  for (std::size_t i = 0; i < std::size(fields); ++i) store_be(bytes.data() + 4 * i, fields[i]);
  bytes[0x50] = std::byte{4};
  store_be(bytes.data() + 0xfc, ext_crc(~0u, bytes));
  return bytes;
}

TEST(JournalSuperblockTest, SaysWhatTheJournalIsLike) {
  const auto super = Super::parse(make(Super::kRevoke | Super::kChecksumV3), 4096, 2048);
  ASSERT_TRUE(super.has_value()) << super.error().message;
  EXPECT_EQ(super->blocks, 2048u);
  EXPECT_EQ(super->first, 1u);
  EXPECT_EQ(super->log_end, 2048u);
  EXPECT_EQ(super->sequence, 9u);
  EXPECT_EQ(super->start, 5u);
  EXPECT_TRUE(super->has(Super::kRevoke) && super->has_checksums());
  EXPECT_FALSE(super->has(Super::kFastCommit));
  EXPECT_EQ(super->seed, ext_crc(~0u, Bytes(16)));
}

TEST(JournalSuperblockTest, HasFastCommitsBehindTheLog) {
  Bytes bytes = make(Super::kFastCommit);
  EXPECT_EQ(Super::parse(bytes, 4096, 2048)->log_end, 2048u - 256);
  store_be<std::uint32_t>(bytes.data() + 0x54, 1000);
  EXPECT_EQ(Super::parse(bytes, 4096, 2048)->log_end, 1048u);
  EXPECT_EQ(Super::parse(bytes, 4096, 2048)->fast_first(), 1049u);
  store_be<std::uint32_t>(bytes.data() + 0x54, 1025);
  EXPECT_EQ(Super::parse(bytes, 4096, 2048).error().code, ErrorCode::kCorrupt);
  store_be<std::uint32_t>(bytes.data() + 0x54, ~0u);
  EXPECT_EQ(Super::parse(bytes, 4096, 2048).error().code, ErrorCode::kCorrupt);
}

TEST(JournalSuperblockTest, OfTheFirstVersionHasNoFeatures) {
  Bytes bytes = make(~0u);
  store_be<std::uint32_t>(bytes.data() + 4, 3);
  const auto super = Super::parse(bytes, 4096, 2048);
  ASSERT_TRUE(super.has_value());
  EXPECT_FALSE(super->has(~0u));
}

TEST(JournalSuperblockTest, IsRefused) {
  const auto code = [](std::uint32_t incompatible, const std::function<void(Bytes&)>& change) {
    Bytes bytes = make(incompatible);
    change(bytes);
    const auto super = Super::parse(bytes, 4096, 2048);
    return super ? ErrorCode::kAborted : super.error().code;
  };
  const auto put = [](std::size_t at, std::uint32_t value) {
    return [=](Bytes& bytes) { store_be(bytes.data() + at, value); };
  };
  EXPECT_EQ(code(0, put(0, 1)), ErrorCode::kCorrupt);        // no magic number
  EXPECT_EQ(code(0, put(4, 2)), ErrorCode::kCorrupt);        // another kind of block
  EXPECT_EQ(code(0, put(0x0c, 1024)), ErrorCode::kCorrupt);  // blocks of another size
  EXPECT_EQ(code(0, put(0x10, 2049)), ErrorCode::kCorrupt);  // more than the file has
  EXPECT_EQ(code(0, put(0x14, 0)), ErrorCode::kCorrupt);     // the log has its superblock's place
  EXPECT_EQ(code(0, put(0x14, 2048)), ErrorCode::kCorrupt);
  EXPECT_EQ(code(0, put(0x1c, 2048)), ErrorCode::kCorrupt);  // begins behind its end
  EXPECT_EQ(code(0x40, put(0x1c, 0)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(0, put(0x2c, 1)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(Super::kChecksumV2, put(0xfc, 0)), ErrorCode::kCorrupt);
  EXPECT_EQ(code(Super::kChecksumV2 | Super::kChecksumV3, put(0x80, 0)), ErrorCode::kCorrupt);
  EXPECT_EQ(code(Super::kChecksumV3, put(0x24, 1)), ErrorCode::kCorrupt);
  EXPECT_EQ(code(Super::kChecksumV3, put(0x50, 0)), ErrorCode::kCorrupt);
}

TEST(JournalSuperblockTest, IsEmptied) {
  for (const std::uint32_t features : {0u, Super::kChecksumV3}) {
    Bytes bytes = make(features);
    store_be<std::uint32_t>(bytes.data() + 0x20, 5);
    empty_log(bytes, 12);
    const auto super = Super::parse(bytes, 4096, 2048);
    ASSERT_TRUE(super.has_value()) << super.error().message;
    EXPECT_EQ(super->start, 0u);
    EXPECT_EQ(super->sequence, 12u);
    EXPECT_EQ(super->error, 0);
  }
}

}  // namespace
}  // namespace mariner::ifsck

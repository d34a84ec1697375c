#include "index/index_block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/logging/log_testing.h"

namespace mariner::index {
namespace {

IndexFileId file_id() {
  IndexFileId file{};
  for (std::size_t i = 0; i < file.size(); ++i) file[i] = static_cast<std::byte>(0xa0 + i);
  return file;
}

constexpr IndexBlockHeader kHeader{{0x11223344}, {0x51525354}, 0x61626364, 0x7172737475767778};

class IndexBlockTest : public ::testing::Test {
 protected:
  IndexBlockTest() {
    for (std::size_t i = 0; i < block_.size(); ++i) block_[i] = static_cast<std::byte>(i * 7);
    seal_index_block(kHeader, file_id(), block_);
  }
  BlockDamage check(const IndexBlockHeader& expected = kHeader) const {
    return check_index_block(expected, file_id(), block_);
  }
  std::vector<std::byte> block_ = std::vector<std::byte>(4096);
};

// FORMAT.md section 3.
TEST_F(IndexBlockTest, GoldenBytesOfAHeader) {
  std::ranges::fill(contents_of(std::span(block_)), std::byte{0});
  seal_index_block(kHeader, file_id(), block_);
  EXPECT_EQ(logging::test::hex(std::span(block_).first(80)),
            "4d524942 71091ecd a0a1a2a3 a4a5a6a7\n"
            "a8a9aaab acadaeaf 44332211 54535251\n"
            "64636261 00000000 78777675 74737271\n"
            "00000000 00000000 00000000 00000000\n"
            "00000000 00000000 00000000 00000000");
}

TEST_F(IndexBlockTest, IsGoodAsItWasSealed) {
  EXPECT_EQ(check(), BlockDamage::kNone);
  EXPECT_EQ(contents_of(std::span(block_)).size(), 4096 - kIndexBlockHeaderBytes);
  EXPECT_EQ(contents_of(std::span(block_))[1], std::byte{65 * 7 % 256});
}

TEST_F(IndexBlockTest, EveryFlippedBitIsDamage) {
  for (std::size_t bit = 0; bit < block_.size() * 8; ++bit) {
    const std::byte mask = std::byte{1} << (bit % 8);
    block_[bit / 8] ^= mask;
    ASSERT_EQ(check(), BlockDamage::kDamaged) << "bit " << bit;
    block_[bit / 8] ^= mask;
  }
}

TEST_F(IndexBlockTest, EveryTearIsDamage) {
  std::vector<std::byte> other = block_;
  IndexBlockHeader before = kHeader;
  --before.version;
  for (std::size_t i = kIndexBlockHeaderBytes; i < other.size(); ++i) other[i] ^= std::byte{1};
  seal_index_block(before, file_id(), other);
  for (std::size_t at = 512; at < block_.size(); at += 512) {
    const auto middle = static_cast<std::ptrdiff_t>(at);
    std::vector<std::byte> torn = block_;
    std::copy(other.begin() + middle, other.end(), torn.begin() + middle);
    EXPECT_EQ(check_index_block(kHeader, file_id(), torn), BlockDamage::kDamaged) << at;
    EXPECT_EQ(check_index_block(before, file_id(), torn), BlockDamage::kDamaged) << at;
  }
  const std::vector<std::byte> nothing(4096);
  EXPECT_EQ(check_index_block({}, {}, nothing), BlockDamage::kDamaged);
}

TEST_F(IndexBlockTest, ABlockOfAnotherAddressFunctionOrFileIsMisplaced) {
  IndexBlockHeader expected = kHeader;
  ++expected.address.value;
  EXPECT_EQ(check(expected), BlockDamage::kMisplaced);
  expected = kHeader;
  ++expected.function.value;
  EXPECT_EQ(check(expected), BlockDamage::kMisplaced);
  IndexFileId file = file_id();
  file[15] ^= std::byte{1};
  EXPECT_EQ(check_index_block(kHeader, file, block_), BlockDamage::kMisplaced);
}

TEST_F(IndexBlockTest, AnotherVersionOrFrontierIsOutOfDate) {
  IndexBlockHeader expected = kHeader;
  ++expected.version;
  EXPECT_EQ(check(expected), BlockDamage::kOutOfDate);
  expected = kHeader;
  ++expected.frontier;
  EXPECT_EQ(check(expected), BlockDamage::kOutOfDate);
}

TEST_F(IndexBlockTest, EachDamageHasItsOwnName) {
  EXPECT_EQ(block_damage_name(BlockDamage::kDamaged), "is damaged");
  EXPECT_EQ(block_damage_name(BlockDamage::kMisplaced), "is another block");
  EXPECT_EQ(block_damage_name(BlockDamage::kOutOfDate), "is out of date (a write of it was lost)");
}

}  // namespace
}  // namespace mariner::index

#include "ifsck/journal_block.h"

#include <gtest/gtest.h>

#include <vector>

#include "ifsck/ext_checksum.h"
#include "proto/bytes.h"

namespace mariner::ifsck {
namespace {

using Super = JournalSuperblock;
using Bytes = std::vector<std::byte>;

std::vector<JournalTag> tags(const Super& super, const Bytes& block) {
  std::vector<JournalTag> all;
  for_each_tag(super, block, [&](const JournalTag& tag) { all.push_back(tag); });
  return all;
}

TEST(JournalBlockTest, HasAHead) {
  Bytes bytes(JournalHead::kBytes);
  EXPECT_FALSE(JournalHead::of(bytes).is_one());
  store_be(bytes.data(), JournalHead::kMagic);
  store_be<std::uint32_t>(bytes.data() + 4, 2);
  store_be<std::uint32_t>(bytes.data() + 8, 77);
  EXPECT_TRUE(JournalHead::of(bytes).is_one());
  EXPECT_EQ(JournalHead::of(bytes).kind, JournalHead::Kind::kCommit);
  EXPECT_EQ(JournalHead::of(bytes).sequence, 77u);
}

// Two tags: the first is followed by a UUID, and the second is the last.
TEST(JournalBlockTest, HasTagsInFiveForms) {
  struct Form {
    std::uint32_t features;
    std::size_t bytes;
    FsBlock block;
    std::uint32_t checksum;
  };
  const FsBlock large = (FsBlock{7} << 32) | 3;
  for (const Form& form : {Form{0, 8, 3, 0x1234}, Form{Super::k64Bit, 12, large, 0x1234},
                           Form{Super::kChecksumV2, 10, 3, 0x1234},
                           Form{Super::kChecksumV2 | Super::k64Bit, 14, large, 0x1234},
                           Form{Super::kChecksumV3, 16, 3, 0x56789abc},
                           Form{Super::kChecksumV3 | Super::k64Bit, 16, large, 0x56789abc}}) {
    Super super;
    super.incompatible = form.features;
    Bytes bytes(1024);
    for (std::size_t i = 0; i < 2; ++i) {
      std::byte* const at = bytes.data() + 12 + i * (form.bytes + 16);
      store_be<std::uint32_t>(at, 3);
      store_be<std::uint16_t>(at + 4, super.has(Super::kChecksumV3) ? 0 : 0x1234);
      store_be<std::uint16_t>(at + 6, i == 0 ? 1 : 8 | 2);
      if (form.bytes > 10) store_be<std::uint32_t>(at + 8, 7);
      if (form.bytes == 16) store_be<std::uint32_t>(at + 12, 0x56789abc);
    }
    EXPECT_EQ(tags(super, bytes), (std::vector<JournalTag>{{form.block, form.checksum, true},
                                                           {form.block, form.checksum, false}}))
        << form.features;
  }
}

TEST(JournalBlockTest, HasNoTagsBehindItsEnd) {
  for (const std::uint32_t features : {0u, Super::k64Bit, Super::kChecksumV2, Super::kChecksumV3}) {
    Super super;
    super.incompatible = features;
    Bytes bytes(1024);
    for (std::size_t at = 12; at < bytes.size(); at += 2) {
      store_be<std::uint16_t>(bytes.data() + at, 2);  // of the same UUID, and never the last
    }
    const auto all = tags(super, bytes);
    EXPECT_GE(all.size(), 50u);
    EXPECT_LE(all.size(), 127u);
  }
}

TEST(JournalBlockTest, NamesWhatIsRevoked) {
  Super super;
  Bytes bytes(1024);
  store_be<std::uint32_t>(bytes.data() + 12, 24);
  store_be<std::uint32_t>(bytes.data() + 16, 3);
  store_be<std::uint32_t>(bytes.data() + 20, 5);
  const auto all = [&] {
    std::vector<FsBlock> blocks;
    const bool good = for_each_revoked(super, bytes, [&](FsBlock each) { blocks.push_back(each); });
    if (!good) blocks = {~FsBlock{0}};
    return blocks;
  };
  EXPECT_EQ(all(), (std::vector<FsBlock>{3, 5}));
  super.incompatible = Super::k64Bit;
  EXPECT_EQ(all(), (std::vector<FsBlock>{(FsBlock{3} << 32) | 5}));
  store_be<std::uint32_t>(bytes.data() + 12, 23);
  EXPECT_EQ(all(), std::vector<FsBlock>{});
  store_be<std::uint32_t>(bytes.data() + 12, 0);
  EXPECT_EQ(all(), std::vector<FsBlock>{});
  store_be<std::uint32_t>(bytes.data() + 12, 1025);
  EXPECT_EQ(all(), std::vector<FsBlock>{~FsBlock{0}});
  store_be<std::uint32_t>(bytes.data() + 12, ~0u);
  EXPECT_EQ(all(), std::vector<FsBlock>{~FsBlock{0}});
}

TEST(JournalBlockTest, IsChecked) {
  Super super;
  super.seed = 99;
  Bytes bytes(1024, std::byte{7});
  EXPECT_TRUE(tail_is_right(super, bytes) && commit_is_right(super, bytes));
  EXPECT_TRUE(data_is_right(super, 5, 0, bytes));
  super.incompatible = Super::kChecksumV3;
  EXPECT_FALSE(tail_is_right(super, bytes) || commit_is_right(super, bytes));
  EXPECT_FALSE(data_is_right(super, 5, 0, bytes));
  for (const std::size_t at : {1020u, 16u}) {
    Bytes one = bytes;
    store_be<std::uint32_t>(one.data() + at, 0);
    store_be(one.data() + at, ext_crc(99, one));
    EXPECT_EQ(tail_is_right(super, one), at == 1020);
    EXPECT_EQ(commit_is_right(super, one), at == 16);
  }
  const std::byte five[] = {std::byte{0}, std::byte{0}, std::byte{0}, std::byte{5}};
  const std::uint32_t crc = ext_crc(ext_crc(99, five), bytes);
  EXPECT_TRUE(data_is_right(super, 5, crc, bytes));
  EXPECT_FALSE(data_is_right(super, 6, crc, bytes));
  super.incompatible = Super::kChecksumV2;
  EXPECT_TRUE(data_is_right(super, 5, crc & 0xffff, bytes));
}

TEST(JournalBlockTest, SumsATransaction) {
  EXPECT_EQ(crc32_be(~0u, as_byte_span("123456789")), 0x0376e6e7u);  // CRC-32/MPEG-2
  Bytes bytes(1024);
  EXPECT_TRUE(transaction_is_right(JournalCommit::of(bytes), 5));
  bytes[12] = std::byte{1};
  bytes[13] = std::byte{4};
  store_be<std::uint32_t>(bytes.data() + 16, 5);
  store_be<std::uint64_t>(bytes.data() + 48, 1234);
  EXPECT_TRUE(transaction_is_right(JournalCommit::of(bytes), 5));
  EXPECT_FALSE(transaction_is_right(JournalCommit::of(bytes), 6));
  EXPECT_EQ(JournalCommit::of(bytes).time_s, 1234u);
  bytes[12] = std::byte{2};
  EXPECT_FALSE(transaction_is_right(JournalCommit::of(bytes), 5));
}

}  // namespace
}  // namespace mariner::ifsck

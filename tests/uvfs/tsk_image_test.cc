#include "uvfs/tsk_image.h"

#include <gtest/gtest.h>
#include <tsk/libtsk.h>

#include <string>

namespace mariner::uvfs {
namespace {

constexpr std::uint64_t kBytes = 1u << 20;

// Each byte is the number of its block.
Result<void> fetch(BlockRange blocks, std::span<std::byte> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] = static_cast<std::byte>(blocks.first.value + i / kBlockBytes);
  }
  return {};
}

TEST(TskImageTest, EachReadIsKnownAsItWasAsked) {
  TskImage image(kBytes, fetch);
  std::vector<ByteRange> reads;
  image.record(&reads);
  std::string to(1024, ' ');
  EXPECT_EQ(tsk_img_read(image.handle(), 3 * kBlockBytes - 512, to.data(), to.size()), 1024);
  EXPECT_EQ(to[0], 2);
  EXPECT_EQ(to[512], 3);
  ASSERT_EQ(reads.size(), 1u);
  EXPECT_EQ(reads[0], (ByteRange{3 * kBlockBytes - 512, 1024}));
  // Again, and each time: nothing is kept.
  EXPECT_EQ(tsk_img_read(image.handle(), 3 * kBlockBytes, to.data(), 512), 512);
  EXPECT_EQ(reads.size(), 2u);
  image.record(nullptr);
  EXPECT_EQ(tsk_img_read(image.handle(), 0, to.data(), 512), 512);
  EXPECT_EQ(reads.size(), 2u);
  EXPECT_TRUE(image.take_error().has_value());
}

TEST(TskImageTest, ManyBytesAreReadAtOnce) {
  TskImage image(kBytes, fetch);
  std::vector<ByteRange> reads;
  image.record(&reads);
  std::string to(200'000, ' ');
  EXPECT_EQ(tsk_img_read(image.handle(), 0, to.data(), to.size()), 200'000);
  EXPECT_EQ(to.back(), static_cast<char>(199'999 / kBlockBytes));
  EXPECT_EQ(reads.size(), 1u);
}

TEST(TskImageTest, TheVolumeHasAnEnd) {
  TskImage image(kBytes, fetch);
  std::string to(1024, ' ');
  EXPECT_EQ(tsk_img_read(image.handle(), kBytes - 512, to.data(), to.size()), 512);
  EXPECT_EQ(tsk_img_read(image.handle(), kBytes, to.data(), to.size()), -1);
  EXPECT_TRUE(image.take_error().has_value());
}

TEST(TskImageTest, AnErrorStaysUntilItIsTaken) {
  bool broken = true;
  TskImage image(kBytes, [&](BlockRange blocks, std::span<std::byte> to) {
    return broken ? Result<void>(Error{ErrorCode::kIo, "gone"}) : fetch(blocks, to);
  });
  std::string to(512, ' ');
  EXPECT_EQ(tsk_img_read(image.handle(), 0, to.data(), to.size()), -1);
  broken = false;
  EXPECT_EQ(tsk_img_read(image.handle(), 0, to.data(), to.size()), -1);
  EXPECT_EQ(image.take_error().error().message, "gone");
  EXPECT_TRUE(image.take_error().has_value());
  EXPECT_EQ(tsk_img_read(image.handle(), 0, to.data(), to.size()), 512);
}

}  // namespace
}  // namespace mariner::uvfs

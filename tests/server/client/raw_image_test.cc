#include "server/client/raw_image.h"

#include <gtest/gtest.h>

#include "proto/bytes.h"
#include "tests/server/client/image_folder.h"

namespace mariner::client {
namespace {

TEST(RawImage, HasEachByteAtItsPlaceAndHolesBetween) {
  const ImageFolder folder;
  auto file = folder.open("disk.raw");
  const std::string block(4096, 'a');
  RawImage image(*file, 64u << 20);
  ASSERT_TRUE(image.write(4096, as_byte_span(block)));
  ASSERT_TRUE(image.write(32u << 20, as_byte_span(block)));
  ASSERT_TRUE(image.finish());
  ASSERT_TRUE(file->commit());
  std::string expected(64u << 20, '\0');
  expected.replace(4096, block.size(), block);
  expected.replace(32u << 20, block.size(), block);
  EXPECT_TRUE(folder.text("disk.raw") == expected);
  EXPECT_LE(folder.allocated_bytes("disk.raw"), 1u << 20);
}

TEST(RawImage, OfNothingIsAsLongToo) {
  const ImageFolder folder;
  auto file = folder.open("disk.raw");
  RawImage image(*file, 1u << 20);
  ASSERT_TRUE(image.finish());
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(folder.text("disk.raw"), std::string(1u << 20, '\0'));
}

}  // namespace
}  // namespace mariner::client

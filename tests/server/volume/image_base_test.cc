#include "server/volume/image_base.h"

#include <gtest/gtest.h>

#include <optional>

#include "proto/payload.h"
#include "tests/server/volume/sectors.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/manual_executor.h"

namespace mariner::volume {
namespace {

// An image of 16 blocks of which every sector holds 5.
class ImageBaseTest : public ::testing::Test {
 protected:
  ImageBaseTest() {
    const Payload bytes = test::bytes_of(test::Sectors(16 * test::kSectorsPerBlock, 5));
    image_.overwrite(0, bytes.bytes());
  }
  // The number in each block of the base, "!" for an error.
  std::string read(BlockRange range) {
    Payload to = Payload::allocate(range.count.bytes());
    std::optional<Result<void>> result;
    base_.read(range, to.bytes(), [&](Result<void> r) { result = std::move(r); });
    executor_.run_until_idle();
    if (!result.value()) return "!";
    std::string text;
    for (std::uint64_t i = 0; i < range.count.value; ++i) {
      text += std::to_string(std::to_integer<int>(to.bytes()[i * kBlockBytes]));
    }
    return text;
  }

  test::ManualExecutor executor_;
  test::FaultyDisk image_{executor_, {.size_bytes = 16 * kBlockBytes}};
  BaseMap map_{false};
  ImageBase base_{image_, map_};
};

TEST_F(ImageBaseTest, WithoutAMapAllIsZero) {
  EXPECT_FALSE(base_.may_move());
  EXPECT_EQ(read({{0}, {4}}), "0000");
}

TEST_F(ImageBaseTest, TheMapSaysWhatTheImageHolds) {
  map_.add({{2}, {3}});
  map_.add({{7}, {1}});
  EXPECT_TRUE(base_.may_move());
  EXPECT_EQ(read({{0}, {10}}), "0055500500");
  EXPECT_EQ(read({{3}, {1}}), "5");
}

TEST_F(ImageBaseTest, OneErrorFailsTheWhole) {
  map_.add({{2}, {1}});
  map_.add({{7}, {1}});
  image_.fail_reads({7 * kBlockBytes, 512});
  EXPECT_EQ(read({{0}, {10}}), "!");
  EXPECT_EQ(read({{0}, {4}}), "0050");
}

}  // namespace
}  // namespace mariner::volume

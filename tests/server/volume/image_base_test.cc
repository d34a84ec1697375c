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
  Result<void> read(BlockRange range) {
    to_ = Payload::zeroed(range.count.bytes());
    std::optional<Result<void>> result;
    base_.read(range, to_.bytes(), [&](Result<void> r) { result = std::move(r); });
    executor_.run_until_idle();
    return result.value();
  }

  test::ManualExecutor executor_;
  test::FaultyDisk image_{executor_, {.size_bytes = 16 * kBlockBytes}};
  ImageBase base_{image_};
  Payload to_;
};

TEST_F(ImageBaseTest, IsTheImageWhichMayBeOverwritten) {
  ASSERT_TRUE(read({{2}, {3}}));
  EXPECT_FALSE(test::mismatch(to_.bytes(), test::Sectors(3 * test::kSectorsPerBlock, 5)));
  EXPECT_TRUE(base_.may_move());
}

TEST_F(ImageBaseTest, AnErrorOfTheImageIsTold) {
  image_.fail_reads({3 * kBlockBytes, kBlockBytes});
  EXPECT_EQ(read({{2}, {3}}).error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace mariner::volume

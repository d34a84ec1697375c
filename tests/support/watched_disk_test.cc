#include "tests/support/watched_disk.h"

#include <gtest/gtest.h>

#include "proto/payload.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/manual_executor.h"

namespace mariner::test {
namespace {

TEST(WatchedDisk, RemembersReadsAndPassesEverythingOn) {
  ManualExecutor executor;
  FaultyDisk under(executor, {.size_bytes = 1u << 20});
  WatchedDisk disk(under);
  EXPECT_EQ(disk.size_bytes(), under.size_bytes());
  Payload bytes = Payload::zeroed(2 * kBlockBytes);
  bytes.data()[kBlockBytes] = std::byte{7};
  const logging::ConstBytes part = bytes.bytes();
  ASSERT_TRUE(disk.write(kBlockBytes, {&part, 1}, logging::Durability::kDurable));
  Payload to = Payload::allocate(kBlockBytes);
  ASSERT_TRUE(disk.read(2 * kBlockBytes, to.bytes()));
  EXPECT_EQ(to.data()[0], std::byte{7});
  bool done = false;
  disk.async_read(0, to.bytes(), [&](const Result<void>& result) { done = result.has_value(); });
  executor.run_until_idle();
  EXPECT_TRUE(done);
  const std::vector<ByteRange> expected{{2 * kBlockBytes, kBlockBytes}, {0, kBlockBytes}};
  EXPECT_EQ(disk.reads(), expected);
  EXPECT_EQ(disk.bytes_read(), 2 * kBlockBytes);
  disk.forget();
  EXPECT_TRUE(disk.reads().empty());
}

TEST(WatchedDisk, ReadsThatFailCountToo) {
  ManualExecutor executor;
  FaultyDisk under(executor, {.size_bytes = 1u << 20});
  under.fail_reads({0, 1u << 20});
  WatchedDisk disk(under);
  Payload to = Payload::allocate(kBlockBytes);
  EXPECT_FALSE(disk.read(0, to.bytes()));
  EXPECT_EQ(disk.reads().size(), 1u);
}

}  // namespace
}  // namespace mariner::test

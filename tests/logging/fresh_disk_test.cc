#include "logging/fresh_disk.h"

#include <gtest/gtest.h>

#include "tests/logging/log_testing.h"

namespace mariner::logging {
namespace {

class FreshDiskTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kBytes = 4 * kSignatureBytes;
  void put(std::uint64_t at) {
    Payload block = Payload::zeroed(kBlockBytes);
    block.data()[100] = std::byte{7};
    const ConstBytes part = block.bytes();
    ASSERT_TRUE(disk_.write(at, {&part, 1}, Durability::kDurable).has_value());
  }
  test::ManualExecutor executor_;
  test::FaultyDisk disk_{executor_, {.size_bytes = kBytes}};
};

TEST_F(FreshDiskTest, ZerosAreFresh) { EXPECT_TRUE(check_fresh(disk_, "/dev/sdc").has_value()); }

TEST_F(FreshDiskTest, WhatSomethingStandsOnIsNot) {
  // A partition table, LVM, md, ZFS, Btrfs; GPT's copy, md 1.0, ZFS.
  for (const std::uint64_t at :
       {std::uint64_t{0}, std::uint64_t{4096}, std::uint64_t{16384}, std::uint64_t{65536},
        kBytes - 524288, kBytes - 65536, kBytes - 4096}) {
    test::FaultyDisk disk(executor_, {.size_bytes = kBytes});
    Payload block = Payload::zeroed(kBlockBytes);
    block.data()[100] = std::byte{7};
    const ConstBytes part = block.bytes();
    ASSERT_TRUE(disk.write(at, {&part, 1}, Durability::kDurable).has_value());
    const auto checked = check_fresh(disk, "/dev/sdc");
    ASSERT_FALSE(checked.has_value()) << at;
    EXPECT_EQ(checked.error().code, ErrorCode::kAlreadyExists);
    EXPECT_NE(checked.error().message.find("/dev/sdc"), std::string::npos);
    EXPECT_NE(checked.error().message.find("byte " + std::to_string(at + 100) + ";"),
              std::string::npos)
        << checked.error().message;
  }
}

TEST_F(FreshDiskTest, WhatIsInTheMiddleIsNotLookedAt) {
  put(2 * kSignatureBytes);
  EXPECT_TRUE(check_fresh(disk_, "/dev/sdc").has_value());
}

TEST_F(FreshDiskTest, ASmallOneIsLookedAtWhole) {
  test::FaultyDisk disk(executor_, {.size_bytes = 3 * kBlockBytes});
  EXPECT_TRUE(check_fresh(disk, "small").has_value());
}

}  // namespace
}  // namespace mariner::logging

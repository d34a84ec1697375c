#include "logging/damaged_read.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/logging/log_testing.h"
#include "tests/support/passing_disk.h"

namespace mariner::logging {
namespace {

using test::FaultyDisk;
using test::ManualExecutor;

// Knows of one damaged block.
class KnowingDisk final : public mariner::test::PassingDisk {
 public:
  KnowingDisk(Disk& under, std::uint64_t damaged, ErrorCode code)
      : PassingDisk(under), damaged_(damaged), code_(code) {}
  Result<void> read(std::uint64_t offset, std::span<std::byte> to) override {
    if (offset <= damaged_ && damaged_ < offset + to.size()) return Error{code_, "damaged"};
    return PassingDisk::read(offset, to);
  }

 private:
  const std::uint64_t damaged_;
  const ErrorCode code_;
};

class DamagedReadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const ConstBytes part = written_.bytes();
    ASSERT_TRUE(disk_.write(0, {&part, 1}, Durability::kDurable).has_value());
  }
  ManualExecutor executor_;
  FaultyDisk disk_{executor_, {.size_bytes = 8 * kBlockBytes}};
  const Payload written_ = test::payload_of(1, 8);
  Payload found_ = Payload::allocate(8 * kBlockBytes);
};

TEST_F(DamagedReadTest, TheDamagedBlockIsZerosAndTheOthersAreThere) {
  KnowingDisk disk(disk_, 3 * kBlockBytes, ErrorCode::kCorrupt);
  ASSERT_TRUE(read_with_damage(disk, 0, found_.bytes()).has_value());
  for (std::size_t i = 0; i < 8; ++i) {
    const auto block = found_.bytes().subspan(i * kBlockBytes, kBlockBytes);
    const auto expected = written_.bytes().subspan(i * kBlockBytes, kBlockBytes);
    if (i == 3) {
      EXPECT_TRUE(std::ranges::all_of(block, [](std::byte b) { return b == std::byte{0}; }));
    } else {
      EXPECT_TRUE(std::ranges::equal(block, expected)) << i;
    }
  }
}

TEST_F(DamagedReadTest, WithoutDamageItIsARead) {
  ASSERT_TRUE(read_with_damage(disk_, 0, found_.bytes()).has_value());
  EXPECT_TRUE(std::ranges::equal(found_.bytes(), written_.bytes()));
}

TEST_F(DamagedReadTest, OtherErrorsArePassedOn) {
  KnowingDisk disk(disk_, 3 * kBlockBytes, ErrorCode::kIo);
  EXPECT_EQ(read_with_damage(disk, 0, found_.bytes()).error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace mariner::logging

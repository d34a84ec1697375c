#include "logging/log_disks.h"

#include <gtest/gtest.h>

#include "tests/logging/log_testing.h"

namespace mariner::logging {
namespace {

using test::FaultyDisk;
using test::log_id;
using test::ManualExecutor;

// Tells when it is closed.
class ClosingDisk final : public Disk {
 public:
  explicit ClosingDisk(bool& closed) : closed_(closed) {}
  ~ClosingDisk() override { closed_ = true; }
  ClosingDisk(const ClosingDisk&) = delete;
  ClosingDisk& operator=(const ClosingDisk&) = delete;
  [[nodiscard]] std::uint64_t size_bytes() const override { return 0; }
  [[nodiscard]] std::uint32_t alignment() const override { return kBlockBytes; }
  Result<void> read(std::uint64_t, std::span<std::byte>) override { return {}; }
  Result<void> write(std::uint64_t, std::span<const ConstBytes>, Durability) override { return {}; }
  Result<void> flush() override { return {}; }
  Result<void> discard(ByteRange) override { return {}; }
  void async_read(std::uint64_t, std::span<std::byte>, Completion) override {}
  void async_write(std::uint64_t, std::vector<ConstBytes>, Durability, Completion) override {}

 private:
  bool& closed_;
};

class LogDisksTest : public ::testing::Test {
 protected:
  ManualExecutor executor_;
  FaultyDisk first_{executor_, {.size_bytes = kBlockBytes}};
  FaultyDisk second_{executor_, {.size_bytes = kBlockBytes}};
  LogDisks disks_;
};

TEST_F(LogDisksTest, FindsADiskByItsNumber) {
  disks_.add(0, {LogDisks::not_owned(first_), log_id(1)});
  disks_.add(255, {LogDisks::not_owned(second_), {log_id(1), 512}});
  EXPECT_EQ(disks_.find(0)->disk.get(), &first_);
  EXPECT_EQ(disks_.find(0)->format.sector_bytes, kBlockBytes);
  EXPECT_EQ(disks_.find(255)->disk.get(), &second_);
  EXPECT_EQ(disks_.find(255)->format.sector_bytes, 512u);
}

TEST_F(LogDisksTest, OneDiskAloneHasNumberZero) {
  const LogDisks alone(first_, log_id(1));
  EXPECT_EQ(alone.find(0)->disk.get(), &first_);
  EXPECT_FALSE(alone.find(1).has_value());
}

TEST_F(LogDisksTest, OneThatIsNotThereIsNamed) {
  const auto missing = disks_.find(17);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(missing.error().message.find("17"), std::string::npos);
}

TEST_F(LogDisksTest, ANumberCanBeGivenAgain) {
  disks_.add(3, {LogDisks::not_owned(first_), log_id(1)});
  disks_.remove(3);
  EXPECT_FALSE(disks_.find(3).has_value());
  disks_.add(3, {LogDisks::not_owned(second_), log_id(1)});
  EXPECT_EQ(disks_.find(3)->disk.get(), &second_);
}

TEST_F(LogDisksTest, ARemovedDiskStaysOpenForWhoeverHoldsIt) {
  bool closed = false;
  disks_.add(1, {std::make_shared<ClosingDisk>(closed), log_id(1)});
  auto held = disks_.find(1);
  disks_.remove(1);
  EXPECT_FALSE(disks_.find(1).has_value());
  EXPECT_FALSE(closed);
  EXPECT_TRUE(held->disk->flush().has_value());
  held->disk.reset();
  EXPECT_TRUE(closed);
}

TEST_F(LogDisksTest, ARemovedDiskThatNobodyHoldsIsClosed) {
  bool closed = false;
  disks_.add(1, {std::make_shared<ClosingDisk>(closed), log_id(1)});
  disks_.remove(1);
  EXPECT_TRUE(closed);
}

}  // namespace
}  // namespace mariner::logging

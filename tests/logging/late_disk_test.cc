#include "logging/late_disk.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "tests/support/faulty_disk.h"
#include "tests/support/manual_executor.h"

namespace mariner::logging {
namespace {

constexpr std::uint64_t kBytes = 64u << 10;

class LateDiskTest : public ::testing::Test {
 protected:
  void arrive() {
    auto disk = std::make_unique<test::FaultyDisk>(
        executor_, test::FaultyDisk::Options{.size_bytes = 2 * kBytes});
    there_ = disk.get();
    late_.arrive(std::move(disk));
  }
  // What an asynchronous request ends with; it does not end before it has returned.
  template <typename Request>
  Result<void> ended(Request request) {
    std::optional<Result<void>> result;
    request([&](Result<void> r) { result = std::move(r); });
    EXPECT_FALSE(result.has_value());
    executor_.run_until_idle();
    return result ? *result : Error{ErrorCode::kAborted, "it did not end"};
  }
  static void expect_missing(const Result<void>& result) {
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
    EXPECT_EQ(result.error().message, "3.raw: no such file");
  }

  test::ManualExecutor executor_;
  LateDisk late_{kBytes, Error{ErrorCode::kNotFound, "3.raw: no such file"}, executor_};
  test::FaultyDisk* there_ = nullptr;
  alignas(kBlockBytes) std::array<std::byte, 4096> block_{};
};

TEST_F(LateDiskTest, EveryRequestFailsUntilItHasCome) {
  EXPECT_EQ(late_.size_bytes(), kBytes);
  EXPECT_EQ(late_.alignment(), 1u);
  EXPECT_FALSE(late_.can_forget());
  EXPECT_FALSE(late_.has_place({0, 4096}));
  EXPECT_FALSE(late_.try_read(0, block_));
  const std::array<ConstBytes, 1> parts{block_};
  expect_missing(late_.read(0, block_));
  expect_missing(late_.write(0, parts, Durability::kVolatile));
  expect_missing(late_.write_past_cache(std::array{Disk::Write{0, {block_}}}));
  expect_missing(late_.flush());
  late_.start_writeback({0, 4096});
  expect_missing(late_.wait_for_writeback({0, 4096}));
  expect_missing(late_.discard({0, 4096}));
  late_.submit_now();
  using Done = Disk::Completion;
  expect_missing(ended([&](Done done) { late_.async_read(0, block_, std::move(done)); }));
  expect_missing(ended(
      [&](Done done) { late_.async_write(0, {block_}, Durability::kDurable, std::move(done)); }));
  expect_missing(ended([&](Done done) { late_.async_flush(std::move(done)); }));
  expect_missing(ended([&](Done done) { late_.async_forget({0, 4096}, std::move(done)); }));
}

TEST_F(LateDiskTest, RequestsGoToTheDiskThatHasCome) {
  arrive();
  EXPECT_EQ(late_.size_bytes(), 2 * kBytes);
  EXPECT_EQ(late_.alignment(), there_->alignment());
  block_.fill(std::byte{7});
  const std::array<ConstBytes, 1> parts{block_};
  ASSERT_TRUE(late_.write(4096, parts, Durability::kVolatile));
  ASSERT_TRUE(late_.flush());
  alignas(kBlockBytes) std::array<std::byte, 4096> read{};
  ASSERT_TRUE(there_->read(4096, read));
  EXPECT_EQ(read, block_);
  read.fill({});
  ASSERT_TRUE(ended([&](Disk::Completion done) { late_.async_read(4096, read, std::move(done)); }));
  EXPECT_EQ(read, block_);
  ASSERT_TRUE(late_.discard({4096, 4096}));
  ASSERT_TRUE(late_.read(4096, read));
  EXPECT_EQ(read, (std::array<std::byte, 4096>{}));
}

}  // namespace
}  // namespace mariner::logging

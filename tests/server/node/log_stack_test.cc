#include "server/node/log_stack.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/server/iscsi/asio_executor.h"

namespace mariner::node {
namespace {

class LogStackTest : public ::testing::Test {
 protected:
  LogStackTest() {
    std::string name = (std::filesystem::temp_directory_path() / "mariner-log-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    ring_ = *logging::IoRing::create(executor_);
  }
  ~LogStackTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  [[nodiscard]] std::string path() const { return directory_ + "/log"; }
  Result<std::unique_ptr<LogStack>> open() {
    return LogStack::open(
        {path(), logging::kReservedBytes + 4 * std::uint64_t{logging::kTrackBytesMin},
         logging::kTrackBytesMin},
        executor_, *ring_,
        [this](const logging::Record&, const logging::LogLocation&) { ++records_; });
  }

  std::string directory_;
  boost::asio::io_context context_{1};
  iscsi::AsioExecutor executor_{context_};
  std::unique_ptr<logging::IoRing> ring_;
  int records_ = 0;
};

TEST_F(LogStackTest, MakesItsFileOnceAndFindsItAgain) {
  logging::LogId id{};
  {
    const auto stack = open();
    ASSERT_TRUE(stack);
    id = (*stack)->superblock().log;
    EXPECT_EQ((*stack)->superblock().track_count, 4u);
    EXPECT_TRUE((*stack)->idle());
    EXPECT_FALSE(std::filesystem::exists(path() + ".new"));
  }
  const auto again = open();
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)->superblock().log, id);
  EXPECT_EQ(records_, 0);
}

TEST_F(LogStackTest, WhatACrashLeftOfItsMakingIsMadeAnew) {
  std::ofstream(path() + ".new") << "half made";
  EXPECT_TRUE(open());
}

TEST_F(LogStackTest, ScrubsWhenItIsToldTo) {
  const auto stack = open();
  ASSERT_TRUE(stack);
  EXPECT_EQ((*stack)->scrubber(), nullptr);
  (*stack)->start_scrubbing(executor_, 1u << 20,
                            [](const std::string&, const logging::TrackDamage&) {});
  while ((*stack)->scrubber()->progress().rounds == 0) context_.run_one();
  (*stack)->stop();
  EXPECT_TRUE((*stack)->idle());
}

TEST_F(LogStackTest, ASecondOwnerIsRefused) {
  const auto first = open();
  ASSERT_TRUE(first);
  EXPECT_FALSE(open());
}

TEST_F(LogStackTest, AFileThatIsNoLogIsNamedAndLeftAlone) {
  std::ofstream(path()) << std::string(1u << 21, 'x');
  const auto refused = open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(refused.error().message.find(path()), std::string::npos);
  EXPECT_EQ(std::filesystem::file_size(path()), 1u << 21);
}

TEST_F(LogStackTest, TooSmallALogIsRefusedAndLeavesNoLogBehind) {
  const auto refused =
      LogStack::open({path(), 8u << 20, logging::kTrackBytesMin}, executor_, *ring_,
                     [](const logging::Record&, const logging::LogLocation&) {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(path()));
}

}  // namespace
}  // namespace mariner::node

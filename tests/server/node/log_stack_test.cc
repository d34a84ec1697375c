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
  Result<std::unique_ptr<LogStack>> open() { return open(settings({path()})); }
  static LogSettings settings(std::vector<std::string> paths) {
    LogSettings out;
    out.paths = std::move(paths);
    out.size_bytes = logging::kReservedBytes + 4 * std::uint64_t{logging::kTrackBytesMin};
    out.track_bytes = logging::kTrackBytesMin;
    return out;
  }
  Result<std::unique_ptr<LogStack>> open(const LogSettings& settings) {
    return LogStack::open(
        settings, executor_, *ring_, [](const std::string&) { return LogStack::Known{}; },
        [this](const logging::Record&, const logging::LogLocation&) { ++records_; });
  }

  std::string directory_;
  boost::asio::io_context context_{1};
  iscsi::AsioExecutor executor_{context_};
  std::unique_ptr<logging::IoRing> ring_;
  int records_ = 0;
};

TEST_F(LogStackTest, MakesItsFileOnceAndFindsItAgain) {
  std::string id;
  {
    const auto stack = open();
    ASSERT_TRUE(stack);
    id = (*stack)->id_bytes();
    EXPECT_EQ((*stack)->track_count(), 4u);
    EXPECT_TRUE((*stack)->idle());
    EXPECT_FALSE(std::filesystem::exists(path() + ".new"));
  }
  const auto again = open();
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)->id_bytes(), id);
  EXPECT_EQ(records_, 0);
}

TEST_F(LogStackTest, FindsOutHowToMakeWritesDurableUnlessItIsTold) {
  {
    const auto stack = open();
    ASSERT_TRUE(stack);
    const logging::DurableChoice& choice = (*stack)->members()[0].durability;
    EXPECT_FALSE(choice.configured);
    EXPECT_GT(choice.writes, 0u) << choice.not_measured;
  }
  LogSettings settled = settings({path()});
  settled.durable_way = logging::DurableWay::kFlush;
  const auto told = open(settled);
  ASSERT_TRUE(told);
  EXPECT_TRUE((*told)->members()[0].durability.configured);
  EXPECT_EQ((*told)->members()[0].durability.way, logging::DurableWay::kFlush);
}

TEST_F(LogStackTest, SeveralDisksAreOneLog) {
  std::string id;
  {
    const auto stack = open(settings({path(), path() + "b"}));
    ASSERT_TRUE(stack);
    id = (*stack)->id_bytes();
    EXPECT_EQ((*stack)->track_count(), 8u);
    ASSERT_EQ((*stack)->members().size(), 2u);
    EXPECT_EQ((*stack)->members()[1].number, 1);
  }
  LogSettings again = settings({path() + "b", path()});
  again.members = {{0, path(), false, {}}, {1, path() + "b", false, {}}};
  const auto stack = open(again);
  ASSERT_TRUE(stack);
  EXPECT_EQ((*stack)->id_bytes(), id);
  EXPECT_EQ((*stack)->path_of(1), path() + "b");
}

TEST_F(LogStackTest, AMemberThatIsMissingIsNamedAndNothingIsMadeInItsPlace) {
  ASSERT_TRUE(open(settings({path(), path() + "b"})));
  std::filesystem::remove(path() + "b");
  LogSettings again = settings({path(), path() + "b"});
  again.members = {{0, path(), false, {}}, {1, path() + "b", false, {}}};
  const auto refused = open(again);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(refused.error().message.find(path() + "b"), std::string::npos);
  EXPECT_NE(refused.error().message.find("[log] lost"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path() + "b"));
}

TEST_F(LogStackTest, ADiskOfAnotherLogAndACopyAreRefused) {
  ASSERT_TRUE(open(settings({path()})));
  ASSERT_TRUE(open(settings({path() + "b"})));
  const auto foreign = open(settings({path(), path() + "b"}));
  ASSERT_FALSE(foreign);
  EXPECT_NE(foreign.error().message.find("another log"), std::string::npos);
  std::filesystem::remove(path() + "b");
  std::filesystem::copy_file(path(), path() + "b");
  const auto copy = open(settings({path(), path() + "b"}));
  ASSERT_FALSE(copy);
  EXPECT_NE(copy.error().message.find("a copy"), std::string::npos);
}

TEST_F(LogStackTest, ADiskComesAndGoesAtRunTime) {
  auto stack = open();
  ASSERT_TRUE(stack);
  EXPECT_EQ((*stack)->drain(path()).error().code, ErrorCode::kBusy) << "the only one";
  const auto added = (*stack)->add(path() + "b");
  ASSERT_TRUE(added);
  EXPECT_EQ(added->number, 1);
  EXPECT_EQ((*stack)->track_count(), 8u);
  EXPECT_EQ((*stack)->add(path() + "b").error().code, ErrorCode::kBusy);
  ASSERT_TRUE((*stack)->drain(path()));
  EXPECT_EQ((*stack)->track_count(), 4u);
  for (int i = 0; i < 100 && (*stack)->members().size() > 1; ++i) {
    context_.run_one_for(std::chrono::milliseconds(10));
    (*stack)->retire();
  }
  ASSERT_EQ((*stack)->members().size(), 1u) << "it held nothing";
  EXPECT_EQ((*stack)->members()[0].path, path() + "b");
}

TEST_F(LogStackTest, WhatACrashLeftOfItsMakingIsMadeAnew) {
  std::ofstream(path() + ".new") << "half made";
  EXPECT_TRUE(open());
}

TEST_F(LogStackTest, ScrubsWhenItIsToldTo) {
  const auto stack = open();
  ASSERT_TRUE(stack);
  const logging::LogArray::Member& member = *(*stack)->array().members()[0];
  EXPECT_EQ(member.scrubber, nullptr);
  (*stack)->array().start_scrubbing(1u << 20, [](std::uint8_t, const logging::TrackDamage&) {});
  while (member.scrubber->progress().rounds == 0) context_.run_one();
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
  LogSettings small = settings({path()});
  small.size_bytes = 8u << 20;
  const auto refused = open(small);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(path()));
}

}  // namespace
}  // namespace mariner::node

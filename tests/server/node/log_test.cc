#include "server/node/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace mariner {
namespace {

using testing::EndsWith;
using testing::StartsWith;

class LogTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pipe(pipe_.data()), 0); }
  void TearDown() override {
    close(pipe_[0]);
    close(pipe_[1]);
    unsetenv("JOURNAL_STREAM");
  }
  std::string read_all() {
    std::array<char, 4096> buffer{};
    const auto n = ::read(pipe_[0], buffer.data(), buffer.size());
    return {buffer.data(), static_cast<std::size_t>(n)};
  }
  void pretend_journal() {
    struct stat status {};
    fstat(pipe_[1], &status);
    setenv("JOURNAL_STREAM",
           (std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino)).c_str(), 1);
  }
  std::array<int, 2> pipe_{};
};

TEST_F(LogTest, WritesWhatIsImportantEnough) {
  Log log({.format = LogFormat::kText, .level = LogLevel::kInfo, .fd = pipe_[1]});
  log.debug("unseen");
  log.info("seen", {{"volume", "db1"}});
  EXPECT_THAT(read_all(), EndsWith("Z INFO seen volume=db1\n"));
}

TEST_F(LogTest, BracesInAMessageAreOnlyCharacters) {
  Log log({.format = LogFormat::kText, .level = LogLevel::kInfo, .fd = pipe_[1]});
  log.error("{} {0} %s");
  EXPECT_THAT(read_all(), EndsWith("Z ERROR {} {0} %s\n"));
}

TEST_F(LogTest, KnowsTheJournal) {
  EXPECT_FALSE(is_journal(pipe_[1]));
  pretend_journal();
  EXPECT_TRUE(is_journal(pipe_[1]));
  EXPECT_FALSE(is_journal(0));
  EXPECT_FALSE(is_journal(-1));
  Log log({.format = LogFormat::kJson, .level = LogLevel::kInfo, .fd = pipe_[1]});
  log.warning("w");
  EXPECT_THAT(read_all(), StartsWith("<4>{\"time\":"));
}

}  // namespace
}  // namespace mariner

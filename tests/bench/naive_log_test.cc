#include "tests/bench/naive_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

namespace mariner::bench {
namespace {

constexpr std::size_t kWriters = 8;
constexpr std::size_t kRecordsEach = 4;
constexpr std::size_t kPayloadBytes = 4096;
constexpr std::size_t kHeaderBytes = 24;

class NaiveLogTest : public testing::TestWithParam<NaiveLog::Commit> {
 protected:
  ~NaiveLogTest() override { std::filesystem::remove(path_); }
  const std::string path_ = testing::TempDir() + "naive_log_test." + std::to_string(::getpid());
};

TEST_P(NaiveLogTest, WritesEveryRecordWholeAndOnce) {
  auto log = NaiveLog::create(path_, GetParam());
  ASSERT_TRUE(log);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kWriters; ++i) {
      threads.emplace_back([&] {
        const std::vector<std::byte> payload(kPayloadBytes);
        for (std::size_t n = 0; n < kRecordsEach; ++n) EXPECT_TRUE((*log)->append(payload));
      });
    }
  }
  EXPECT_EQ(std::filesystem::file_size(path_),
            kWriters * kRecordsEach * (kHeaderBytes + kPayloadBytes));
  EXPECT_LE((*log)->syncs(), kWriters * kRecordsEach);
  if (GetParam() == NaiveLog::Commit::kEach) {
    EXPECT_EQ((*log)->syncs(), kWriters * kRecordsEach);
  }
}

TEST_P(NaiveLogTest, ALogThatCannotBeCreatedSaysSo) {
  EXPECT_FALSE(NaiveLog::create(path_ + "/no/such", GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Commits, NaiveLogTest,
                         testing::Values(NaiveLog::Commit::kEach, NaiveLog::Commit::kGroup));

}  // namespace
}  // namespace mariner::bench

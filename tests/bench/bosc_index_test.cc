#include "tests/bench/bosc_index.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/bench/index_engine_model.h"

namespace mariner::bench {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

class BoscIndexTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  ~BoscIndexTest() override { std::filesystem::remove(path_); }
  const std::string path_ = testing::TempDir() + "bosc_index_test." + std::to_string(::getpid());
};

TEST_P(BoscIndexTest, AnswersLikeAMap) {
  auto created = BoscIndex::create(
      {.path = path_,
       .disk_bytes = 256 * kMiB,
       .block_bytes = GetParam(),
       .store = {.memory_bytes = 4 * kMiB, .cache_bytes = kMiB, .run_blocks_max = 8}});
  ASSERT_TRUE(created) << created.error().message;
  IndexEngineModel(**created, {}).expect_all();
  EXPECT_GT((*created)->counts().cycles, 0u);
}

INSTANTIATE_TEST_SUITE_P(BlockBytes, BoscIndexTest, testing::Values(4096, 16384));

}  // namespace
}  // namespace mariner::bench

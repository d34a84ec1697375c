#include "server/node/node_promises.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/logging/temporary_directory.h"
#include "tests/support/manual_executor.h"

namespace mariner::node {
namespace {

class NodePromisesTest : public ::testing::Test {
 protected:
  void SetUp() override { open(); }
  void open() {
    store_.reset();
    Result<std::unique_ptr<MetaStore>> store = MetaStore::open(directory_.file("store"));
    ASSERT_TRUE(store);
    store_ = *std::move(store);
  }
  void promise(std::uint64_t epoch, std::uint64_t floor_ns) {
    std::optional<Result<void>> result;
    NodePromises(*store_, executor_)
        .promise(VolumeId{3}, Epoch{epoch}, VersionTime{floor_ns},
                 [&result](Result<void> r) { result = std::move(r); });
    EXPECT_FALSE(result) << "not from within the call";
    executor_.run_ready();
    ASSERT_TRUE(result);
    EXPECT_TRUE(*result);
  }

  const logging::test::TemporaryDirectory directory_;
  test::ManualExecutor executor_;
  std::unique_ptr<MetaStore> store_;
};

TEST_F(NodePromisesTest, WhatIsPromisedIsThereAfterARestart) {
  promise(4, 100);
  open();
  EXPECT_EQ(store_->promise(3)->epoch(), 4u);
  EXPECT_EQ(store_->promise(3)->floor_ns(), 100u);
  EXPECT_EQ(store_->promise(2)->epoch(), 0u);
}

TEST_F(NodePromisesTest, NothingIsTakenBack) {
  promise(4, 100);
  promise(3, 200);
  EXPECT_EQ(store_->promise(3)->epoch(), 4u);
  EXPECT_EQ(store_->promise(3)->floor_ns(), 200u);
}

}  // namespace
}  // namespace mariner::node

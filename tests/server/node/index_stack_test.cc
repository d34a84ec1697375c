#include "server/node/index_stack.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/server/node/index_stack_fixture.h"

namespace mariner::node {
namespace {

using IndexStackTest = testing::IndexStackFixture;

TEST_F(IndexStackTest, WhatWasCommittedIsNotTakenFromTheLogAgain) {
  const SequenceNumber first = write(3, 'a');
  write(3, 'b');
  commit();
  EXPECT_EQ(parts_.indexes().store().frontier(),
            parts_.log_stack().writer().ordinal_frontier() - 1);
  restart();
  EXPECT_GT(parts_.indexes().frontier(), 0u);
  EXPECT_EQ(parts_.indexes().store().statistics().modifications, 0u);
  EXPECT_EQ(read_at(first, 3), 'a');
}

TEST_F(IndexStackTest, AFileThatIsGoneIsMadeFromTheLog) {
  const SequenceNumber first = write(3, 'a');
  write(3, 'b');
  commit();
  parts_.stop();
  std::filesystem::remove(parts_.path("index"));
  parts_.start();
  EXPECT_EQ(parts_.indexes().frontier(), 0u);
  EXPECT_EQ(read_at(first, 3), 'a');
  EXPECT_EQ(parts_.read(*volume().volume->live_layer(), 3), 'b');
}

TEST_F(IndexStackTest, AFileThatIsDamagedAsAWholeIsMadeFromTheLog) {
  const SequenceNumber first = write(3, 'a');
  write(3, 'b');
  commit();
  parts_.stop();
  spoil(0, 2 * kBlockBytes);  // both copies of its superblock
  parts_.start();
  EXPECT_EQ(parts_.indexes().frontier(), 0u);
  EXPECT_EQ(read_at(first, 3), 'a');
}

TEST_F(IndexStackTest, AFileOfAnotherLogIsMadeAgain) {
  const SequenceNumber first = write(3, 'a');
  write(3, 'b');
  commit();
  meta::IndexFile other = *parts_.store().index_file();
  other.set_log("another log's id");
  ASSERT_TRUE(parts_.store().put_index_file(other));
  restart();
  EXPECT_EQ(parts_.indexes().frontier(), 0u);
  EXPECT_EQ(parts_.store().index_file()->log(), parts_.log_stack().id_bytes());
  EXPECT_EQ(read_at(first, 3), 'a');
}

TEST_F(IndexStackTest, ADeletedVolumeLeavesNothing) {
  const std::uint32_t before = parts_.indexes().store().allocated_blocks();
  parts_.create("db2");
  EXPECT_GT(parts_.indexes().store().allocated_blocks(), before);
  write(3, 'x', "db2");
  commit();
  ASSERT_TRUE(parts_.remove("db2"));
  parts_.run_until([&] { return parts_.indexes().store().allocated_blocks() == before; });
  write(3, 'a');
  commit();
  restart();
  EXPECT_EQ(parts_.indexes().store().allocated_blocks(), before);
}

TEST_F(IndexStackTest, WhatACheckpointKnowsOfVolumesThatAreGoneIsForgottenAtAStart) {
  const std::uint32_t before = parts_.indexes().store().allocated_blocks();
  parts_.create("db2");
  write(3, 'x', "db2");
  commit();
  const std::uint32_t id = volume("db2").meta.id();
  parts_.stop();
  auto store = MetaStore::open(parts_.path("store"));
  ASSERT_TRUE((*store)->remove_volume(id));  // as if a crash had come behind it
  store->reset();
  parts_.start();
  EXPECT_EQ(parts_.indexes().store().allocated_blocks(), before);
}

TEST_F(IndexStackTest, DamageThatAStartMeetsIsMendedByIt) {
  const SequenceNumber first = write(3, 'a');
  write(3, 'b');
  commit();
  parts_.stop();
  look_at_file();
  spoil_blocks();
  parts_.start();
  EXPECT_EQ(parts_.indexes().frontier(), 0u);
  EXPECT_FALSE(parts_.indexes().is_damaged());
  EXPECT_EQ(read_at(first, 3), 'a');
}

}  // namespace
}  // namespace mariner::node

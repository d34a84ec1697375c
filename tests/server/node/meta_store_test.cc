#include "server/node/meta_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/logging/temporary_directory.h"

namespace mariner::node {
namespace {

class MetaStoreTest : public ::testing::Test {
 protected:
  MetaStoreTest() { reopen(); }
  void reopen() {
    store_.reset();
    Result<std::unique_ptr<MetaStore>> store = MetaStore::open(path_);
    ASSERT_TRUE(store);
    store_ = std::move(*store);
  }
  meta::Volume volume(std::uint32_t id) {
    meta::Volume out;
    out.set_id(id);
    out.set_name("v" + std::to_string(id));
    return out;
  }
  meta::Mark mark(std::uint32_t volume_id, const std::string& name) {
    meta::Mark out;
    out.set_volume_id(volume_id);
    out.set_name(name);
    return out;
  }

  const logging::test::TemporaryDirectory folder_;
  const std::string path_ = folder_.file("store");
  std::unique_ptr<MetaStore> store_;
};

TEST_F(MetaStoreTest, GroupsHaveMarksAndRollbacks) {
  meta::Group group;
  group.set_name("g1");
  group.add_members()->set_volume_id(2);
  ASSERT_TRUE(store_->put_group(group));
  meta::Group other;
  other.set_name("g1.more");  // whose name begins with the first one's
  ASSERT_TRUE(store_->put_group(other));
  meta::GroupMark whole;
  whole.set_group("g1");
  whole.set_name("m");
  whole.set_time_ns(70);
  whole.set_locked_until_ns(90);
  for (const std::uint32_t id : {2u, 3u}) {
    meta::GroupPart& part = *whole.add_parts();
    part.set_volume_id(id);
    part.set_sequence(10 * id);
    part.set_time_ns(60 + id);
  }
  ASSERT_TRUE(store_->put_group_mark(whole));
  ASSERT_TRUE(store_->put_mark(mark(2, "own")));
  meta::GroupRollback rollback;
  rollback.set_group("g1");
  for (const std::uint64_t number : {1u, 2u, 16u}) {
    rollback.set_number(number);
    ASSERT_TRUE(store_->put_group_rollback(rollback));
  }
  reopen();
  EXPECT_EQ(store_->groups()->size(), 2u);
  EXPECT_EQ(store_->group_marks_of("g1")->size(), 1u);
  EXPECT_TRUE(store_->group_marks_of("g1.more")->empty());
  const auto marks = store_->marks_of(2);
  ASSERT_EQ(marks->size(), 2u);
  EXPECT_EQ((*marks)[1].name(), "g1/m");
  EXPECT_EQ((*marks)[1].group(), "g1");
  EXPECT_EQ((*marks)[1].sequence(), 20u);
  EXPECT_EQ((*marks)[1].time_ns(), 62u);
  EXPECT_EQ((*marks)[1].locked_until_ns(), 90u);
  EXPECT_EQ(store_->marks_of(3)->size(), 1u);
  EXPECT_TRUE(store_->marks_of(4)->empty());
  EXPECT_EQ(store_->marks()->size(), 1u);

  rollback.set_ended_ns(80);
  whole.set_name("before");
  ASSERT_TRUE(store_->end_group_rollback(rollback, whole, {1}));
  ASSERT_EQ(store_->group_rollbacks("g1")->size(), 2u);
  EXPECT_EQ(store_->group_rollbacks("g1")->front().number(), 2u);
  EXPECT_EQ(store_->group_rollbacks("g1")->back().ended_ns(), 80u);
  EXPECT_EQ(store_->group_marks_of("g1")->size(), 2u);
  ASSERT_TRUE(store_->remove_group_rollback("g1", 2));
  EXPECT_EQ(store_->group_rollbacks("g1")->size(), 1u);
  ASSERT_TRUE(store_->remove_group_mark("g1", "m"));
  EXPECT_EQ(store_->group_marks_of("g1")->size(), 1u);

  ASSERT_TRUE(store_->remove_group("g1"));
  EXPECT_EQ(store_->groups()->size(), 1u);
  EXPECT_TRUE(store_->group_marks_of("g1")->empty());
  EXPECT_TRUE(store_->group_rollbacks("g1")->empty());
  EXPECT_EQ(store_->marks_of(2)->size(), 1u);
}

TEST_F(MetaStoreTest, KeepsWhatItWasGiven) {
  ASSERT_TRUE(store_->put_volume(volume(2)));
  ASSERT_TRUE(store_->put_volume(volume(10)));
  ASSERT_TRUE(store_->put_mark(mark(2, "a/b")));
  meta::View view;
  view.set_name("view");
  ASSERT_TRUE(store_->put_view(view));
  meta::Progress progress;
  progress.set_frontier(5);
  ASSERT_TRUE(store_->put_progress(2, progress, true));
  meta::ClockStep step;
  step.set_at_ns(1);
  ASSERT_TRUE(store_->add_clock_step(step));
  reopen();
  ASSERT_EQ(store_->volumes()->size(), 2u);
  EXPECT_EQ((*store_->volumes())[0].id(), 2u) << "in the order of their ids";
  EXPECT_EQ((*store_->marks())[0].name(), "a/b");
  EXPECT_EQ((*store_->views())[0].name(), "view");
  EXPECT_EQ(store_->progress(2)->frontier(), 5u);
  EXPECT_EQ(store_->progress(3)->frontier(), 0u);
  EXPECT_EQ(store_->clock_steps()->size(), 1u);
}

TEST_F(MetaStoreTest, NumbersAreNeverGivenTwice) {
  EXPECT_EQ(*store_->next_volume_id(), 1u);
  EXPECT_EQ(*store_->next_volume_id(), 2u);
  EXPECT_EQ(store_->next_epoch()->value, 1u);
  reopen();
  EXPECT_EQ(*store_->next_volume_id(), 3u);
  EXPECT_EQ(store_->next_epoch()->value, 2u);
}

TEST_F(MetaStoreTest, AVolumeGoesWithItsMarksAndProgressAndNobodyElses) {
  for (const std::uint32_t id : {1u, 2u, 16u}) {
    ASSERT_TRUE(store_->put_volume(volume(id)));
    ASSERT_TRUE(store_->put_mark(mark(id, "m")));
    meta::Progress progress;
    progress.set_frontier(id);
    ASSERT_TRUE(store_->put_progress(id, progress, false));
  }
  ASSERT_EQ(store_->marks_of(1)->size(), 1u);
  ASSERT_TRUE(store_->remove_volume(1));
  EXPECT_TRUE(store_->marks_of(1)->empty());
  ASSERT_EQ(store_->volumes()->size(), 2u);
  ASSERT_EQ(store_->marks()->size(), 2u);
  EXPECT_EQ(store_->progress(1)->frontier(), 0u);
  EXPECT_EQ(store_->progress(16)->frontier(), 16u);
}

TEST_F(MetaStoreTest, RemovingWhatIsNotThereIsNoError) {
  EXPECT_TRUE(store_->remove_view("none"));
  EXPECT_TRUE(store_->remove_mark(1, "none"));
  EXPECT_TRUE(store_->remove_volume(1));
}

TEST_F(MetaStoreTest, WhatWasTakenBackIsRememberedUntilItIsGivenUp) {
  const std::string log = "the log";
  ASSERT_TRUE(store_->add_withdrawn(log, {7, 9}));
  ASSERT_TRUE(store_->add_withdrawn(log, {8}));
  EXPECT_EQ(*store_->withdrawn(log), (std::vector<std::uint64_t>{7, 8, 9}));
  EXPECT_EQ(*store_->withdrawn("another"), std::vector<std::uint64_t>{});
  meta::LogRelease release;
  release.set_log(log);
  release.set_ordinal(9);
  ASSERT_TRUE(store_->put_releases({}, release));
  ASSERT_TRUE(store_->add_withdrawn(log, {12}));
  EXPECT_EQ(*store_->withdrawn(log), (std::vector<std::uint64_t>{9, 12}));
}

TEST_F(MetaStoreTest, APromiseIsNeverLowered) {
  ASSERT_TRUE(store_->raise_promise(3, Epoch{5}, VersionTime{100}));
  ASSERT_TRUE(store_->raise_promise(3, Epoch{4}, VersionTime{200}));
  ASSERT_TRUE(store_->raise_promise(3, Epoch{6}, VersionTime{}));
  EXPECT_EQ(store_->promise(3)->epoch(), 6u);
  EXPECT_EQ(store_->promise(3)->floor_ns(), 200u);
  EXPECT_EQ(store_->promise(4)->epoch(), 0u);
  ASSERT_TRUE(store_->remove_volume(3));
  EXPECT_EQ(store_->promise(3)->epoch(), 0u);
}

TEST_F(MetaStoreTest, ASecondOwnerIsRefused) { EXPECT_FALSE(MetaStore::open(path_)); }

TEST_F(MetaStoreTest, DamageIsAnErrorNotALoss) {
  ASSERT_TRUE(store_->put_volume(volume(1)));
  store_.reset();
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    if (entry.path().filename().string().starts_with("MANIFEST")) {
      std::ofstream(entry.path(), std::ios::trunc) << "garbage";
    }
  }
  const Result<std::unique_ptr<MetaStore>> store = MetaStore::open(path_);
  ASSERT_FALSE(store);
  EXPECT_NE(store.error().message.find(path_), std::string::npos) << store.error().message;
}

TEST_F(MetaStoreTest, KeepsAHeadwayPageByPage) {
  EXPECT_EQ(store_->headway(3)->statement.as_of, SequenceNumber{0}) << "of a new volume";
  const std::string one(volume::BlockSet::kPageBlocks / 8, '\x01');
  const std::string two(volume::BlockSet::kPageBlocks / 8, '\x02');
  ASSERT_TRUE(store_->put_headway(3, {{{20}, {UINT64_MAX}, 5}, {{0, one}, {16, one}}, false}));
  ASSERT_TRUE(store_->put_headway(0x30, {{{9}, {1}, 0}, {{7, one}}, false}));
  ASSERT_TRUE(store_->put_headway(3, {{{21}, {9000}, 6}, {{0, {}}, {17, two}}, false}));
  reopen();
  volume::Headway::Kept kept = *store_->headway(3);
  EXPECT_EQ(kept.statement.as_of, SequenceNumber{21});
  EXPECT_EQ(kept.statement.through, Lbn{9000});
  EXPECT_EQ(kept.statement.restored_bytes_all, 6u);
  ASSERT_EQ(kept.left.size(), 2u);
  EXPECT_EQ(kept.left[0].number, 16u);
  EXPECT_EQ(kept.left[1].bits, two);
  ASSERT_TRUE(store_->put_headway(3, {{}, {{4, two}}, true}));
  ASSERT_EQ(store_->headway(3)->left.size(), 1u) << "anew";
  ASSERT_TRUE(store_->remove_volume(3));
  EXPECT_TRUE(store_->headway(3)->left.empty());
  EXPECT_EQ(store_->headway(3)->statement.as_of, SequenceNumber{0});
  EXPECT_EQ(store_->headway(0x30)->left.size(), 1u) << "another volume's";
}

TEST_F(MetaStoreTest, ThatAHistoryBeganAnewIsNeverForgotten) {
  volume::VolumeRelease anew;
  anew.volume = VolumeId{3};
  anew.horizon = {.moment = {{100}, {5000}}, .last = {100}, .frontier = {100}, .given_up = {}};
  anew.based_everywhere = true;
  ASSERT_TRUE(store_->put_releases({anew}, std::nullopt));
  EXPECT_TRUE(store_->release(3)->based_everywhere);
  EXPECT_EQ(store_->release(3)->horizon.last, SequenceNumber{100});
  anew.horizon.moment = {{200}, {6000}};
  anew.based_everywhere = false;
  ASSERT_TRUE(store_->put_releases({anew}, std::nullopt));
  EXPECT_TRUE(store_->release(3)->based_everywhere) << "the log gives up more";
  EXPECT_EQ(store_->release(3)->horizon.moment.sequence, SequenceNumber{200});
}

}  // namespace
}  // namespace mariner::node

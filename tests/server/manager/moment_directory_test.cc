#include "server/manager/moment_directory.h"

#include <gtest/gtest.h>

#include <optional>

#include "server/manager/volume_record.h"
#include "tests/server/manager/memory_store.h"

namespace mariner::manager {
namespace {

using namespace std::chrono_literals;

class MomentDirectoryTest : public ::testing::Test {
 protected:
  static meta::Mark mark(std::uint32_t volume, const std::string& name) {
    meta::Mark mark;
    mark.set_volume_id(volume);
    mark.set_name(name);
    return mark;
  }
  static meta::View view(const std::string& name) {
    meta::View view;
    view.set_name(name);
    view.set_volume_id(7);
    view.set_size_bytes(kBlockBytes);
    return view;
  }
  // kUnavailable stands for what was not answered, too.
  template <typename Call>
  std::optional<ErrorCode> failure(Call call) {
    std::optional<ErrorCode> out = ErrorCode::kUnavailable;
    call([&](const Result<void>& result) {
      out = result ? std::nullopt : std::optional(result.error().code);
    });
    executor_.advance(10s);
    return out;
  }
  template <typename Moment>
  std::optional<ErrorCode> add(const Moment& moment) {
    return failure([&](auto done) { moments_.add(moment, std::move(done)); });
  }
  void put(const std::string& key, const std::string& value) {
    ASSERT_TRUE(cluster_.commit({.puts = {{key, value}}}).has_value());
    executor_.advance(100ms);
  }

  test::ManualExecutor executor_;
  MemoryCluster cluster_{executor_};
  MemoryStore store_{executor_, cluster_, {}};
  ClusterView view_{store_, executor_, std::string(kClusterPrefix), {}, [] {}};
  MomentDirectory moments_{store_, view_};
};

TEST_F(MomentDirectoryTest, MarksOfOneVolume) {
  EXPECT_EQ(add(mark(1, "b")), std::nullopt);
  EXPECT_EQ(add(mark(1, "a")), std::nullopt);
  EXPECT_EQ(add(mark(12, "c")), std::nullopt);
  EXPECT_EQ(add(mark(1, "a")), ErrorCode::kAlreadyExists);
  const std::vector<meta::Mark> marks = moments_.marks(VolumeId{1});
  ASSERT_EQ(marks.size(), 2u);
  EXPECT_EQ(marks[0].name(), "a");
  EXPECT_EQ(failure([&](auto done) { moments_.remove_mark(VolumeId{1}, "a", std::move(done)); }),
            std::nullopt);
  EXPECT_EQ(moments_.marks(VolumeId{1}).size(), 1u);
  EXPECT_EQ(failure([&](auto done) { moments_.remove_mark(VolumeId{1}, "a", std::move(done)); }),
            ErrorCode::kNotFound);
  EXPECT_EQ(moments_.marks(VolumeId{12}).size(), 1u);
}

TEST_F(MomentDirectoryTest, ViewsOfAll) {
  EXPECT_EQ(add(view("v")), std::nullopt);
  EXPECT_EQ(add(view("v")), ErrorCode::kAlreadyExists);
  EXPECT_EQ(moments_.views().size(), 1u);
  EXPECT_EQ(failure([&](auto done) { moments_.remove_view("v", std::move(done)); }), std::nullopt);
  EXPECT_TRUE(moments_.views().empty());
}

// As one that may go when the log is full, and has come again to stay.
TEST_F(MomentDirectoryTest, WhatHasComeInItsPlaceIsNotRemoved) {
  EXPECT_EQ(add(mark(1, "a")), std::nullopt);
  meta::Mark locked = mark(1, "a");
  locked.set_locked_until_ns(UINT64_MAX);
  const std::string key = mark_key(VolumeId{1}, "a");
  ASSERT_TRUE(cluster_.commit({.puts = {{key, locked.SerializeAsString()}}}).has_value());
  // (This node has not heard of it yet.)
  EXPECT_EQ(failure([&](auto done) { moments_.remove_mark(VolumeId{1}, "a", std::move(done)); }),
            ErrorCode::kBusy);
  ASSERT_EQ(moments_.marks(VolumeId{1}).size(), 1u);
  EXPECT_NE(moments_.marks(VolumeId{1})[0].locked_until_ns(), 0u);
  EXPECT_EQ(failure([&](auto done) { moments_.remove_mark(VolumeId{1}, "a", std::move(done)); }),
            std::nullopt);
}

TEST_F(MomentDirectoryTest, WhatSomebodyElseHasRemovedIsRemoved) {
  EXPECT_EQ(add(view("v")), std::nullopt);
  ASSERT_TRUE(cluster_.commit({.deletes = {view_key("v")}}).has_value());
  EXPECT_EQ(failure([&](auto done) { moments_.remove_view("v", std::move(done)); }), std::nullopt);
}

TEST_F(MomentDirectoryTest, VerdictsAreChangedOneAfterTheOther) {
  const auto add_one = [this](std::uint64_t sequence) {
    return failure([&](auto done) {
      moments_.change_verdicts(
          {7}, [sequence](meta::Verdicts& all) { all.add_verdicts()->set_sequence(sequence); },
          std::move(done));
    });
  };
  EXPECT_EQ(add_one(1), std::nullopt);
  EXPECT_EQ(add_one(2), std::nullopt);
  ASSERT_EQ(moments_.verdicts({7}).size(), 2u);
  EXPECT_EQ(moments_.verdicts({7})[1].sequence(), 2u);
  EXPECT_TRUE(moments_.verdicts({8}).empty());
  put(verdicts_key({7}), "nonsense");
  EXPECT_TRUE(moments_.verdicts({7}).empty());
  EXPECT_EQ(add_one(3), std::nullopt) << "in its place";
  EXPECT_EQ(moments_.verdicts({7}).size(), 1u);
  // Somebody else is always first.
  EXPECT_EQ(failure([&](auto done) {
              moments_.change_verdicts(
                  {7},
                  [this](meta::Verdicts&) {
                    ASSERT_TRUE(cluster_.commit({.puts = {{verdicts_key({7}), ""}}}).has_value());
                  },
                  std::move(done));
            }),
            ErrorCode::kUnavailable);
  EXPECT_EQ(failure([&](auto done) {
              moments_.change_verdicts(
                  {7},
                  [](meta::Verdicts& all) {
                    for (int i = 0; i < 1 << 18; ++i) all.add_verdicts();
                  },
                  std::move(done));
            }),
            ErrorCode::kInvalidArgument);
}

TEST_F(MomentDirectoryTest, NoMoreThanAListingHolds) {
  for (std::size_t i = 0; i < MomentDirectory::kViewsMax; ++i) {
    put(view_key("v" + std::to_string(i)), view("v" + std::to_string(i)).SerializeAsString());
  }
  EXPECT_EQ(add(view("v")), ErrorCode::kLimit);
  for (std::size_t i = 0; i < MomentDirectory::kMarksMax; ++i)
    put(mark_key({1}, "m" + std::to_string(i)), "");
  EXPECT_EQ(add(mark(2, "m")), ErrorCode::kLimit);
}

TEST_F(MomentDirectoryTest, WhatCannotBeReadMayBeAMark) {
  EXPECT_TRUE(moments_.readable(VolumeId{1}));
  put(mark_key(VolumeId{1}, "m"), "\xff\xff");
  EXPECT_TRUE(moments_.marks(VolumeId{1}).empty());
  EXPECT_FALSE(moments_.readable(VolumeId{1}));
  EXPECT_TRUE(moments_.readable(VolumeId{2}));
  put(mark_key(VolumeId{2}, "m"), mark(3, "m").SerializeAsString());
  EXPECT_FALSE(moments_.readable(VolumeId{2})) << "of another volume";
  put(view_key("v"), view("w").SerializeAsString());
  EXPECT_TRUE(moments_.views().empty());
  EXPECT_FALSE(moments_.readable(VolumeId{3}));
}

TEST_F(MomentDirectoryTest, AnAnswerThatIsLostIsNoPromise) {
  executor_.advance(100ms);
  auto faults = store_.faults();
  faults.lose_answers = 1;
  store_.set_faults(faults);
  EXPECT_EQ(add(mark(1, "a")), ErrorCode::kUnavailable);
  EXPECT_EQ(moments_.marks(VolumeId{1}).size(), 1u) << "it is there all the same";
}

}  // namespace
}  // namespace mariner::manager

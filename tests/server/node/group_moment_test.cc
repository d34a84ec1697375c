#include "server/node/group_moment.h"

#include "tests/server/node/group_fixture.h"

namespace mariner::node {
namespace {

// A group whose volumes were written in turn.
class GroupMomentTest : public testing::GroupFixture {
 protected:
  GroupMomentTest() {
    EXPECT_TRUE(groups_->create("g1", {"data", "log"}, false));
    for (const char byte : {'a', 'b', 'c'}) {
      write("data", byte);
      times_.push_back(written("data"));
      write("log", byte);
      times_.push_back(written("log"));
    }
  }
  static std::vector<std::uint64_t> numbers(const Result<GroupMoment>& moment) {
    std::vector<std::uint64_t> out;
    for (const ResolvedMoment& member : moment->members) out.push_back(member.at.sequence.value);
    return out;
  }
  using Numbers = std::vector<std::uint64_t>;

  std::vector<VersionTime> times_;  // data, log, data, ...
};

TEST_F(GroupMomentTest, IsTheLastWriteOfEachAtOrBeforeOneTime) {
  EXPECT_EQ(numbers(now("g1")), (Numbers{3, 3}));
  EXPECT_EQ(numbers(resolve_at("g1", times_[3])), (Numbers{2, 2}));
  EXPECT_EQ(numbers(resolve_at("g1", times_[2])), (Numbers{2, 1}));
  EXPECT_EQ(numbers(resolve_at("g1", VersionTime{times_[1].ns - 1})), (Numbers{1, 0}));
}

TEST_F(GroupMomentTest, ThatWasOpenedDoesNotChange) {
  const Result<GroupMoment> opened = now("g1");
  ASSERT_TRUE(opened);
  write("log", 'd');
  write("data", 'd');
  EXPECT_GT(written("log"), opened->time);
  EXPECT_EQ(numbers(resolve_at("g1", opened->time)), (Numbers{3, 3}));
  EXPECT_EQ(numbers(now("g1")), (Numbers{4, 4}));
}

TEST_F(GroupMomentTest, ThereIsNoneOutsideOfTheGroupsTime) {
  const VersionTime future{parts_.executor().wall_time().ns + 60'000'000'000};
  EXPECT_EQ(resolve_at("g1", future).error().code, ErrorCode::kOutsideWindow);
  ASSERT_TRUE(groups_->add("g1", {"other"}, false));
  const Result<GroupMoment> before = resolve_at("g1", times_[3]);
  EXPECT_EQ(before.error().code, ErrorCode::kOutsideWindow);
  EXPECT_NE(before.error().message.find("before other joined the group g1"), std::string::npos);
  EXPECT_EQ(numbers(now("g1")), (Numbers{3, 3, 0}));
  api::MomentSpec number;
  number.set_sequence(1);
  EXPECT_EQ(resolve("g1", number).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(resolve("g1", {}).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(GroupMomentTest, AMemberWhoseHistoryBeginsLaterIsNamed) {
  index::StoredIndex& index = volume("log").volume->index();
  index.set_horizon(index.newest());
  const Result<GroupMoment> before = resolve_at("g1", times_[2]);
  EXPECT_EQ(before.error().code, ErrorCode::kOutsideWindow);
  EXPECT_NE(before.error().message.find("outside the history of log"), std::string::npos);
  EXPECT_TRUE(now("g1"));
}

TEST_F(GroupMomentTest, AMarkIsWhereItWasPut) {
  const Result<GroupMoments> of = moments_of(*groups_, "g1", parts_.store());
  ASSERT_TRUE(of);
  const Result<GroupMoment> moment = resolve_at("g1", times_[2]);
  const std::vector<meta::GroupPart> parts = parts_of(*of, *moment);
  meta::GroupMark mark;
  mark.set_group("g1");
  mark.set_name("m");
  mark.set_time_ns(moment->time.ns);
  mark.mutable_parts()->Add(parts.begin(), parts.end());
  ASSERT_TRUE(check_mark(*of, "m"));
  ASSERT_TRUE(parts_.store().put_group_mark(mark));
  const Result<GroupMoments> marked = moments_of(*groups_, "g1", parts_.store());
  EXPECT_EQ(check_mark(*marked, "m").error().code, ErrorCode::kAlreadyExists);
  EXPECT_EQ(check_mark(*marked, "M!").error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(find_mark(marked->marks, "g1", "m"));
  EXPECT_EQ(find_mark(marked->marks, "g1", "n").error().code, ErrorCode::kNotFound);
  write("data", 'd');
  api::MomentSpec spec;
  spec.set_mark("m");
  const Result<GroupMoment> found = resolve("g1", spec);
  EXPECT_EQ(numbers(found), (Numbers{2, 1}));
  EXPECT_EQ(found->mark, "m");
  EXPECT_EQ(to_api(*found).time_ns(), mark.time_ns());
  spec.set_mark("n");
  EXPECT_EQ(resolve("g1", spec).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(groups_->add("g1", {"other"}, false));
  spec.set_mark("m");
  EXPECT_EQ(resolve("g1", spec).error().code, ErrorCode::kOutsideWindow);
}

TEST_F(GroupMomentTest, BetweenTheRecordsOfARollbackIsTheMomentBefore) {
  const Result<meta::GroupRollback> record = roll_back("g1", {1, 1});
  ASSERT_TRUE(record) << to_string(record.error());
  ASSERT_LT(written("data"), written("log")) << "there is a time between them";
  EXPECT_EQ(numbers(resolve_at("g1", written("data"))), (Numbers{3, 3}));
  EXPECT_EQ(numbers(resolve_at("g1", VersionTime{record->begun_ns()})), (Numbers{3, 3}));
  EXPECT_EQ(numbers(resolve_at("g1", VersionTime{record->ended_ns()})), (Numbers{4, 4}));
  restart();
  EXPECT_EQ(numbers(resolve_at("g1", written("data"))), (Numbers{3, 3}));
}

TEST_F(GroupMomentTest, UndoingReturnsToTheMomentBeforeTheNewestRollback) {
  const auto undo = [&] {
    const Result<GroupMoments> of = moments_of(*groups_, "g1", parts_.store());
    return answer<GroupMoment>(
        [&](auto done) { resolve_undo(*of, parts_.executor(), std::move(done)); });
  };
  EXPECT_EQ(undo().error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(roll_back("g1", {1, 1}));
  write("data", 'x');
  EXPECT_EQ(numbers(undo()), (Numbers{3, 3}));
  ASSERT_TRUE(groups_->add("g1", {"other"}, false));
  EXPECT_EQ(undo().error().code, ErrorCode::kOutsideWindow) << "one was not there";
}

}  // namespace
}  // namespace mariner::node

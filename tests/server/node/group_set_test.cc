#include "server/node/group_set.h"

#include "tests/server/node/group_fixture.h"

namespace mariner::node {
namespace {

class GroupSetTest : public testing::GroupFixture {
 protected:
  static ErrorCode code(const Result<meta::Group>& refused) { return refused.error().code; }
};

TEST_F(GroupSetTest, AGroupIsThereAfterARestart) {
  const Result<meta::Group> made = groups_->create("g1", {"data", "log"}, false);
  ASSERT_TRUE(made);
  EXPECT_GT(made->members(0).joined_ns(), 0u);
  EXPECT_EQ(made->members(0).joined_ns(), made->members(1).joined_ns());
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(groups_->all().size(), 1u);
    EXPECT_EQ(groups_->group_of(id("log")), &groups_->all().at("g1"));
    EXPECT_EQ(groups_->group_of(id("other")), nullptr);
    EXPECT_EQ((*groups_->find("g1"))->meta.members_size(), 2);
    restart();
  }
}

TEST_F(GroupSetTest, WhatIsNoGroup) {
  EXPECT_EQ(code(groups_->create("G!", {"data"}, false)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(groups_->create("g1", {}, false)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(groups_->create("g1", {"data", "data"}, false)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(groups_->create("g1", {"data", "none"}, false)), ErrorCode::kNotFound);
  ASSERT_TRUE(groups_->create("g1", {"data"}, true));
  EXPECT_TRUE(groups_->all().empty()) << "a dry run";
  ASSERT_TRUE(groups_->create("g1", {"data"}, false));
  EXPECT_EQ(code(groups_->create("g1", {"log"}, false)), ErrorCode::kAlreadyExists);
  EXPECT_EQ(code(groups_->create("g2", {"data"}, false)), ErrorCode::kAlreadyExists)
      << "a volume is in one group";
  EXPECT_EQ(code(groups_->add("g2", {"log"}, false)), ErrorCode::kNotFound);
  const GroupSet::Names many(static_cast<std::size_t>(GroupSet::kMembersMax), "log");
  EXPECT_EQ(code(groups_->add("g1", many, false)), ErrorCode::kLimit);
}

TEST_F(GroupSetTest, MembersComeAndGo) {
  ASSERT_TRUE(groups_->create("g1", {"data"}, false));
  ASSERT_TRUE(groups_->add("g1", {"log"}, true));
  EXPECT_EQ((*groups_->find("g1"))->meta.members_size(), 1);
  const Result<meta::Group> grown = groups_->add("g1", {"log", "other"}, false);
  ASSERT_TRUE(grown);
  EXPECT_GT(grown->members(1).joined_ns(), grown->members(0).joined_ns());
  EXPECT_EQ(groups_->remove("g1", "none", false).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(groups_->remove("g1", "data", false));
  EXPECT_EQ(groups_->group_of(id("data")), nullptr);
  ASSERT_TRUE(groups_->remove("g1", "log", false));
  EXPECT_EQ(groups_->remove("g1", "other", false).error().code, ErrorCode::kInvalidArgument)
      << "the last one";
  ASSERT_TRUE(groups_->erase("g1", false));
  EXPECT_TRUE(groups_->all().empty());
  EXPECT_NE(parts_.volumes().find("other"), nullptr) << "no volume is deleted";
  restart();
  EXPECT_TRUE(groups_->all().empty());
}

TEST_F(GroupSetTest, ALockedMarkHoldsItsMembers) {
  ASSERT_TRUE(groups_->create("g1", {"data", "log"}, false));
  meta::GroupMark mark;
  mark.set_group("g1");
  mark.set_name("m");
  for (const char* name : {"data", "log"}) mark.add_parts()->set_volume_id(id(name));
  mark.set_locked_until_ns(UINT64_MAX);
  ASSERT_TRUE(parts_.store().put_group_mark(mark));
  EXPECT_EQ(groups_->remove("g1", "log", false).error().code, ErrorCode::kBusy);
  EXPECT_EQ(groups_->erase("g1", false).error().code, ErrorCode::kBusy);
  mark.set_locked_until_ns(0);
  ASSERT_TRUE(parts_.store().put_group_mark(mark));
  ASSERT_TRUE(groups_->remove("g1", "log", false));
  EXPECT_TRUE(parts_.store().marks_of(id("log"))->empty()) << "it has no part in it any more";
  EXPECT_EQ(parts_.store().marks_of(id("data"))->size(), 1u);
  ASSERT_TRUE(groups_->erase("g1", false));
  EXPECT_TRUE(parts_.store().marks_of(id("data"))->empty());
}

// Whatever is written later has the later time, to whichever member.
TEST_F(GroupSetTest, MembersStampByOneClock) {
  // Ahead of the clock, as after it was stepped back.
  const VersionTime ahead{parts_.executor().wall_time().ns + 3'600'000'000'000};
  volume("data").volume->replicator().settle_moment(ahead, [](const Result<SequenceNumber>&) {});
  write("data", 'a');
  write("log", 'a');
  EXPECT_GT(written("data"), written("log")) << "each has its own";
  ASSERT_TRUE(groups_->create("g1", {"data", "log"}, false));
  for (int i = 0; i < 2; ++i) {
    write("data", 'b');
    write("log", 'b');
    EXPECT_GT(written("log"), written("data"));
    write("data", 'c');
    EXPECT_GT(written("data"), written("log"));
    restart();
  }
  write("other", 'a');
  EXPECT_LT(written("other"), ahead) << "who is not in it has nothing to do with it";
  ASSERT_TRUE(groups_->remove("g1", "log", false));
  const VersionTime left = written("log");
  write("log", 'd');
  EXPECT_GT(written("log"), left);
}

TEST_F(GroupSetTest, AMemberThatIsGoneIsNamed) {
  ASSERT_TRUE(groups_->create("g1", {"data", "log"}, false));
  ASSERT_TRUE(parts_.remove("log"));
  for (int i = 0; i < 2; ++i) {
    const auto members = groups_->members(groups_->all().at("g1"));
    ASSERT_FALSE(members);
    EXPECT_EQ(members.error().code, ErrorCode::kOutsideWindow);
    EXPECT_NE(members.error().message.find("the volume log of the group g1 is gone"),
              std::string::npos);
    restart();
  }
  ASSERT_TRUE(groups_->remove("g1", "log", false));
  EXPECT_EQ(groups_->members(groups_->all().at("g1"))->size(), 1u);
}

TEST_F(GroupSetTest, ARollbackOfWhatItHasNotIsRefused) {
  ASSERT_TRUE(groups_->create("g1", {"data", "log"}, false));
  std::vector<meta::GroupPart> parts = targets("g1", {0, 0});
  std::swap(parts[0], parts[1]);
  EXPECT_EQ(answer<meta::GroupRollback>(
                [&](auto done) { groups_->roll_back("g1", parts, std::move(done)); })
                .error()
                .code,
            ErrorCode::kAborted);
  EXPECT_EQ(answer<meta::GroupRollback>(
                [&](auto done) { groups_->roll_back("g2", parts, std::move(done)); })
                .error()
                .code,
            ErrorCode::kNotFound);
}

TEST_F(GroupSetTest, NothingChangesWhileItIsRolledBack) {
  ASSERT_TRUE(groups_->create("g1", {"data", "log"}, false));
  write("data", 'a');
  bool ended = false;
  groups_->roll_back("g1", targets("g1", {0, 0}), [&](const Result<meta::GroupRollback>& record) {
    ended = record.has_value();
  });
  EXPECT_EQ(groups_->add("g1", {"other"}, false).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(groups_->remove("g1", "log", false).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(groups_->erase("g1", false).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(moments_of(*groups_, "g1", parts_.store()).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(roll_back("g1", {0, 0}).error().code, ErrorCode::kUnavailable);
  parts_.run_until([&] { return ended; });
  EXPECT_TRUE(groups_->add("g1", {"other"}, false));
  ASSERT_EQ((*groups_->find("g1"))->rollbacks.size(), 1u);
}

}  // namespace
}  // namespace mariner::node

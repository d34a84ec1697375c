// Groups as an administrator asks for them: server/node/group_desk.cc.
#include "server/node/group_desk.h"

#include <gtest/gtest.h>

#include "tests/server/node/node_fixture.h"

namespace mariner::node {
namespace {

// A group of two volumes, of which each was 'a', then 'b'.
class GroupDeskTest : public testing::NodeFixture {
 protected:
  GroupDeskTest() {
    data_ = create("data").iqn();
    log_iqn_ = create("log").iqn();
    api::GroupRequest request;
    request.set_name("g1");
    request.add_volumes("data");
    request.add_volumes("log");
    EXPECT_TRUE(ask(&GroupDesk::create, request));
    write_both('a');
    EXPECT_TRUE(add_mark("a"));
    write_both('b');
  }
  template <typename T, typename Request>
  Result<T> ask(void (GroupDesk::*call)(const Request&, admin::Answer<T>),
                const std::type_identity_t<Request>& request) {
    return answer<T>([this, call, request](auto done) {
      (node_control().groups().*call)(request, std::move(done));
    });
  }
  using NodeFixture::ask;

  void write_both(char byte) {
    EXPECT_EQ(write(data_, 0, byte), scsi::Status::kGood);
    EXPECT_EQ(write(log_iqn_, 0, byte), scsi::Status::kGood);
  }
  std::string both() { return {read(data_, 0), read(log_iqn_, 0)}; }
  static api::GroupRequest named(const std::string& name) {
    api::GroupRequest request;
    request.set_name(name);
    return request;
  }
  Result<api::GroupMark> add_mark(const std::string& name, std::uint64_t lock_s = 0) {
    api::GroupMarkRequest request;
    request.set_group("g1");
    request.set_name(name);
    request.set_lock_s(lock_s);
    return ask(&GroupDesk::mark_add, request);
  }
  static api::GroupRollbackRequest back_to(const std::string& mark) {
    api::GroupRollbackRequest request;
    request.set_group("g1");
    *request.mutable_at() = at_mark(mark);
    return request;
  }
  static api::GroupExposeRequest expose_at(const std::string& mark) {
    api::GroupExposeRequest request;
    request.set_group("g1");
    *request.mutable_at() = at_mark(mark);
    return request;
  }
  static api::UnexposeRequest view_named(const std::string& name) {
    api::UnexposeRequest request;
    request.set_name(name);
    return request;
  }
  int views() { return NodeFixture::ask(&NodeControl::view_list)->views_size(); }

  std::string data_;
  std::string log_iqn_;
};

TEST_F(GroupDeskTest, ShowsAGroup) {
  const Result<api::Group> group = ask(&GroupDesk::show, named("g1"));
  ASSERT_TRUE(group);
  ASSERT_EQ(group->members_size(), 2);
  EXPECT_EQ(group->members(1).volume(), "log");
  EXPECT_EQ(group->oldest_ns(), group->members(0).joined_ns());
  EXPECT_EQ(group->marks(), 1u);
  EXPECT_EQ(group->views(), 0u);
  const auto list =
      answer<api::GroupList>([this](auto done) { node_control().groups().list(std::move(done)); });
  EXPECT_EQ(list->groups_size(), 1);
  EXPECT_EQ(ask(&GroupDesk::show, named("g2")).error().code, ErrorCode::kNotFound);
}

TEST_F(GroupDeskTest, AMarkIsOneOfAllOfThem) {
  ASSERT_TRUE(add_mark("locked", 60));
  EXPECT_EQ(add_mark("locked").error().code, ErrorCode::kAlreadyExists);
  api::GroupMarkRequest request;
  request.set_group("g1");
  const Result<api::GroupMarkList> marks = ask(&GroupDesk::mark_list, request);
  ASSERT_EQ(marks->marks_size(), 2);
  EXPECT_EQ(marks->marks(0).name(), "a");
  EXPECT_EQ(marks->marks(0).parts(1).volume(), "log");
  EXPECT_EQ(marks->marks(0).parts(1).at().sequence(), 1u);
  EXPECT_GT(marks->marks(1).locked_until_ns(), marks->marks(1).created_ns());

  api::MarkRequest of_volume;
  of_volume.set_volume("data");
  const Result<api::MarkList> parts = ask(&NodeControl::mark_list, of_volume);
  ASSERT_EQ(parts->marks_size(), 2);
  EXPECT_EQ(parts->marks(0).name(), "g1/a");
  of_volume.set_name("g1/a");
  EXPECT_EQ(ask(&NodeControl::mark_remove, of_volume).error().code, ErrorCode::kInvalidArgument)
      << "it goes with the whole";
  api::RollbackRequest alone;
  alone.set_volume("data");
  *alone.mutable_at() = at_mark("g1/a");
  alone.set_dry_run(true);
  EXPECT_EQ(ask(&NodeControl::rollback, alone)->target().sequence(), 1u);

  api::VolumeRequest deletion;
  deletion.set_name("data");
  EXPECT_EQ(ask(&NodeControl::volume_delete, deletion).error().code, ErrorCode::kBusy);
  EXPECT_EQ(ask(&GroupDesk::erase, named("g1")).error().code, ErrorCode::kBusy) << "it is locked";
  request.set_name("locked");
  request.set_dry_run(true);
  ASSERT_TRUE(ask(&GroupDesk::mark_remove, request));
  request.set_dry_run(false);
  ASSERT_TRUE(ask(&GroupDesk::mark_remove, request));
  EXPECT_EQ(ask(&GroupDesk::mark_remove, request).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(ask(&GroupDesk::erase, named("g1")));
  ASSERT_TRUE(ask(&NodeControl::volume_delete, deletion));
}

TEST_F(GroupDeskTest, MembersAreChanged) {
  create("tmp");
  api::GroupRequest request = named("g1");
  request.add_volumes("tmp");
  request.set_dry_run(true);
  EXPECT_EQ(ask(&GroupDesk::add, request)->members_size(), 3);
  request.set_dry_run(false);
  EXPECT_EQ(ask(&GroupDesk::add, request)->members_size(), 3);
  EXPECT_EQ(ask(&GroupDesk::rollback, back_to("a")).error().code, ErrorCode::kOutsideWindow);
  EXPECT_EQ(ask(&GroupDesk::remove, named("g1")).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(ask(&GroupDesk::remove, request)->members_size(), 2);
  EXPECT_TRUE(ask(&GroupDesk::rollback, back_to("a"))) << "of those that were there";
}

TEST_F(GroupDeskTest, ARollbackAndItsUndoing) {
  api::GroupRollbackRequest request = back_to("a");
  request.set_dry_run(true);
  const Result<api::GroupRollbackAnswer> plan = ask(&GroupDesk::rollback, request);
  ASSERT_TRUE(plan) << to_string(plan.error());
  EXPECT_TRUE(plan->dry_run());
  ASSERT_EQ(plan->members_size(), 2);
  EXPECT_EQ(plan->members(1).volume(), "log");
  EXPECT_EQ(plan->members(1).changed_bytes(), kBlockBytes);
  EXPECT_EQ(plan->members(1).target().sequence(), 1u);
  EXPECT_EQ(both(), "bb");
  request = back_to("a");
  request.mutable_at()->set_time_ns(plan->target().time_ns());
  const Result<api::GroupRollbackAnswer> back = ask(&GroupDesk::rollback, request);
  ASSERT_TRUE(back) << to_string(back.error());
  EXPECT_EQ(both(), "aa");
  EXPECT_EQ(back->members(0).sequence(), 3u);
  EXPECT_TRUE(back->before_mark().starts_with("before-rollback-"));
  stop();
  start();
  EXPECT_EQ(both(), "aa");
  request = {};
  request.set_group("g1");
  request.set_undo(true);
  ASSERT_TRUE(ask(&GroupDesk::rollback, request));
  EXPECT_EQ(both(), "bb");
  ASSERT_TRUE(ask(&GroupDesk::rollback, request)) << "undoing an undo is doing it again";
  EXPECT_EQ(both(), "aa");
  ASSERT_TRUE(ask(&GroupDesk::rollback, back_to(back->before_mark())));
  EXPECT_EQ(both(), "bb");
}

TEST_F(GroupDeskTest, AGroupInUseIsRolledBackByForceOnly) {
  const auto session = log_in(log_iqn_);
  session->use();
  api::GroupRollbackRequest request = back_to("a");
  const Error refused = ask(&GroupDesk::rollback, request).error();
  EXPECT_EQ(refused.code, ErrorCode::kBusy);
  EXPECT_NE(refused.message.find("log is in use"), std::string::npos);
  EXPECT_EQ(both(), "bb");
  request.set_dry_run(true);
  EXPECT_EQ(ask(&GroupDesk::rollback, request)->members(1).sessions_size(), 1);
  request.set_dry_run(false);
  request.set_force(true);
  ASSERT_TRUE(ask(&GroupDesk::rollback, request));
  EXPECT_EQ(both(), "aa");
}

TEST_F(GroupDeskTest, AViewOfAllOfThem) {
  api::GroupExposeRequest request = expose_at("a");
  request.set_writable(true);
  request.set_dry_run(true);
  const Result<api::GroupView> planned = ask(&GroupDesk::expose, request);
  ASSERT_TRUE(planned) << to_string(planned.error());
  EXPECT_EQ(planned->name(), "g1-1");
  EXPECT_EQ(planned->views(1).volume(), "log");
  EXPECT_EQ(views(), 0);
  request.set_dry_run(false);
  const Result<api::GroupView> view = ask(&GroupDesk::expose, request);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->name(), "g1-1");
  ASSERT_EQ(view->views_size(), 2);
  EXPECT_EQ(view->views(0).name(), "g1-1-data");
  EXPECT_EQ(view->views(0).group_view(), "g1-1");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(views(), 2);
    EXPECT_EQ(read(view->views(0).iqn(), 0), 'a');
    EXPECT_EQ(read(view->views(1).iqn(), 0), 'a');
    EXPECT_EQ(write(view->views(1).iqn(), 1, 'x'), scsi::Status::kGood);
    stop();
    start();
  }
  EXPECT_EQ(ask(&GroupDesk::show, named("g1"))->views(), 1u);
  EXPECT_EQ(ask(&GroupDesk::erase, named("g1")).error().code, ErrorCode::kBusy);
  EXPECT_EQ(ask(&NodeControl::view_unexpose, view_named("g1-1-log")).error().code,
            ErrorCode::kInvalidArgument)
      << "never one alone";
  {
    const auto session = log_in(view->views(1).iqn());
    EXPECT_EQ(ask(&NodeControl::view_unexpose, view_named("g1-1")).error().code, ErrorCode::kBusy);
    api::UnexposeRequest force = view_named("g1-1");
    force.set_force(true);
    const Result<api::View> gone = ask(&NodeControl::view_unexpose, force);
    ASSERT_TRUE(gone);
    EXPECT_EQ(gone->name(), "g1-1");
    EXPECT_EQ(gone->group(), "g1");
    EXPECT_EQ(gone->sessions(), 1u);
  }
  EXPECT_EQ(views(), 0);
}

TEST_F(GroupDeskTest, ATimeToLiveEndsForAllOfThem) {
  api::GroupExposeRequest request = expose_at("a");
  request.set_ttl_s(1);
  ASSERT_TRUE(ask(&GroupDesk::expose, request));
  request.set_ttl_s(0);
  request.set_name("stays");
  ASSERT_TRUE(ask(&GroupDesk::expose, request));
  EXPECT_EQ(ask(&GroupDesk::expose, request).error().code, ErrorCode::kAlreadyExists);
  EXPECT_TRUE(eventually([&] { return views() == 2; }));
  EXPECT_EQ(NodeFixture::ask(&NodeControl::view_list)->views(0).group_view(), "stays");
}

TEST_F(GroupDeskTest, WhatMakesNoSense) {
  api::GroupExposeRequest request = expose_at("a");
  request.set_overlay_bytes_max(1u << 20);
  EXPECT_EQ(ask(&GroupDesk::expose, request).error().code, ErrorCode::kInvalidArgument)
      << "it is read-only";
  EXPECT_EQ(ask(&GroupDesk::expose, expose_at("none")).error().code, ErrorCode::kNotFound);
  request = expose_at("a");
  *request.mutable_at() = at_sequence(1);
  EXPECT_EQ(ask(&GroupDesk::expose, request).error().code, ErrorCode::kInvalidArgument);
  api::GroupRollbackRequest undo;
  undo.set_group("g1");
  undo.set_undo(true);
  EXPECT_EQ(ask(&GroupDesk::rollback, undo).error().code, ErrorCode::kNotFound);
  undo.set_group("g2");
  EXPECT_EQ(ask(&GroupDesk::rollback, undo).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(both(), "bb");
}

}  // namespace
}  // namespace mariner::node

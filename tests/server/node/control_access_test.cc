// Who may use a volume: server/node/control_access.cc.
#include <gtest/gtest.h>

#include "tests/server/node/node_fixture.h"

namespace mariner::node {
namespace {

constexpr const char* kHost = testing::InitiatorSession::kName;
constexpr const char* kOther = "iqn.2026-11.org.example:other";

class ControlAccess : public testing::NodeFixture {
 protected:
  Result<api::Access> acl(bool add, const std::string& initiator, bool force = false,
                          bool dry_run = false) {
    api::AclRequest request;
    request.set_volume("db1");
    request.set_initiator(initiator);
    request.set_force(force);
    request.set_dry_run(dry_run);
    return ask(add ? &NodeControl::acl_add : &NodeControl::acl_remove, request);
  }
  Result<api::Access> redirect(const std::string& address, bool permanent = false) {
    api::RedirectRequest request;
    request.set_volume("db1");
    request.set_address(address);
    request.set_permanent(permanent);
    return ask(&NodeControl::redirect_set, request);
  }
  api::Access show() {
    api::AccessRequest request;
    request.set_volume("db1");
    return *ask(&NodeControl::access_show, request);
  }
};

TEST_F(ControlAccess, AListIsMadeByCommand) {
  const std::string iqn = create("db1").iqn();
  EXPECT_TRUE(show().any_initiator());
  const Result<api::Access> added = acl(true, "IQN.2026-11.org.example:Other");
  ASSERT_FALSE(added) << "no name of an initiator begins so";
  ASSERT_TRUE(acl(true, "iqn.2026-11.org.example:Other"));
  EXPECT_FALSE(show().any_initiator());
  EXPECT_EQ(show().acl(0), kOther);
  ASSERT_TRUE(acl(true, kOther)) << "twice is once";
  EXPECT_EQ(show().acl_size(), 1);
  EXPECT_EQ(acl(false, kHost).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(acl(false, kOther));
  EXPECT_FALSE(show().any_initiator()) << "without the last one nobody may";
  EXPECT_EQ(show().acl_size(), 0);
  EXPECT_EQ(on_loop([&] { return node().open(iqn, kOther).error().code; }),
            ErrorCode::kInvalidArgument);
  ASSERT_TRUE(acl(true, "any"));
  EXPECT_TRUE(show().any_initiator());
  EXPECT_EQ(acl(false, kOther).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(acl(false, "any"));
  EXPECT_FALSE(show().any_initiator());
}

TEST_F(ControlAccess, SessionsThatWouldLoseTheirsNeedForce) {
  const std::string iqn = create("db1").iqn();
  ASSERT_TRUE(acl(true, kHost));
  const auto session = log_in(iqn);
  EXPECT_EQ(acl(false, kHost).error().code, ErrorCode::kBusy);
  EXPECT_EQ(acl(false, kHost, false, true).error().code, ErrorCode::kBusy);
  const Result<api::Access> planned = acl(false, kHost, true, true);
  ASSERT_TRUE(planned);
  EXPECT_EQ(planned->sessions_size(), 1);
  EXPECT_EQ(show().acl_size(), 1) << "a dry run";
  EXPECT_TRUE(acl(true, kOther)) << "takes nobody's access";
  const Result<api::Access> removed = acl(false, kHost, true);
  ASSERT_TRUE(removed);
  EXPECT_EQ(removed->sessions(0).initiator(), kHost);
}

TEST_F(ControlAccess, AccountsAreThoseOfTheConfiguration) {
  create("db1");
  api::AuthRequest request;
  request.set_volume("db1");
  request.add_accounts("none");
  EXPECT_EQ(ask(&NodeControl::auth_set, request).error().code, ErrorCode::kNotFound);
  request.clear_accounts();
  EXPECT_EQ(ask(&NodeControl::auth_set, request)->accounts_size(), 0);
}

TEST_F(ControlAccess, ARedirection) {
  create("db1");
  EXPECT_EQ(redirect("nowhere").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(redirect("", true).error().code, ErrorCode::kInvalidArgument);
  ASSERT_TRUE(redirect("[2001:DB8::1]:3260,1", true));
  EXPECT_EQ(show().redirect(), "[2001:db8::1]:3260");
  EXPECT_TRUE(show().redirect_permanent());
  ASSERT_TRUE(redirect(""));
  EXPECT_EQ(show().redirect(), "");
}

TEST_F(ControlAccess, OfADeclaredVolumeNothingIsChanged) {
  VolumeConfig declared;
  declared.name = "db1";
  declared.size = kVolumeSizeMin;
  config().volumes = {declared};
  stop();
  start();
  EXPECT_FALSE(show().declared_in().empty());
  EXPECT_EQ(acl(true, kHost).error().code, ErrorCode::kReadOnly);
  EXPECT_EQ(acl(false, "any").error().code, ErrorCode::kReadOnly);
  EXPECT_EQ(redirect("192.0.2.1:3260").error().code, ErrorCode::kReadOnly);
  api::AuthRequest auth;
  auth.set_volume("db1");
  EXPECT_EQ(ask(&NodeControl::auth_set, auth).error().code, ErrorCode::kReadOnly);
}

}  // namespace
}  // namespace mariner::node

#include "server/node/access.h"

#include <gtest/gtest.h>

#include "tests/server/node/node_parts.h"

namespace mariner::node {
namespace {

constexpr std::string_view kFriend = "iqn.2026-11.org.example:friend";
constexpr std::string_view kStranger = "iqn.2026-11.org.example:stranger";

TEST(Admits, AnEmptyListLetsEverybodyInUnlessItIsClosed) {
  meta::Volume volume;
  EXPECT_TRUE(admits(volume, kFriend));
  volume.set_acl_closed(true);
  EXPECT_FALSE(admits(volume, kFriend));
  volume.add_acl("iqn.2026-11.org.example:FRIEND");
  EXPECT_TRUE(admits(volume, kFriend)) << "names have no case";
  EXPECT_FALSE(admits(volume, kStranger));
  volume.set_acl_closed(false);
  EXPECT_FALSE(admits(volume, kStranger));
}

class AccessTest : public ::testing::Test {
 protected:
  AccessTest() {
    for (const char* name : {"host1", "host2"}) {
      iscsi::ChapAccount account;
      account.user = "same user";
      account.name = name;
      accounts_[name] = account;
    }
  }
  static std::string iqn(const std::string& name) { return "iqn.2026-11.org.example:" + name; }
  void set_auth(ServedVolume& volume, std::vector<std::string> accounts) {
    meta::Volume changed = volume.meta;
    changed.mutable_auth()->Assign(accounts.begin(), accounts.end());
    ASSERT_TRUE(access_.change(volume, changed));
  }

  testing::NodeParts parts_;
  Config config_;
  const std::string config_path_ = "/etc/mariner/marinerd.toml";
  Accounts accounts_;
  Access access_{
      {config_, config_path_, accounts_, parts_.volumes(), parts_.views(), parts_.store()}};
};

TEST_F(AccessTest, DiscoveryShowsWhatItsAccountOpens) {
  parts_.create("open");
  set_auth(parts_.create("one"), {"host1"});
  set_auth(parts_.create("two"), {"host2"});
  set_auth(parts_.create("both"), {"host1", "host2"});
  using Names = std::vector<std::string>;
  EXPECT_EQ(access_.discoverable(kFriend, "host1"), (Names{iqn("both"), iqn("one"), iqn("open")}));
  EXPECT_EQ(access_.discoverable(kFriend, "host2"), (Names{iqn("both"), iqn("open"), iqn("two")}));
  EXPECT_EQ(access_.discoverable(kFriend, "").size(), 4u) << "nobody had to log in";
}

TEST_F(AccessTest, AChangeIsDurableAndDecides) {
  ServedVolume& volume = parts_.create("db1");
  meta::Volume changed = volume.meta;
  changed.add_acl(std::string(kFriend));
  changed.set_acl_closed(true);
  changed.set_redirect("192.0.2.1:3260");
  ASSERT_TRUE(access_.change(volume, changed));
  EXPECT_TRUE(access_.open(iqn("db1"), kFriend));
  EXPECT_EQ(access_.open(iqn("db1"), kStranger).error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(access_.forbids(iqn("db1"), kStranger));
  EXPECT_FALSE(access_.forbids(iqn("db1"), kFriend));
  EXPECT_FALSE(access_.forbids(iqn("none"), kStranger));
  EXPECT_EQ(access_.redirection(iqn("db1"))->address, "192.0.2.1:3260");
  EXPECT_FALSE(access_.redirection(iqn("none")));
  parts_.stop();
  parts_.start();
  EXPECT_FALSE(admits(parts_.volumes().find("db1")->meta, kStranger));
  EXPECT_EQ(parts_.volumes().find("db1")->meta.redirect(), "192.0.2.1:3260");
}

TEST_F(AccessTest, WhatTheConfigurationDeclaresIsChangedThere) {
  ServedVolume& volume = parts_.create("db1");
  EXPECT_TRUE(access_.check_changeable(volume, "acl"));
  VolumeConfig declared;
  declared.name = "db1";
  declared.acl = {std::string(kFriend)};
  declared.redirect = "192.0.2.1:3260";
  config_.volumes = {declared};
  ASSERT_TRUE(access_.declare(volume, declared));
  EXPECT_FALSE(admits(volume.meta, kStranger));
  EXPECT_EQ(access_.declared_in(volume), config_path_);
  const Result<void> refused = access_.check_changeable(volume, "acl");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kReadOnly);
  EXPECT_NE(refused.error().message.find(config_path_), std::string::npos);
}

TEST_F(AccessTest, AnAccountThatIsGoneLetsNobodyIn) {
  ServedVolume& volume = parts_.create("db1");
  set_auth(volume, {"host1"});
  EXPECT_EQ(access_.accounts(iqn("db1"))->size(), 1u);
  set_auth(volume, {"gone"});
  EXPECT_EQ(access_.accounts(iqn("db1")).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(access_.check_account("gone").error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(access_.check_account("host1"));
}

}  // namespace
}  // namespace mariner::node

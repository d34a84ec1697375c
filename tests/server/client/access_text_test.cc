#include "server/client/access_text.h"

#include <gtest/gtest.h>

namespace mariner::client {
namespace {

TEST(AccessText, SaysWhoMayAndWhere) {
  api::Access access;
  EXPECT_EQ(initiators_text(access), "nobody");
  EXPECT_EQ(accounts_text(access), "none");
  EXPECT_EQ(redirect_text(access), "-");
  access.set_any_initiator(true);
  EXPECT_EQ(initiators_text(access), "any initiator");
  access.set_any_initiator(false);
  access.add_acl("iqn.a");
  access.add_acl("iqn.b");
  access.add_accounts("host1");
  access.set_redirect("192.0.2.1:3260");
  EXPECT_EQ(initiators_text(access), "iqn.a, iqn.b");
  EXPECT_EQ(accounts_text(access), "host1");
  EXPECT_EQ(redirect_text(access), "192.0.2.1:3260");
  access.set_redirect_permanent(true);
  EXPECT_EQ(redirect_text(access), "192.0.2.1:3260, permanently");
}

}  // namespace
}  // namespace mariner::client

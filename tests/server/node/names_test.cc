#include "server/node/names.h"

#include <gtest/gtest.h>

#include <string>

namespace mariner {
namespace {

TEST(Names, Volumes) {
  for (const auto& name : {std::string("db1"), std::string("a"), std::string("0"),
                           std::string("web.site-2_old"), std::string(63, 'x')}) {
    EXPECT_TRUE(check_volume_name(name)) << name;
  }
  for (const auto& name :
       {std::string(""), std::string("Db1"), std::string("a b"), std::string("a/b"),
        std::string("."), std::string(".."), std::string("-a"), std::string("a."),
        std::string("a@b"), std::string("ä"), std::string("a\0b", 3), std::string("a:b"),
        std::string(64, 'x')}) {
    const auto valid = check_volume_name(name);
    ASSERT_FALSE(valid) << name;
    EXPECT_EQ(valid.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(Names, IqnBases) {
  for (const auto* name :
       {"iqn.2026-11.org.mariner", "iqn.2001-04.com.example:storage", "iqn.1998-12.a"}) {
    EXPECT_TRUE(check_iqn_base(name)) << name;
  }
  for (const auto& name :
       {std::string(""), std::string("iqn"), std::string("iqn.2026-11."),
        std::string("iqn.2026-13.org"), std::string("iqn.2026-00.org"),
        std::string("iqn.202611.org.x"), std::string("iqn.2026-11.Org"),
        std::string("iqn.2026-11.org_x"), std::string("iqn.2026-11.org:"),
        std::string("eui.0123456789abcdef"), "iqn.2026-11." + std::string(80, 'x')}) {
    EXPECT_FALSE(check_iqn_base(name)) << name;
  }
}

TEST(Names, Initiators) {
  for (const auto* name :
       {"iqn.1993-08.org.debian:01:abcdef", "iqn.1991-05.com.microsoft:host1",
        "eui.02004567A425678D", "naa.52004567BA64678D", "iqn.2010-01.com.example:Host_1"}) {
    EXPECT_TRUE(check_initiator_name(name)) << name;
  }
  for (const auto& name :
       {std::string(""), std::string("host1"), std::string("iqn."), std::string("iqn.a b"),
        std::string("iqn.a,b"), std::string("iqn.a\n"), "iqn." + std::string(220, 'x')}) {
    EXPECT_FALSE(check_initiator_name(name)) << name;
  }
}

}  // namespace
}  // namespace mariner

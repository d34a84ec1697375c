#include "server/node/identity.h"

#include <gtest/gtest.h>

namespace mariner::node {
namespace {

TEST(Identity, EachUuidIsAnother) { EXPECT_NE(new_uuid(), new_uuid()); }

TEST(Identity, DerivesFromTheUuidAlone) {
  const std::string uuid("\xff\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f", 16);
  const scsi::Identity identity = identity_of(uuid, "iqn", "name", "VOLUME");
  EXPECT_EQ(identity.serial, "ff0102030405060708090a0b0c0d0e0f");
  EXPECT_EQ(naa_text(identity), "3f01020304050607") << "NAA 3h: locally assigned";
  EXPECT_EQ(identity.product, "VOLUME");
  EXPECT_EQ(identity.target_name, "iqn");
  EXPECT_EQ(identity.volume_name, "name");
}

TEST(Identity, NamesOfTargets) {
  EXPECT_EQ(volume_iqn("iqn.2026-11.a", "db"), "iqn.2026-11.a:db");
  EXPECT_EQ(view_iqn("iqn.2026-11.a", "db"), "iqn.2026-11.a:view:db");
}

}  // namespace
}  // namespace mariner::node

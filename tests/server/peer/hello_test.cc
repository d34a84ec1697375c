#include "server/peer/hello.h"

#include <gtest/gtest.h>

#include "proto/peer.pb.h"
#include "tests/server/peer/peer_rig.h"

namespace mariner::peer {
namespace {

const test::TestCluster& cluster() {
  static const test::TestCluster north("north");
  return north;
}
const NodeName kOne{.cluster = "north", .node = "one"};
const NodeName kTwo{.cluster = "north", .node = "two"};

std::string fault(std::string_view hello, const std::string& certified = "two",
                  std::string_view expected = "") {
  const auto checked = check_hello(hello, cluster().node(certified).certificate, kOne, expected);
  if (checked) return "";
  EXPECT_EQ(checked.error().code, ErrorCode::kProtocol);
  return checked.error().message;
}

TEST(Hello, IsGolden) {
  // PROTOCOL.md 3; 14 bytes.
  EXPECT_EQ(make_hello(kTwo), std::string("\x08\x02\x12\x05north\x1a\x03two"));
  EXPECT_EQ(make_hello(kTwo).size(), 14u);
}

TEST(Hello, OfAnotherNodeOfTheCluster) {
  const auto name = check_hello(make_hello(kTwo), cluster().node("two").certificate, kOne, "two");
  ASSERT_TRUE(name) << name.error().message;
  EXPECT_EQ(*name, kTwo);
  EXPECT_EQ(fault(make_hello(kTwo)), "");
}

TEST(Hello, MismatchesNameBothValues) {
  EXPECT_EQ(fault("\x08\x07"), "the protocol's version: expected 2, found 7");
  EXPECT_EQ(fault(make_hello({"south", "two"})), "its cluster: expected north, found south");
  EXPECT_EQ(fault(make_hello({"north", "three"})),
            "its name: expected mariner://north/two as its certificate says, found "
            "mariner://north/three");
  EXPECT_EQ(fault(make_hello(kTwo), "two", "three"),
            "the node at this address: expected three, found two");
}

TEST(Hello, OurOwnNameIsNoOtherNode) {
  EXPECT_NE(fault(make_hello(kOne), "one").find("own name, one"), std::string::npos);
}

TEST(Hello, WhatIsNoMessage) { EXPECT_EQ(fault("\xff\xff"), "its first frame is no hello"); }

TEST(Hello, ACertificateWithoutAName) {
  EXPECT_FALSE(check_hello(make_hello(kTwo), cluster().authority().certificate, kOne, ""));
}

TEST(Hello, IsWithinItsBounds) {
  const std::string longest(kNodeNameBytesMax, 'a');
  EXPECT_LE(make_hello({longest, longest}).size(), kHelloBounds.header_bytes_max);
}

}  // namespace
}  // namespace mariner::peer

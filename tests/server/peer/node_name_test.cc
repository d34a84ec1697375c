#include "server/peer/node_name.h"

#include <gtest/gtest.h>

namespace mariner::peer {
namespace {

TEST(NodeName, NamesThatAreTaken) {
  for (const auto* name : {"a", "node-1", "n1.example.org", "0"}) {
    EXPECT_TRUE(check_name("node", name)) << name;
  }
  EXPECT_TRUE(check_name("node", std::string(kNodeNameBytesMax, 'a')));
}

TEST(NodeName, NamesThatAreNot) {
  for (const auto* name :
       {"", "A", "a/b", "-a", "a-", ".", "..", "a b", "a_b", "a\n", "\xc3\xa4"}) {
    const auto checked = check_name("node", name);
    ASSERT_FALSE(checked) << name;
    EXPECT_EQ(checked.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_FALSE(check_name("node", std::string(kNodeNameBytesMax + 1, 'a')));
}

TEST(NodeName, UriThereAndBack) {
  const NodeName name{.cluster = "north", .node = "n1"};
  EXPECT_EQ(to_uri(name), "mariner://north/n1");
  EXPECT_EQ(parse_uri("mariner://north/n1").value(), name);
}

TEST(NodeName, UrisThatNameNobody) {
  for (const auto* uri : {"", "mariner://", "mariner://north", "mariner://north/", "mariner:///n1",
                          "http://north/n1", "mariner://north/n1/more", "mariner://north/N1"}) {
    EXPECT_FALSE(parse_uri(uri)) << uri;
  }
}

}  // namespace
}  // namespace mariner::peer

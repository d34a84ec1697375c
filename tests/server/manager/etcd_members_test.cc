#include "server/manager/etcd_members.h"

#include <gtest/gtest.h>

namespace mariner::manager {
namespace {

Endpoint at(std::uint16_t port) { return {.address = "127.0.0.1", .port = port}; }

TEST(EtcdMembers, TheNextIsPreferredWhenOneFails) {
  EtcdMembers members({at(1), at(2)});
  EXPECT_EQ(members.preferred(), at(1));
  members.failed(at(2));  // it is not the one
  EXPECT_EQ(members.preferred(), at(1));
  members.failed(at(1));
  members.failed(at(1));  // a second call that failed there
  EXPECT_EQ(members.preferred(), at(2));
  members.failed(at(2));
  EXPECT_EQ(members.preferred(), at(1));
}

TEST(EtcdMembers, TheFirstClusterThatAnswersIsTheOne) {
  EtcdMembers members({at(1)});
  EXPECT_FALSE(members.same_cluster(0));
  EXPECT_TRUE(members.same_cluster(5));
  EXPECT_FALSE(members.same_cluster(6));
  EXPECT_FALSE(members.same_cluster(0));
  EXPECT_TRUE(members.same_cluster(5));
}

}  // namespace
}  // namespace mariner::manager

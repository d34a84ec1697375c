#include "server/node/cluster_groups.h"

#include <gtest/gtest.h>

namespace mariner::node {
namespace {

TEST(ClusterGroups, AreRefusedWithAReason) {
  ClusterGroups groups;
  std::size_t refused = 0;
  const auto refuse = [&refused](const auto& answer) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(answer.error().message.find("not possible in a cluster yet"), std::string::npos);
    ++refused;
  };
  groups.list(refuse);
  groups.show({}, refuse);
  groups.create({}, refuse);
  groups.add({}, refuse);
  groups.remove({}, refuse);
  groups.erase({}, refuse);
  groups.mark_add({}, refuse);
  groups.mark_list({}, refuse);
  groups.mark_remove({}, refuse);
  groups.expose({}, refuse);
  groups.rollback({}, refuse);
  EXPECT_EQ(refused, 11u);
}

}  // namespace
}  // namespace mariner::node

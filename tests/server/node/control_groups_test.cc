// That a node's control leads to its groups: server/node/control_groups.cc. What they do is in
// group_desk_test.cc.
#include <gtest/gtest.h>

#include "tests/server/node/node_fixture.h"

namespace mariner::node {
namespace {

class ControlGroups : public testing::NodeFixture {};

TEST_F(ControlGroups, AreThoseOfTheNode) {
  create("db1");
  api::GroupRequest request;
  request.set_name("g1");
  request.add_volumes("db1");
  for (int i = 0; i < 2; ++i) {
    const auto made = answer<api::Group>([&](auto done) {
      admin::Control& control = node_control();
      control.groups().create(request, std::move(done));
    });
    if (i == 0) {
      EXPECT_TRUE(made);
    } else {
      EXPECT_EQ(made.error().code, ErrorCode::kAlreadyExists);
    }
  }
}

}  // namespace
}  // namespace mariner::node

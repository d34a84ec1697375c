// The daemon's configuration: server/node/control_config.cc.
#include <gtest/gtest.h>

#include "tests/server/node/node_fixture.h"

namespace mariner::node {
namespace {

class ControlConfig : public testing::NodeFixture {};

TEST_F(ControlConfig, IsComparedWithAnother) {
  api::ConfigCompareRequest request;
  request.set_text("version = 2\n");
  request.set_file("new.toml");
  const auto answer = ask(&NodeControl::config_compare, request);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("new.toml"), std::string::npos);
  request.set_text("version = 1\n[log]\ndisks = [\"/log0\"]\n");
  const auto changes = ask(&NodeControl::config_compare, request);
  ASSERT_TRUE(changes) << changes.error().message;
  EXPECT_GT(changes->changes_size(), 0) << "the fixture has folders of its own";
  EXPECT_FALSE(changes->file().empty());
}

TEST_F(ControlConfig, IsReadAgain) {
  const auto answer = ask(&NodeControl::config_reload);
  ASSERT_FALSE(answer) << "the fixture's is in no file";
  EXPECT_NE(answer.error().message.find("cannot be opened"), std::string::npos);
}

}  // namespace
}  // namespace mariner::node

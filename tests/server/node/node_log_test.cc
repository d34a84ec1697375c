// The node's log and index: server/node/node_log.cc.
#include <gtest/gtest.h>

#include "tests/server/node/node_fixture.h"

namespace mariner::node {
namespace {

using NodeLog = testing::NodeFixture;

TEST_F(NodeLog, ADiskIsAddedWhileItRunsAndRemembered) {
  create("db1");
  config().log.disks.push_back(path("second"));
  EXPECT_TRUE(on_loop([&] { return node().reload(config()); }));
  EXPECT_EQ(on_loop([&] { return node().metrics().log_disks.size(); }), 2u);
  stop();
  start();
  EXPECT_EQ(on_loop([&] { return node().metrics().log_disks.size(); }), 2u);
}

TEST_F(NodeLog, ARecoveredLogServesWhatWasWritten) {
  const std::string iqn = create("db1").iqn();
  ASSERT_EQ(write(iqn, 1, 'x'), scsi::Status::kGood);
  stop();
  start();
  EXPECT_EQ(read(iqn, 1), 'x');
}

}  // namespace
}  // namespace mariner::node

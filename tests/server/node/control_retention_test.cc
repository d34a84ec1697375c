// What is kept behind the windows, as an administrator sees it: server/node/control_retention.cc.
#include <gtest/gtest.h>

#include "tests/server/node/node_fixture.h"

namespace mariner::node {
namespace {

class ControlRetention : public testing::NodeFixture {
 protected:
  Result<api::Volume> retain(const std::string& schedule, bool dry_run = false) {
    api::RetainRequest request;
    request.set_name("db1");
    request.set_retain(schedule);
    request.set_dry_run(dry_run);
    return ask(&NodeControl::volume_retain, request);
  }
  Result<api::PruneAnswer> prune(bool dry_run, const std::string& retain = "") {
    api::PruneRequest request;
    request.set_name("db1");
    request.set_retain(retain);
    request.set_dry_run(dry_run);
    return ask(&NodeControl::history_prune, request);
  }
  Result<api::Volume> show() {
    api::VolumeRequest request;
    request.set_name("db1");
    return ask(&NodeControl::volume_show, request);
  }
};

TEST_F(ControlRetention, AScheduleIsSetAndTold) {
  create("db1");
  EXPECT_EQ(show()->retain(), "none");
  EXPECT_EQ(retain("daily=30,hourly=24", true)->retain(), "hourly=24, daily=30");
  EXPECT_EQ(show()->retain(), "none") << "that was a dry run";
  ASSERT_TRUE(retain("daily=30,hourly=24"));
  EXPECT_EQ(show()->retain(), "hourly=24, daily=30");
  ASSERT_TRUE(retain("none"));
  EXPECT_EQ(show()->retain(), "none");
  EXPECT_EQ(retain("often").error().code, ErrorCode::kInvalidArgument);
}

TEST_F(ControlRetention, PruningSaysWhatIsKept) {
  create("db1");
  ASSERT_TRUE(retain("daily=30"));
  const Result<api::PruneAnswer> answer = prune(false);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->retain(), "daily=30");
  EXPECT_EQ(answer->kept_size(), 0) << "the history reaches back to the beginning";
  EXPECT_EQ(answer->gone_size(), 0);
  EXPECT_EQ(prune(true, "yearly=2")->retain(), "yearly=2");
  EXPECT_EQ(prune(false, "yearly=2").error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace mariner::node

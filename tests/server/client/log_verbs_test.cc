#include <gmock/gmock.h>

#include "tests/server/client/daemon.h"

namespace mariner::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class LogVerbs : public DaemonTest {
 protected:
  void SetUp() override {
    control.status_answer.set_log_used_bytes(2u << 20);
    control.status_answer.set_log_history_bytes(10u << 20);
  }
};

TEST_F(LogVerbs, CompactBeginsIt) {
  run({"log", "compact"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(control.asked, ElementsAre("status", "log_compact"));
  EXPECT_THAT(out, HasSubstr("the log is being compacted"));
}

TEST_F(LogVerbs, CompactWaitsUntilItIsDone) {
  run({"log", "compact", "--wait"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(control.asked, ElementsAre("status", "log_compact", "status"));
  EXPECT_EQ(out, "the log uses 2 MiB for 10 MiB of history\n");
  run({"log", "compact", "--wait", "--json"});
  EXPECT_THAT(out, HasSubstr("\"log_history_bytes\":\"10485760\""));
}

TEST_F(LogVerbs, CompactSaysWhyNotAllOfItWasDone) {
  control.status_answer.set_log_compact_trouble("the log has no free track to pack tracks into");
  run({"log", "compact", "--wait"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(err, HasSubstr("not all of the log was compacted: the log has no free track"));
}

TEST_F(LogVerbs, ADryRunChangesNothing) {
  run({"log", "compact", "--dry-run"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(control.asked, ElementsAre("status"));
  EXPECT_THAT(out, HasSubstr("2 MiB are in use now"));
}

}  // namespace
}  // namespace mariner::client

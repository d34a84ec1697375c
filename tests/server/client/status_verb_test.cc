#include <gmock/gmock.h>

#include "tests/server/client/daemon.h"

namespace mariner::client {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class StatusVerb : public DaemonTest {
 protected:
  void SetUp() override {
    auto& status = control.status_answer;
    status.set_version("1.2.3");
    status.set_ready(true);
    status.set_started_ns(kNow.ns);
    status.add_portals("0.0.0.0:3260");
    status.add_portals("[::1]:3260");
    status.set_iqn_base("iqn.2026-11.org.mariner");
    status.set_log_used_bytes(1u << 20);
    status.set_log_limit_bytes(8ull << 30);
    status.set_epoch(4);
    status.set_payload_memory_bytes(2u << 20);
    status.set_config_path("/etc/mariner/other.toml");
  }
};

TEST_F(StatusVerb, SaysAllThatTheDaemonSaysOfItself) {
  run({"status"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_EQ(out,
            "marinerd       1.2.3, ready\n"
            "since          2026-11-20T14:32:05.123456789+01:00  (2026-11-20T13:32:05.123456789Z)\n"
            "portals        0.0.0.0:3260, [::1]:3260\n"
            "targets        iqn.2026-11.org.mariner:VOLUME\n"
            "log            1 MiB of 8 GiB\n"
            "epoch          4\n"
            "payloads       2 MiB in memory\n"
            "configuration  /etc/mariner/other.toml\n");
  EXPECT_THAT(control.asked, testing::ElementsAre("status"));
}

TEST_F(StatusVerb, SaysHowMuchHistoryWasCompacted) {
  control.status_answer.set_log_history_bytes(5u << 20);
  run({"status"});
  EXPECT_THAT(out, HasSubstr("log            1 MiB of 8 GiB\n"
                             "history        5 MiB before it was compacted\n"));
  control.status_answer.set_log_history_bytes(1u << 20);
  run({"status"});
  EXPECT_THAT(out, testing::Not(HasSubstr("compacted")));
}

TEST_F(StatusVerb, ADaemonThatStartsIsNotReady) {
  control.status_answer.set_ready(false);
  control.status_answer.set_started_ns(0);
  run({"status"});
  EXPECT_EQ(code, 0) << "it answers, so the question has been answered";
  EXPECT_THAT(out, StartsWith("marinerd       1.2.3, not ready\nsince          -  (-)\n"));
}

TEST_F(StatusVerb, JsonIsTheDaemonsAnswer) {
  run({"status", "--json"});
  EXPECT_EQ(code, 0);
  EXPECT_THAT(out, StartsWith("{\"schema\":1,\"version\":\"1.2.3\""));
  EXPECT_THAT(out, HasSubstr("\"portals\":[\"0.0.0.0:3260\",\"[::1]:3260\"]"));
  EXPECT_THAT(out, HasSubstr("\"ready\":true"));
  EXPECT_THAT(out, testing::EndsWith("}\n"));
}

TEST_F(StatusVerb, AnErrorIsJsonToo) {
  control.error = Error{ErrorCode::kIo, "the log is gone"};
  run({"status", "--json"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(out, HasSubstr("\"the log is gone\""));
  EXPECT_EQ(err, "");
}

TEST_F(StatusVerb, TakesNoWords) {
  run({"status", "db1"});
  EXPECT_EQ(code, 2);
  EXPECT_TRUE(control.asked.empty());
}

}  // namespace
}  // namespace mariner::client

#include <gmock/gmock.h>

#include "tests/server/client/daemon.h"

namespace mariner::client {
namespace {

using testing::HasSubstr;

class SessionVerbs : public DaemonTest {
 protected:
  void SetUp() override {
    auto& session = *control.sessions.add_sessions();
    session.set_id(7);
    session.set_volume("db1");
    session.set_initiator("iqn.host");
    session.set_address("192.0.2.9:41000");
    auto& discovery = *control.sessions.add_sessions();
    discovery.set_id(8);
    discovery.set_discovery(true);
  }
};

TEST_F(SessionVerbs, List) {
  run({"session", "list"});
  EXPECT_THAT(out, HasSubstr(" 7  iqn.host   192.0.2.9:41000  db1        -      -                0 "
                             "  0 B      0 B     0  -\n"));
  EXPECT_THAT(out, HasSubstr("discovery"));
}

TEST_F(SessionVerbs, KickAsksForTheVolumesName) {
  run({"session", "kick", "7"});
  EXPECT_EQ(code, 5);
  EXPECT_THAT(out, HasSubstr("This closes session 7, which uses db1."));
  terminal = true;
  typed = "db1\n";
  run({"session", "kick", "7"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_EQ(control.asked.back(), "session_kick id: 7");
  typed = "8\n";
  run({"session", "kick", "8"});
  EXPECT_EQ(code, 0) << "a discovery session has no volume: its number is asked for";
}

TEST_F(SessionVerbs, KickDryRunAndWrongOnes) {
  run({"session", "kick", "7", "--dry-run"});
  EXPECT_EQ(control.asked.back(), "session_kick id: 7 dry_run: true");
  run({"session", "kick", "9", "--yes"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(err, HasSubstr("there is no session 9"));
  run({"session", "kick", "x"});
  EXPECT_EQ(code, 2);
}

}  // namespace
}  // namespace mariner::client

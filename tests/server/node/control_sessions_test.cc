// Sessions and the doctor: server/node/control_sessions.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/server/node/node_fixture.h"

namespace mariner::node {
namespace {

class ControlSessions : public testing::NodeFixture {
 protected:
  Result<api::Session> kick(std::uint64_t id, bool dry_run = false) {
    api::SessionRequest request;
    request.set_id(id);
    request.set_dry_run(dry_run);
    request.set_force(true);
    return ask(&NodeControl::session_kick, request);
  }
  api::SessionList list() { return *ask(&NodeControl::session_list); }
};

TEST_F(ControlSessions, None) {
  EXPECT_EQ(list().sessions_size(), 0);
  EXPECT_EQ(kick(1).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(kick(1, true).error().code, ErrorCode::kNotFound);
}

TEST_F(ControlSessions, ListAndKick) {
  const api::Volume volume = create("db1");
  const auto session = log_in(volume.iqn());
  session->use();
  const api::SessionList sessions = list();
  ASSERT_EQ(sessions.sessions_size(), 1);
  const api::Session& only = sessions.sessions(0);
  EXPECT_EQ(only.initiator(), testing::InitiatorSession::kName);
  EXPECT_EQ(only.target(), volume.iqn());
  EXPECT_EQ(only.volume(), "db1");
  EXPECT_EQ(only.view(), "");
  EXPECT_EQ(only.isid().size(), 12u);
  EXPECT_FALSE(only.discovery());
  EXPECT_GT(only.commands(), 0u);
  EXPECT_GE(only.last_io_ns(), only.since_ns());
  EXPECT_EQ(kick(only.id(), true)->id(), only.id());
  EXPECT_EQ(list().sessions_size(), 1);
  EXPECT_EQ(kick(only.id())->id(), only.id());
  EXPECT_EQ(list().sessions_size(), 0);
  EXPECT_EQ(kick(only.id()).error().code, ErrorCode::kNotFound);
}

TEST_F(ControlSessions, TheDoctorFindsAHealthyNode) {
  create("db1");
  const Result<api::DoctorAnswer> answer = ask(&NodeControl::doctor);
  ASSERT_TRUE(answer);
  std::map<std::string, api::Finding> findings;
  for (const api::Finding& finding : answer->findings()) {
    EXPECT_FALSE(finding.found().empty()) << finding.check();
    findings[finding.check()] = finding;
  }
  for (const char* check : {"log space", "log disk", "log durability", "log integrity", "log scrub",
                            "image of db1", "portal"}) {
    ASSERT_TRUE(findings.contains(check)) << check;
    EXPECT_EQ(findings[check].level(), "ok") << check;
    EXPECT_EQ(findings[check].advice(), "") << check;
  }
  EXPECT_NE(findings["log durability"].found().find("measured at start: fua "), std::string::npos)
      << findings["log durability"].found();
  // How these two are depends on the machine.
  EXPECT_TRUE(findings.contains("image space"));
  EXPECT_TRUE(findings.contains("clock"));
}

TEST_F(ControlSessions, TheDoctorWarnsOfImagesThatCannotGrow) {
  api::CreateVolumeRequest huge;
  huge.set_name("huge");
  huge.set_size_bytes(std::uint64_t{1} << 43);
  ASSERT_TRUE(ask(&NodeControl::volume_create, huge));
  const Result<api::DoctorAnswer> answer = ask(&NodeControl::doctor);
  ASSERT_TRUE(answer);
  const auto& findings = answer->findings();
  const auto space =
      std::find_if(findings.begin(), findings.end(),
                   [](const api::Finding& finding) { return finding.check() == "image space"; });
  ASSERT_NE(space, findings.end());
  EXPECT_EQ(space->level(), "warning");
  EXPECT_FALSE(space->advice().empty());
}

}  // namespace
}  // namespace mariner::node

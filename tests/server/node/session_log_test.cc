#include "server/node/session_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/iscsi/session.h"
#include "tests/logging/temporary_directory.h"
#include "tests/server/node/log_file.h"
#include "tests/support/manual_executor.h"

namespace mariner::node {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using namespace std::chrono_literals;

class SessionLogTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kFailuresMax = 60;  // that are told, in a minute

  static iscsi::SessionInfo session() {
    iscsi::SessionInfo info;
    info.id = 7;
    info.initiator = "iqn.2026-11.org.example:host";
    info.target = "iqn.2026-11.org.example:db1";
    info.endpoints = {"192.0.2.7:51234", "192.0.2.1:3260"};
    info.connections = 2;
    return info;
  }
  void end(iscsi::EndReason reason, const std::string& detail = "") {
    log_.connection_ended({.reason = reason,
                           .detail = detail,
                           .endpoints = session().endpoints,
                           .initiator = session().initiator,
                           .target = session().target,
                           .session_id = 7});
  }
  std::vector<std::string> lines() const { return testing::LogFile::lines(path_); }

  const logging::test::TemporaryDirectory directory_;
  const std::string path_ = directory_.file("log");
  testing::LogFile file_{path_};
  test::ManualExecutor executor_;
  SessionLog log_{executor_, file_.log()};
};

TEST_F(SessionLogTest, ASessionThatOpens) {
  log_.session_opened(session());
  ASSERT_THAT(lines(), SizeIs(1));
  EXPECT_THAT(lines()[0],
              EndsWith("INFO session opened initiator=iqn.2026-11.org.example:host "
                       "target=iqn.2026-11.org.example:db1 address=192.0.2.7:51234 session=7"));
}

TEST_F(SessionLogTest, ADiscoverySession) {
  iscsi::SessionInfo info = session();
  info.discovery = true;
  log_.session_opened(info);
  EXPECT_THAT(lines()[0], HasSubstr("INFO discovery session initiator="));
}

TEST_F(SessionLogTest, AnotherConnectionOfASession) {
  log_.connection_joined(session(), {"192.0.2.8:51235", "192.0.2.2:3260"});
  EXPECT_THAT(lines()[0], AllOf(HasSubstr("INFO connection joined a session"),
                                EndsWith("address=192.0.2.8:51235 session=7 connections=2")));
}

TEST_F(SessionLogTest, AnEndThatIsSomebodysFaultIsAWarning) {
  end(iscsi::EndReason::kLogout);
  end(iscsi::EndReason::kProtocolError, "expected a CmdSN of 5");
  ASSERT_THAT(lines(), SizeIs(2));
  EXPECT_THAT(lines()[0], HasSubstr("INFO connection closed reason=logout"));
  EXPECT_THAT(
      lines()[1],
      EndsWith("WARNING connection closed reason=protocol-error detail=\"expected a CmdSN of 5\" "
               "initiator=iqn.2026-11.org.example:host target=iqn.2026-11.org.example:db1 "
               "address=192.0.2.7:51234 session=7"));
}

TEST_F(SessionLogTest, APortalThatFails) {
  log_.portal_failed("192.0.2.1:3260", "too many open files");
  EXPECT_THAT(lines()[0], EndsWith("ERROR a portal cannot accept connections portal=192.0.2.1:3260 "
                                   "error=\"too many open files\""));
}

TEST_F(SessionLogTest, WhoGuessesDoesNotFillTheLog) {
  using iscsi::EndReason;
  for (std::size_t i = 0; i < kFailuresMax; ++i) {
    end(i % 2 == 0 ? EndReason::kLoginFailed : EndReason::kLoginTimeout);
  }
  EXPECT_THAT(lines(), SizeIs(kFailuresMax));
  for (int i = 0; i < 1000; ++i) end(EndReason::kCrowdedOut);
  EXPECT_THAT(lines(), SizeIs(kFailuresMax));
  end(EndReason::kLogout);
  log_.session_opened(session());
  EXPECT_THAT(lines(), SizeIs(kFailuresMax + 2)) << "what is no failed login is told all the same";

  executor_.advance(60s);
  end(EndReason::kLoginFailed);
  ASSERT_THAT(lines(), SizeIs(kFailuresMax + 4));
  EXPECT_THAT(lines()[kFailuresMax + 2],
              EndsWith("WARNING more logins failed than were told logins=1000"));
  EXPECT_THAT(lines()[kFailuresMax + 3], HasSubstr("reason=login-failed"));
}

}  // namespace
}  // namespace mariner::node

#include "server/node/session_answer.h"

#include <gtest/gtest.h>

#include "tests/support/manual_executor.h"

namespace mariner::node {
namespace {

using namespace std::chrono_literals;

TEST(SessionAnswer, HasWhatIsKnownOfTheSession) {
  test::ManualExecutor executor;
  executor.advance(100s);
  iscsi::SessionInfo session;
  session.id = 7;
  session.initiator = "iqn.2026-11.org.example:host";
  session.target = "iqn.2026-11.org.example:db1";
  session.endpoints = {"192.0.2.7:51234", "192.0.2.1:3260"};
  session.isid = {0x80, 0x01, 0x0a, 0xff, 0x00, 0x7b};
  session.tsih = 65535;
  session.since = VersionTime{5'000};
  session.discovery = true;
  session.header_digest = true;
  session.commands = 11;
  session.bytes_read = 12;
  session.bytes_written = 13;
  session.outstanding = 14;
  session.last_io = 70s;
  const api::Session answer = session_answer(session, executor);
  EXPECT_EQ(answer.id(), 7u);
  EXPECT_EQ(answer.initiator(), session.initiator);
  EXPECT_EQ(answer.target(), session.target);
  EXPECT_EQ(answer.address(), "192.0.2.7:51234");
  EXPECT_EQ(answer.portal(), "192.0.2.1:3260");
  EXPECT_EQ(answer.isid(), "80010aff007b");
  EXPECT_EQ(answer.tsih(), 65535u);
  EXPECT_EQ(answer.since_ns(), 5'000u);
  EXPECT_TRUE(answer.discovery());
  EXPECT_TRUE(answer.header_digest());
  EXPECT_FALSE(answer.data_digest());
  EXPECT_EQ(answer.commands(), 11u);
  EXPECT_EQ(answer.bytes_read(), 12u);
  EXPECT_EQ(answer.bytes_written(), 13u);
  EXPECT_EQ(answer.outstanding(), 14u);
  EXPECT_EQ(answer.last_io_ns(), executor.wall_time().ns - 30'000'000'000u) << "30 s ago";
  EXPECT_EQ(answer.volume(), "");
  EXPECT_EQ(answer.view(), "");
}

TEST(SessionAnswer, TellsTheDigestsApart) {
  const test::ManualExecutor executor;
  iscsi::SessionInfo session;
  session.data_digest = true;
  const api::Session answer = session_answer(session, executor);
  EXPECT_FALSE(answer.header_digest());
  EXPECT_TRUE(answer.data_digest());
}

TEST(SessionAnswer, ASessionWithoutACommandHasNoLastOne) {
  test::ManualExecutor executor;
  executor.advance(100s);
  EXPECT_EQ(session_answer({}, executor).last_io_ns(), 0u);
}

}  // namespace
}  // namespace mariner::node

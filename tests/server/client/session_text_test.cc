#include "server/client/session_text.h"

#include <gtest/gtest.h>

namespace mariner::client {
namespace {

api::Session session(std::uint64_t id, const std::string& initiator, const std::string& volume) {
  api::Session session;
  session.set_id(id);
  session.set_initiator(initiator);
  session.set_address("192.0.2.9:41000");
  session.set_volume(volume);
  return session;
}

TEST(SessionText, ALineNamesTheInitiatorItsAddressAndTheSession) {
  EXPECT_EQ(session_line(session(7, "iqn.host", "db1")),
            "Affected: iqn.host from 192.0.2.9:41000 (session 7)\n");
}

// The initiator chooses its name: it must not be able to forge lines or drive the terminal.
TEST(SessionText, OddNamesStayOnTheirLine) {
  const std::string zero("a\0b", 3);
  EXPECT_EQ(session_line(session(1, "x\nAffected: nobody", "")),
            "Affected: x?Affected: nobody from 192.0.2.9:41000 (session 1)\n");
  EXPECT_EQ(session_line(session(1, "\x1b[2J\r\x7f", "")),
            "Affected: ?[2J?? from 192.0.2.9:41000 (session 1)\n");
  EXPECT_EQ(session_line(session(1, zero, "")), "Affected: a?b from 192.0.2.9:41000 (session 1)\n");
  EXPECT_EQ(session_line(session(1, "{} %s", "")),
            "Affected: {} %s from 192.0.2.9:41000 (session 1)\n");
  EXPECT_EQ(session_line(session(1, "iqn.größe", "")),
            "Affected: iqn.größe from 192.0.2.9:41000 (session 1)\n");
  EXPECT_EQ(session_line(session(~0ull, "", "")),
            "Affected:  from 192.0.2.9:41000 (session 18446744073709551615)\n");
  auto forged = session(1, "x", "");
  forged.set_address("1.2.3.4\n");
  EXPECT_EQ(session_line(forged), "Affected: x from 1.2.3.4? (session 1)\n");
}

TEST(SessionText, OnlyThoseConcernedInTheirOrder) {
  api::SessionList sessions;
  *sessions.add_sessions() = session(3, "c", "db1");
  *sessions.add_sessions() = session(2, "b", "db2");
  *sessions.add_sessions() = session(1, "a", "db1");
  const auto of = [&sessions](const std::string& volume) {
    return sessions_text(sessions, [&](const api::Session& one) { return one.volume() == volume; });
  };
  EXPECT_EQ(of("db1"),
            "Affected: c from 192.0.2.9:41000 (session 3)\n"
            "Affected: a from 192.0.2.9:41000 (session 1)\n");
  EXPECT_EQ(of("db3"), "");
  EXPECT_EQ(sessions_text({}, [](const api::Session&) { return true; }), "");
}

}  // namespace
}  // namespace mariner::client

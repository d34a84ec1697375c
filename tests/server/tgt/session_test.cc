// SPDX-License-Identifier: GPL-2.0-only
// A session without a marinerd; tests/e2e/test_tgt_module.py has one.
#include "server/tgt/session.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "tests/server/tgt/numbered_commands.h"
#include "tests/server/tgt/tgtd_stand_in.h"

namespace mariner::tgt {
namespace {

using std::chrono::milliseconds;

struct Owner final : Session::Owner {
  void answered(Command& command) override {
    ++answers;
    if (command.dropped) dropped.push_back(command.cdb[0]);
  }
  [[nodiscard]] bool wanted(const Command& command) const override {
    return command.owner == nullptr;
  }
  void attention(std::uint16_t /*code*/) override {}
  void came_back() override {}
  void went_away(const std::string& /*why*/) override {}
  void stays_away(const std::string& why) override { reasons.push_back(why); }
  int answers = 0;
  std::vector<int> dropped;
  std::vector<std::string> reasons;
};

// A port of this machine, at which somebody listens and says nothing; or at which nobody does.
class Port {
 public:
  explicit Port(bool listens) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(listens ? ::listen(fd_, 4) : 0, 0);
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length), 0);
    options.portal = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    options.target = "iqn.2026-11.org.mariner:db1";
  }
  ~Port() { ::close(fd_); }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  Options options;

 private:
  int fd_;
};

Reactor& reactor() {
  std::string fault;
  return *Reactor::of_tgtd(fault);
}

TEST(TgtSession, OpeningEndsWhoeverIsThere) {
  for (const bool listens : {false, true}) {
    const Port port(listens);
    Owner owner;
    Session session(port.options, reactor(), owner);
    const auto began = Clock::now();
    EXPECT_NE(session.open(began + milliseconds(300)), "");
    EXPECT_GE(Clock::now() - began, milliseconds(290)) << "it is tried until then";
    EXPECT_LT(Clock::now() - began, milliseconds(1500));
  }
}

TEST(TgtSession, CommandsWaitAndComeBackInTheirOrder) {
  const Port port(false);
  Numbered all;
  Owner owner;
  Session session(port.options, reactor(), owner);
  EXPECT_NE(session.open(Clock::now() + milliseconds(10)), "");
  session.follow();
  for (Command& command : all.commands) session.submit(command);
  EXPECT_EQ(session.waiting(), all.commands.size());
  EXPECT_TRUE(session.deadline) << "it will try again";
  pollfd loop{.fd = stand_in.event_fd, .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&loop, 1, 2000), 1) << "the deadline from before it was followed is kept";
  for (int i = 0; i < 3; ++i) session.due();
  EXPECT_EQ(owner.reasons.size(), 1u) << "a reason is told once";
  EXPECT_EQ(owner.answers, 0);
  CommandList left = session.abandon();
  EXPECT_EQ(drained(left), (std::vector{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(session.waiting(), 0u);
}

TEST(TgtSession, WhatNobodyWantsIsDropped) {
  const Port port(false);
  Numbered all;
  Owner owner;
  Session session(port.options, reactor(), owner);
  EXPECT_NE(session.open(Clock::now() + milliseconds(10)), "");
  session.follow();
  for (Command& command : all.commands) session.submit(command);
  for (const std::size_t i : {0u, 3u, 7u}) all.commands[i].owner = &owner;
  EXPECT_EQ(owner.answers, 0);
  session.due();
  EXPECT_EQ(owner.dropped, (std::vector{0, 3, 7}));
  CommandList left = session.abandon();
  EXPECT_EQ(drained(left), (std::vector{1, 2, 4, 5, 6}));
}

}  // namespace
}  // namespace mariner::tgt

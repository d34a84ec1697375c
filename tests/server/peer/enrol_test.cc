#include "server/peer/enrol.h"

#include <gtest/gtest.h>

#include <future>
#include <string>

#include "tests/server/peer/enrolment_rig.h"

namespace mariner::peer {
namespace {

using namespace std::chrono_literals;
using test::EnrolmentRig;
using test::Loop;
using test::wall_now;

// It waits, so it runs beside the loop.
Result<NodeIdentity> enrol_beside(Loop& loop, const Invitation& invitation) {
  auto result = std::async(std::launch::async, [&] { return enrol(invitation, wall_now(), 1s); });
  EXPECT_TRUE(loop.run_until([&] { return result.wait_for(0s) == std::future_status::ready; }));
  return result.get();
}

std::string fault(const Result<NodeIdentity>& result) {
  return result ? "" : result.error().message;
}

TEST(Enrol, ANewNodeJoinsAndSpeaksWithTheOthers) {
  Loop loop;
  EnrolmentRig rig(loop);
  const auto identity = enrol_beside(loop, rig.invite("n2"));
  ASSERT_TRUE(identity) << identity.error().message;
  EXPECT_EQ(identity->name, (NodeName{"north", "n2"}));
  EXPECT_EQ(rig.names, std::vector<std::string>{"n2"});
  const test::Pair pair(loop, loop.environment(TlsContext::for_peers(*identity).value()),
                        loop.environment(rig.cluster.tls("n3")), "n3");
  EXPECT_TRUE(pair.one.established && pair.two.established);
}

TEST(Enrol, AUsedInvitationIsRefusedWithTheReason) {
  Loop loop;
  EnrolmentRig rig(loop);
  const Invitation invitation = rig.invite("n2");
  ASSERT_TRUE(enrol_beside(loop, invitation));
  const auto second = enrol_beside(loop, invitation);
  EXPECT_NE(fault(second).find("was used already"), std::string::npos) << fault(second);
  EXPECT_EQ(rig.names.size(), 1u);
}

TEST(Enrol, AnotherClusterIsNotToldTheSecret) {
  Loop loop;
  EnrolmentRig rig(loop);
  EnrolmentRig other(loop);
  Invitation invitation = rig.invite("n2");
  invitation.address = other.listener->addresses()[0];  // somebody in between
  const auto result = enrol_beside(loop, invitation);
  EXPECT_NE(fault(result).find("not of the cluster that has made the invitation"),
            std::string::npos)
      << fault(result);
  EXPECT_TRUE(other.names.empty());
  EXPECT_TRUE(loop.run_until([&] { return other.listener->connections() == 0; }));
  EXPECT_EQ(rig.book.open(loop.executor().monotonic_time()), 1u);
}

TEST(Enrol, NobodyThere) {
  Loop loop;
  Invitation invitation = EnrolmentRig(loop).invite("n2");
  const auto result = enrol_beside(loop, invitation);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(fault(result).find("is that node's daemon running"), std::string::npos);
}

TEST(Enrol, SomebodyWhoSaysNothing) {
  Loop loop;
  boost::asio::ip::tcp::acceptor silent(loop.io(), {boost::asio::ip::address_v4::loopback(), 0});
  Invitation invitation = EnrolmentRig(loop).invite("n2");
  invitation.address.port = silent.local_endpoint().port();
  const auto result = enrol_beside(loop, invitation);
  EXPECT_NE(fault(result).find("it does not answer"), std::string::npos) << fault(result);
}

}  // namespace
}  // namespace mariner::peer

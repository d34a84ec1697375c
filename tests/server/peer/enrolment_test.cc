#include "server/peer/enrolment.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "proto/peer.pb.h"
#include "tests/server/peer/peer_rig.h"

namespace mariner::peer {
namespace {

using namespace std::chrono_literals;
using test::TestCluster;
using test::wall_now;

class EnrolmentTest : public testing::Test {
 protected:
  Inviter::Answer answer(const std::string& request) {
    return inviter_.answer(request, "192.0.2.7:5000", 1s, wall_now());
  }

  const TestCluster cluster_{"north"};
  const Certificate authority_ = cluster_.authority().certificate;
  InvitationBook book_;
  Inviter inviter_{cluster_.authority(), "north", book_};
  const PrivateKey key_ = PrivateKey::generate().value();
  const std::string signing_request_ = make_signing_request(key_).value();
};

TEST_F(EnrolmentTest, AnInvitedNodeGetsItsCertificate) {
  const std::string secret = book_.invite("n2", 0s).value();
  const auto answered = answer(make_enrol_request(secret, signing_request_));
  EXPECT_EQ(answered.enrolled.value(), (NodeName{"north", "n2"}));
  const auto identity = take_enrol_reply(answered.reply, key_, authority_, wall_now());
  ASSERT_TRUE(identity) << identity.error().message;
  EXPECT_EQ(identity->name, (NodeName{"north", "n2"}));
  EXPECT_TRUE(TlsContext::for_peers(*identity));
}

TEST_F(EnrolmentTest, ASecretIsSpentOnce) {
  const std::string secret = book_.invite("n2", 0s).value();
  const std::string request = make_enrol_request(secret, signing_request_);
  EXPECT_TRUE(answer(request).enrolled);
  const auto second = answer(request);
  EXPECT_FALSE(second.enrolled);
  const auto identity = take_enrol_reply(second.reply, key_, authority_, wall_now());
  ASSERT_FALSE(identity);
  EXPECT_NE(identity.error().message.find("refused: the invitation of n2 was used already"),
            std::string::npos);
}

TEST_F(EnrolmentTest, BadRequestsGetARefusal) {
  const std::string secret = book_.invite("n2", 0s).value();
  EXPECT_FALSE(answer("\xff").enrolled);
  EXPECT_FALSE(answer("").enrolled);
  EXPECT_FALSE(answer(make_enrol_request("wrong", signing_request_)).enrolled);
  wire::EnrolRequest newer;
  newer.set_protocol_version(3);
  newer.set_secret(secret);
  newer.set_signing_request(signing_request_);
  const auto refused = answer(newer.SerializeAsString());
  ASSERT_FALSE(refused.enrolled);
  EXPECT_EQ(refused.enrolled.error().message, "the protocol's version: expected 2, found 3");
  EXPECT_EQ(book_.open(1s), 1u);  // none of them has spent it
  EXPECT_FALSE(answer(make_enrol_request(secret, "nonsense")).enrolled);
  EXPECT_EQ(book_.open(1s), 0u);
}

TEST_F(EnrolmentTest, TheAuthorityIsFoundByItsFingerprint) {
  const NodeIdentity node = cluster_.node("n1");
  const std::vector<Certificate> shown{node.certificate, node.authority};
  const auto found = find_authority(shown, authority_.fingerprint(), wall_now());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->fingerprint(), authority_.fingerprint());
}

TEST_F(EnrolmentTest, WhoeverIsNotOfTheClusterIsNotBelieved) {
  const NodeIdentity node = cluster_.node("n1");
  const TestCluster other("north");
  const std::string fingerprint = authority_.fingerprint();
  const auto refused = [&](const std::vector<Certificate>& shown) {
    return !find_authority(shown, fingerprint, wall_now());
  };
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused({node.certificate}));
  EXPECT_TRUE(refused({node.authority}));  // the authority itself is no node
  EXPECT_TRUE(refused({other.node("n1").certificate, other.authority().certificate}));
  // Another's node, which shows our authority without its being issued by it.
  EXPECT_TRUE(refused({other.node("n1").certificate, node.authority}));
  const auto later = find_authority(std::vector{node.certificate, node.authority}, fingerprint,
                                    wall_now() + std::chrono::days(4000));
  EXPECT_FALSE(later);
}

TEST_F(EnrolmentTest, OnlyOurOwnCertificateIsTaken) {
  const auto reply_of = [](const std::string& certificate) {
    wire::EnrolReply reply;
    reply.set_certificate(certificate);
    return reply.SerializeAsString();
  };
  const auto fault = [&](const std::string& reply) {
    const auto taken = take_enrol_reply(reply, key_, authority_, wall_now());
    return taken ? std::string() : taken.error().message;
  };
  EXPECT_NE(fault("\xff").find("no reply"), std::string::npos);
  EXPECT_NE(fault("").find("not a certificate"), std::string::npos);
  EXPECT_NE(fault(reply_of(cluster_.node("n2").certificate.to_der())).find("another key"),
            std::string::npos);
  const TestCluster other("north");
  const auto foreign =
      sign_node(other.authority(), {"north", "n2"}, signing_request_, wall_now()).value();
  EXPECT_NE(fault(reply_of(foreign.to_der())).find("not this node's"), std::string::npos);
}

}  // namespace
}  // namespace mariner::peer

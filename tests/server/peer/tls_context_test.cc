#include "server/peer/tls_context.h"

#include <gtest/gtest.h>

#include "server/peer/openssl.h"
#include "tests/server/peer/peer_rig.h"

namespace mariner::peer {
namespace {

TEST(TlsContext, OnlyTls13) {
  const test::TestCluster cluster("north");
  for (const auto& context :
       {cluster.tls("one"), TlsContext::for_inviting(cluster.node("one")).value(),
        TlsContext::for_enrolling().value()}) {
    EXPECT_EQ(SSL_CTX_get_min_proto_version(context->get()), TLS1_3_VERSION);
    EXPECT_EQ(SSL_CTX_get_num_tickets(context->get()), 0u);
    EXPECT_NE(SSL_CTX_get_options(context->get()) & SSL_OP_ENABLE_KTLS, 0u);
  }
}

TEST(TlsContext, PeersDemandACertificateOfEachOther) {
  const test::TestCluster cluster("north");
  const auto peers = cluster.tls("one");
  EXPECT_EQ(SSL_CTX_get_verify_mode(peers->get()),
            SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT);
  EXPECT_EQ(peers->name(), (NodeName{"north", "one"}));
  EXPECT_EQ(TlsContext::for_enrolling().value()->name(), NodeName{});
}

TEST(TlsContext, AKeyThatIsNotTheCertificatesIsAnError) {
  const test::TestCluster cluster("north");
  NodeIdentity mixed = cluster.node("one");
  mixed.key = cluster.node("two").key;
  EXPECT_FALSE(TlsContext::for_peers(mixed));
}

}  // namespace
}  // namespace mariner::peer

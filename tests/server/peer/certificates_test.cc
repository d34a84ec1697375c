#include "server/peer/certificates.h"

#include <gtest/gtest.h>
#include <openssl/rsa.h>

#include <string>

#include "server/peer/openssl.h"
#include "tests/server/peer/peer_rig.h"

namespace mariner::peer {
namespace {

using test::TestCluster;
using test::wall_now;

std::string request_of(EVP_PKEY* key) {
  const X509ReqPtr request(X509_REQ_new());
  X509_REQ_set_pubkey(request.get(), key);
  X509_REQ_sign(request.get(), key, EVP_sha256());
  unsigned char* der = nullptr;
  const int bytes = i2d_X509_REQ(request.get(), &der);
  std::string text(reinterpret_cast<const char*>(der), static_cast<std::size_t>(bytes));
  OPENSSL_free(der);
  return text;
}

TEST(Certificates, ANodesCertificateNamesIt) {
  const TestCluster cluster("north");
  const NodeIdentity node = cluster.node("n1");
  EXPECT_EQ(node.certificate.node_name().value(), (NodeName{"north", "n1"}));
  EXPECT_TRUE(node.certificate.belongs_to(node.key));
  EXPECT_FALSE(node.certificate.belongs_to(cluster.authority().key));
  EXPECT_TRUE(check_issued(node.certificate, node.authority, wall_now()));
}

TEST(Certificates, AnAuthorityNamesNoNode) {
  const TestCluster cluster("north");
  EXPECT_FALSE(cluster.authority().certificate.node_name());
}

TEST(Certificates, AnotherAuthorityOfTheSameNameHasNotIssuedIt) {
  const TestCluster cluster("north");
  const TestCluster other("north");
  const auto issued =
      check_issued(cluster.node("n1").certificate, other.authority().certificate, wall_now());
  ASSERT_FALSE(issued);
  EXPECT_EQ(issued.error().code, ErrorCode::kInvalidArgument);
}

TEST(Certificates, ANodeSignsNobody) {
  const TestCluster cluster("north");
  const NodeIdentity node = cluster.node("n1");
  const Authority usurper{.certificate = node.certificate, .key = node.key};
  const PrivateKey key = PrivateKey::generate().value();
  const auto forged =
      sign_node(usurper, {"north", "n2"}, make_signing_request(key).value(), wall_now());
  ASSERT_TRUE(forged);
  EXPECT_FALSE(check_issued(*forged, node.authority, wall_now()));
  EXPECT_FALSE(check_issued(*forged, node.certificate, wall_now()));
}

TEST(Certificates, TheyAreGoodForTenYearsAndADayBack) {
  const WallTime now = wall_now();
  const TestCluster cluster("north", now);
  const NodeIdentity node = cluster.node("n1", now);
  const auto good_at = [&](WallTime time) {
    return check_issued(node.certificate, node.authority, time).has_value();
  };
  EXPECT_EQ(node.certificate.not_after(), now + kCertificateLife);
  EXPECT_EQ(node.certificate.not_before(), now - kCertificateBackdated);
  EXPECT_TRUE(good_at(now - std::chrono::hours(23)));
  EXPECT_FALSE(good_at(now - std::chrono::hours(25)));
  EXPECT_TRUE(good_at(now + std::chrono::days(3650)));
  EXPECT_FALSE(good_at(now + std::chrono::days(3653)));
}

TEST(Certificates, ANodesNeverOutlivesItsAuthoritys) {
  const WallTime made = wall_now() - std::chrono::days(3000);
  const TestCluster cluster("north", made);
  EXPECT_EQ(cluster.node("n1").certificate.not_after(), made + kCertificateLife);
}

TEST(Certificates, PemAndDerThereAndBack) {
  const TestCluster cluster("north");
  const NodeIdentity node = cluster.node("n1");
  const auto from_pem = Certificate::from_pem(node.certificate.to_pem());
  const auto from_der = Certificate::from_der(node.certificate.to_der());
  ASSERT_TRUE(from_pem && from_der);
  EXPECT_EQ(from_pem->fingerprint(), node.certificate.fingerprint());
  EXPECT_EQ(from_der->fingerprint(), node.certificate.fingerprint());
  EXPECT_EQ(node.certificate.fingerprint().size(), 64u);
  EXPECT_NE(node.certificate.fingerprint(), node.authority.fingerprint());
  const auto key = PrivateKey::from_pem(node.key.to_pem());
  ASSERT_TRUE(key);
  EXPECT_TRUE(node.certificate.belongs_to(*key));
}

TEST(Certificates, WhatIsNoneIsAnError) {
  EXPECT_FALSE(Certificate::from_pem(""));
  EXPECT_FALSE(
      Certificate::from_pem("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"));
  EXPECT_FALSE(Certificate::from_der("nonsense"));
  EXPECT_FALSE(Certificate::from_der(""));
  const TestCluster cluster("north");
  EXPECT_FALSE(Certificate::from_der(cluster.authority().certificate.to_der() + "x"));
  EXPECT_FALSE(PrivateKey::from_pem(cluster.authority().certificate.to_pem()));
}

TEST(Certificates, OnlyGoodRequestsAreSigned) {
  const TestCluster cluster("north");
  const PrivateKey key = PrivateKey::generate().value();
  const std::string good = make_signing_request(key).value();
  const auto sign = [&](const std::string& request) {
    return sign_node(cluster.authority(), {"north", "n1"}, request, wall_now());
  };
  EXPECT_TRUE(sign(good));
  EXPECT_FALSE(sign(""));
  EXPECT_FALSE(sign("nonsense"));
  EXPECT_FALSE(sign(good.substr(0, good.size() / 2)));
  // A changed byte of the signature: who asks does not have the key.
  std::string changed = good;
  changed.back() = static_cast<char>(changed.back() ^ 1);
  const auto refused = sign(changed);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  // Keys of another kind, and of another curve.
  const KeyPtr rsa(EVP_RSA_gen(2048));
  EXPECT_FALSE(sign(request_of(rsa.get())));
  const KeyPtr p384(EVP_EC_gen("P-384"));
  EXPECT_FALSE(sign(request_of(p384.get())));
}

TEST(Certificates, TwoNeverHaveTheSameSerialNumber) {
  const TestCluster cluster("north");
  const auto serial = [](const Certificate& certificate) {
    return X509_get0_serialNumber(certificate.get());
  };
  const NodeIdentity a = cluster.node("n1");
  const NodeIdentity b = cluster.node("n1");
  EXPECT_NE(ASN1_INTEGER_cmp(serial(a.certificate), serial(b.certificate)), 0);
}

}  // namespace
}  // namespace mariner::peer

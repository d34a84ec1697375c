#include "server/peer/pki_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/logging/temporary_directory.h"
#include "tests/server/peer/peer_rig.h"

namespace mariner::peer {
namespace {

using test::TestCluster;
using test::wall_now;

mode_t mode_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

class PkiFolderTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name, std::ios::trunc) << text;
  }
  // What load() says to it.
  [[nodiscard]] std::string fault() const {
    const auto loaded = folder_.load(wall_now());
    return loaded ? "" : loaded.error().message;
  }

  logging::test::TemporaryDirectory directory_;
  const std::string path_ = directory_.file("pki");
  const PkiFolder folder_{path_};
  const NodeName name_{.cluster = "north", .node = "n1"};
};

TEST_F(PkiFolderTest, AClusterIsMadeAndRead) {
  const auto made = folder_.create_cluster(name_, wall_now());
  ASSERT_TRUE(made) << made.error().message;
  const auto loaded = folder_.load(wall_now());
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->name, name_);
  EXPECT_EQ(loaded->certificate.fingerprint(), made->certificate.fingerprint());
  const auto authority = folder_.load_authority(wall_now());
  ASSERT_TRUE(authority) << authority.error().message;
  EXPECT_EQ(authority->certificate.fingerprint(), made->authority.fingerprint());
  EXPECT_EQ(mode_of(path_), 0700u);
  EXPECT_EQ(mode_of(path_ + "/ca.key"), 0600u);
  EXPECT_EQ(mode_of(path_ + "/node.key"), 0600u);
  EXPECT_EQ(mode_of(path_ + "/ca.crt"), 0644u);
  EXPECT_EQ(mode_of(path_ + "/node.crt"), 0644u);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
}

TEST_F(PkiFolderTest, WhatAnEnrolledNodeKeepsHasNoAuthoritysKey) {
  const TestCluster cluster("north");
  ASSERT_TRUE(folder_.store(cluster.node("n2")));
  EXPECT_EQ(folder_.load(wall_now()).value().name.node, "n2");
  const auto authority = folder_.load_authority(wall_now());
  ASSERT_FALSE(authority);
  EXPECT_EQ(authority.error().code, ErrorCode::kNotFound);
  EXPECT_NE(authority.error().message.find("ca.key"), std::string::npos);
}

TEST_F(PkiFolderTest, NothingIsReplaced) {
  ASSERT_TRUE(folder_.create_cluster(name_, wall_now()));
  const std::string before = folder_.load(wall_now()).value().certificate.fingerprint();
  const auto again = folder_.create_cluster(name_, wall_now());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kAlreadyExists);
  EXPECT_FALSE(folder_.store(TestCluster("north").node("n2")));
  EXPECT_EQ(folder_.load(wall_now()).value().certificate.fingerprint(), before);
}

TEST_F(PkiFolderTest, AnEmptyFolderAndWhatACrashHasLeftAreNoHindrance) {
  std::filesystem::create_directory(path_);
  std::filesystem::create_directory(path_ + ".new");
  std::ofstream(path_ + ".new/node.key") << "half";
  EXPECT_TRUE(folder_.check_vacant());
  ASSERT_TRUE(folder_.create_cluster(name_, wall_now()));
  EXPECT_TRUE(folder_.load(wall_now()));
}

TEST_F(PkiFolderTest, WrongNamesMakeNothing) {
  EXPECT_FALSE(folder_.create_cluster({.cluster = "North", .node = "n1"}, wall_now()));
  EXPECT_FALSE(folder_.create_cluster({.cluster = "north", .node = "a/b"}, wall_now()));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(PkiFolderTest, AMissingFileSaysWhatToDo) {
  const auto loaded = folder_.load(wall_now());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::kNotFound);
  EXPECT_NE(loaded.error().message.find("mariner node init"), std::string::npos);
}

TEST_F(PkiFolderTest, AKeyThatOthersMayReadIsRefused) {
  ASSERT_TRUE(folder_.create_cluster(name_, wall_now()));
  for (const mode_t mode : {0640u, 0604u, 0700u, 0660u}) {
    ::chmod((path_ + "/node.key").c_str(), mode);
    EXPECT_NE(fault().find("chmod 600"), std::string::npos) << mode;
  }
  ::chmod((path_ + "/node.key").c_str(), 0400);
  EXPECT_EQ(fault(), "");
  ::chmod((path_ + "/ca.key").c_str(), 0644);
  EXPECT_FALSE(folder_.load_authority(wall_now()));
}

TEST_F(PkiFolderTest, FilesThatDoNotBelongTogetherAreRefused) {
  ASSERT_TRUE(folder_.create_cluster(name_, wall_now()));
  const NodeIdentity stranger = TestCluster("north").node("n1");
  const std::string own_key = folder_.load(wall_now()).value().key.to_pem();
  write("node.key", stranger.key.to_pem());
  EXPECT_NE(fault().find("node.key: it is the key of another certificate"), std::string::npos);
  write("node.key", own_key);
  EXPECT_EQ(fault(), "");
  write("ca.crt", stranger.authority.to_pem());
  EXPECT_NE(fault().find("did not issue it"), std::string::npos);
  EXPECT_FALSE(folder_.load_authority(wall_now()));
}

TEST_F(PkiFolderTest, DamageIsNamed) {
  ASSERT_TRUE(folder_.create_cluster(name_, wall_now()));
  write("node.crt", "not a certificate");
  EXPECT_NE(fault().find("/node.crt: not a certificate in PEM"), std::string::npos);
  write("node.crt", std::string(100'000, 'x'));
  EXPECT_NE(fault().find("65536"), std::string::npos);
}

TEST_F(PkiFolderTest, AnEndedCertificateIsNamedWithItsDays) {
  ASSERT_TRUE(folder_.create_cluster(name_, wall_now() - std::chrono::days(4000)));
  EXPECT_NE(fault().find("ca.crt: the certificate is good from"), std::string::npos);
}

}  // namespace
}  // namespace mariner::peer

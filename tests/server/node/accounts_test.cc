#include "server/node/accounts.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/logging/temporary_directory.h"

namespace mariner::node {
namespace {

class AccountsTest : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const std::string path = directory_.file(name);
    std::ofstream(path) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  static std::string why_not(const AuthConfig& account) {
    const auto loaded = load_accounts({account});
    return loaded ? "" : loaded.error().message;
  }
  logging::test::TemporaryDirectory directory_;
  const std::string secret_ = file("secret", "twelve chars");
  const std::string mutual_ = file("mutual", "another secret\r\n");
};

TEST_F(AccountsTest, HaveTheirSecrets) {
  const auto loaded =
      load_accounts({{"a", "alice", secret_, "", ""}, {"b", "bob", mutual_, "mariner", secret_}});
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->at("a").user, "alice");
  EXPECT_EQ(loaded->at("a").secret, "twelve chars");
  EXPECT_EQ(loaded->at("a").mutual_user, "");
  EXPECT_EQ(loaded->at("b").secret, "another secret") << "without the end of its line";
  EXPECT_EQ(loaded->at("b").mutual_user, "mariner");
  EXPECT_EQ(loaded->at("b").mutual_secret, "twelve chars");
}

TEST_F(AccountsTest, WhatIsWrongIsSaid) {
  EXPECT_EQ(why_not({"a", "a", secret_ + "x", "", ""}),
            "[auth.a]: " + secret_ + "x: open: No such file or directory");
  const std::string open = file("open", "twelve chars", 0640);
  EXPECT_EQ(why_not({"a", "a", open, "", ""}),
            "[auth.a]: " + open +
                ": others may read or change it (mode 0640); expected mode 0600: chmod 600 " +
                open);
  const std::string brief = file("brief", "eleven char\n");
  EXPECT_EQ(why_not({"a", "a", brief, "", ""}),
            "[auth.a]: " + brief + ": expected a secret of 12 to 255 characters, found 11");
  const std::string large = file("large", std::string(300, 'x'));
  EXPECT_EQ(why_not({"a", "a", large, "", ""}),
            "[auth.a]: " + large + ": expected a secret of 12 to 255 characters, found more");
  EXPECT_EQ(why_not({"a", "a", directory_.file("."), "", ""}).substr(0, 10), "[auth.a]: ");
  const std::string same = file("same", "twelve chars\n");
  EXPECT_NE(why_not({"a", "a", secret_, "m", same}).find("the same secret"), std::string::npos);
}

}  // namespace
}  // namespace mariner::node

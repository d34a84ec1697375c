// SPDX-License-Identifier: GPL-2.0-only
#include "server/tgt/options.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace mariner::tgt {
namespace {

Options good(std::string_view volume, std::string_view text) {
  auto parsed = parse_options(volume, text);
  if (const auto* refusal = std::get_if<Refusal>(&parsed)) {
    ADD_FAILURE() << refusal->why;
    return {};
  }
  return std::get<Options>(parsed);
}

std::string refused(std::string_view text, std::string_view volume = "db1") {
  auto parsed = parse_options(volume, text);
  const auto* refusal = std::get_if<Refusal>(&parsed);
  return refusal != nullptr ? refusal->why : "it is not refused";
}

class PasswordFile {
 public:
  explicit PasswordFile(std::string_view content, unsigned mode = 0600) {
    std::string pattern = std::filesystem::temp_directory_path() / "mariner-tgt-XXXXXX";
    const int fd = ::mkstemp(pattern.data());
    EXPECT_GE(fd, 0);
    ::close(fd);
    path_ = pattern;
    std::ofstream(path_) << content;
    EXPECT_EQ(::chmod(path_.c_str(), mode), 0);
  }
  ~PasswordFile() { std::filesystem::remove(path_); }
  PasswordFile(const PasswordFile&) = delete;
  PasswordFile& operator=(const PasswordFile&) = delete;
  [[nodiscard]] std::string options() const { return "user=host1;password-file=" + path_; }

 private:
  std::string path_;
};

TEST(TgtOptions, NoneAreNeeded) {
  const Options options = good("db1", "");
  EXPECT_EQ(options.portal, "127.0.0.1:3261");
  EXPECT_EQ(options.target, "iqn.2026-11.org.mariner:db1");
  EXPECT_EQ(options.initiator, "iqn.2026-11.org.mariner:tgt");
  EXPECT_EQ(options.user, "");
}

TEST(TgtOptions, EachReplacesItsDefault) {
  const Options options = good("db1",
                               "portal=[fe80::1]:3300;iqn-base=iqn.2001-04.com.example;"
                               "initiator=iqn.2001-04.com.example:front;");
  EXPECT_EQ(options.portal, "[fe80::1]:3300");
  EXPECT_EQ(options.target, "iqn.2001-04.com.example:db1");
  EXPECT_EQ(options.initiator, "iqn.2001-04.com.example:front");
  EXPECT_EQ(good("", "target=iqn.2026-11.org.mariner:view:v1").target,
            "iqn.2026-11.org.mariner:view:v1");
}

TEST(TgtOptions, APathEndsWithTheVolume) {
  EXPECT_EQ(good("/etc/mariner/tgt/db1", "").target, "iqn.2026-11.org.mariner:db1");
  EXPECT_EQ(refused("", "/etc/mariner/tgt/"),
            "--backing-store: expected the name of a volume, found ''");
}

TEST(TgtOptions, AnUnknownKeyIsRefusedWithTheNearestOne) {
  EXPECT_EQ(refused("prtal=127.0.0.1:1"),
            "bsopts: expected the keys portal, target, iqn-base, initiator, user, password-file, "
            "found 'prtal'; did you mean 'portal'?");
  EXPECT_EQ(refused("cluster=x").find("did you mean"), std::string::npos);
}

TEST(TgtOptions, AValueIsNeededOnce) {
  EXPECT_EQ(refused("portal"), "portal: expected a value, as in portal=VALUE, found 'portal'");
  EXPECT_EQ(refused("user="), "user: expected a value, as in user=VALUE, found 'user='");
  EXPECT_EQ(refused("portal=127.0.0.1:1;portal=127.0.0.1:2"),
            "portal: expected one value, found two");
}

TEST(TgtOptions, APortalIsANumericAddressAndAPort) {
  for (const char* bad :
       {"127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:1x",
        "localhost:3261", "::1:3261", "[127.0.0.1]:3261", ":3261", "[]:1"}) {
    EXPECT_TRUE(refused(std::string("portal=") + bad).starts_with("portal: expected ADDRESS:PORT"))
        << bad << ": " << refused(std::string("portal=") + bad);
  }
}

TEST(TgtOptions, NamesAreISCSINames) {
  EXPECT_TRUE(refused("initiator=host1").starts_with("initiator: expected an iSCSI name"));
  EXPECT_TRUE(refused("target=iqn.a b").starts_with("target: expected an iSCSI name"));
  EXPECT_TRUE(refused("", "db 1").starts_with("iqn-base:volume: expected an iSCSI name"));
  EXPECT_TRUE(refused("", std::string(223, 'a')).starts_with("iqn-base:volume: expected"));
  EXPECT_EQ(refused("", ""), "--backing-store: expected the name of a volume, found ''");
  EXPECT_EQ(refused("target=iqn.x:y;iqn-base=iqn.x"),
            "iqn-base: expected no target beside it, whose name is whole, found both");
}

TEST(TgtOptions, AUserHasAPassword) {
  EXPECT_EQ(refused("user=host1"), "password-file: expected one beside user, found none");
  EXPECT_EQ(refused("password-file=/x"), "user: expected one beside password-file, found none");
  const PasswordFile file("a secret of its own\n");
  const Options options = good("db1", file.options());
  EXPECT_EQ(options.user, "host1");
  EXPECT_EQ(options.password, "a secret of its own");
}

TEST(TgtOptions, APasswordFileIsItsOwnersAlone) {
  for (const unsigned mode : {0640u, 0604u, 0666u, 0620u}) {
    const PasswordFile file("a secret of its own", mode);
    EXPECT_NE(refused(file.options()).find("(mode 0600)"), std::string::npos) << std::oct << mode;
  }
  EXPECT_NE(refused("user=a;password-file=/nonexistent").find("No such file"), std::string::npos);
  EXPECT_NE(refused("user=a;password-file=/").find("expected a regular file"), std::string::npos);
}

TEST(TgtOptions, APasswordIsALine) {
  const auto refused_for = [](const std::string& content) {
    return refused(PasswordFile(content).options()).find("1 to 255 characters") !=
           std::string::npos;
  };
  EXPECT_TRUE(refused_for(""));
  EXPECT_TRUE(refused_for("\nsecond line"));
  EXPECT_TRUE(refused_for(std::string(256, 'x')));
  EXPECT_FALSE(refused_for(std::string(255, 'x')));
}

}  // namespace
}  // namespace mariner::tgt

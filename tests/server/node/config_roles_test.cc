#include "server/node/config_roles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mariner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kCluster =
    "[cluster]\n"
    "listen = ['10.0.0.1:9862']\n"
    "etcd = ['10.0.0.1:2379', '10.0.0.2:2379', '10.0.0.3:2379']\n"
    "[[cluster.node]]\n"
    "id = 1\n"
    "name = 'a'\n"
    "addresses = ['10.0.0.1:9862']\n";

constexpr const char* kVolume =
    "[[volume]]\nname = 'db1'\nsize = '1G'\nlogger = 'a'\nstorage = ['a']\n";

ConfigReading read(const std::string& roles, const std::string& more = "") {
  return parse_config("version = 1\n" + roles + "\n" + more + kCluster, "m.toml");
}

std::vector<std::string> problems(const ConfigReading& reading) {
  std::vector<std::string> all;
  for (const auto& problem : reading.problems) all.push_back(to_string(problem));
  return all;
}

TEST(ConfigRoles, AreStandaloneIfNothingIsSaid) {
  const ConfigReading reading = parse_config("version = 1\n", "m.toml");
  ASSERT_TRUE(reading.config);
  EXPECT_THAT(reading.config->roles, ElementsAre(Role::kStandalone));
  EXPECT_TRUE(reading.config->standalone());
  EXPECT_FALSE(reading.config->has(Role::kStorage));
}

TEST(ConfigRoles, AreKeptAsTheyAreWritten) {
  const ConfigReading reading = read("roles = ['manager', 'target', 'storage', 'logger']");
  ASSERT_TRUE(reading.config) << testing::PrintToString(problems(reading));
  EXPECT_THAT(problems(reading), IsEmpty());
  EXPECT_THAT(reading.config->roles,
              ElementsAre(Role::kManager, Role::kTarget, Role::kStorage, Role::kLogger));
  EXPECT_FALSE(reading.config->standalone());
  EXPECT_TRUE(reading.config->has(Role::kLogger));
}

TEST(ConfigRoles, EachIsRight) {
  for (const char* role : {"logger", "storage", "manager"}) {
    EXPECT_THAT(problems(read(std::string("roles = ['") + role + "']")), IsEmpty()) << role;
  }
}

TEST(ConfigRoles, ATargetNeedNotStoreAnything) {
  const ConfigReading reading = read("roles = ['target']");
  ASSERT_TRUE(reading.config);
  EXPECT_THAT(problems(reading), IsEmpty());
  EXPECT_FALSE(reading.config->has_log());
}

// Nothing else is said of a file whose roles are wrong: what it lacks depends on them.
TEST(ConfigRoles, EachRuleHasItsMessage) {
  struct Case {
    const char* roles;
    const char* problem;
  };
  const Case cases[] = {
      {"roles = []", "m.toml:2: roles: empty; write roles = [\"standalone\"]"},
      {"roles = 'logger'", "m.toml:2: roles: expected a list of strings, found a string"},
      {"roles = ['boss']",
       "m.toml:2: roles: there is no role \"boss\"; expected \"standalone\", or any of "
       "\"target\", \"logger\", \"storage\" and \"manager\""},
      {"roles = ['remote']", "m.toml:2: roles: the role \"remote\" is not built yet: remove it"},
      {"roles = ['logger', 'logger']", "m.toml:2: roles: \"logger\" stands there twice"},
      {"roles = ['logger', 'standalone']",
       "m.toml:2: roles: \"standalone\" stands alone: it is target, logger and storage in one "
       "process; remove it, or the others"},
  };
  for (const Case& c : cases) {
    const ConfigReading reading = read(c.roles);
    EXPECT_FALSE(reading.config) << c.roles;
    EXPECT_THAT(problems(reading), ElementsAre(c.problem));
  }
}

TEST(ConfigRoles, ALogIsOfLoggersAndStandaloneNodes) {
  EXPECT_THAT(read("roles = ['storage']").config->log.disks, IsEmpty());
  EXPECT_FALSE(read("roles = ['storage']").config->has_log());
  EXPECT_TRUE(read("roles = ['logger']").config->has_log());
  EXPECT_TRUE(parse_config("version = 1\n", "m.toml").config->has_log());
  EXPECT_THAT(read("roles = ['logger']").config->log.disks, ElementsAre("/var/lib/mariner/log0"));
  EXPECT_THAT(read("roles = ['logger']", "[log]\ndisks = ['/dev/vdb']\n").config->log.disks,
              ElementsAre("/dev/vdb"));
}

TEST(ConfigRoles, TheLoggerOfAClusterSlowsNobody) {
  const ConfigReading logger = read("roles = ['logger']", "[log]\non_full = 'throttle'\n");
  EXPECT_FALSE(logger.config);
  EXPECT_THAT(problems(logger),
              ElementsAre(HasSubstr("log: on_full = \"throttle\" is for a standalone server")));
  EXPECT_EQ(
      parse_config("version = 1\n[log]\non_full = 'throttle'\n", "m.toml").config->log.on_full,
      OnFull::kThrottle);
}

TEST(ConfigRoles, SectionsThatANodeDoesNotUse) {
  const std::string sections =
      "[log]\ndisks = ['/dev/vdb']\n[storage]\nlag_max = '1G'\n[index]\nmemory = '1G'\n";
  const ConfigReading logger = read("roles = ['logger']", sections);
  EXPECT_TRUE(logger.config);
  EXPECT_THAT(problems(logger),
              ElementsAre("m.toml:5: warning: storage: not used: this node has not the role "
                          "\"storage\"; add the role, or remove the section"));
  const ConfigReading manager = read("roles = ['manager']", sections);
  EXPECT_TRUE(manager.config);
  EXPECT_THAT(problems(manager),
              ElementsAre(testing::StartsWith(
                              "m.toml:3: warning: log: not used: this node has not the role "
                              "\"logger\""),
                          testing::StartsWith("m.toml:5: warning: storage: not used"),
                          testing::StartsWith("m.toml:7: warning: index: not used")));
  EXPECT_THAT(problems(read("roles = ['storage']", sections)), IsEmpty());
  EXPECT_THAT(problems(read("roles = ['logger', 'storage']", sections)), IsEmpty());
  EXPECT_THAT(problems(parse_config("version = 1\n" + sections, "m.toml")), IsEmpty());
}

TEST(ConfigRoles, AStorageNodeKeepsAJournalWhereItIsSaid) {
  const ConfigReading journal = read("roles = ['storage']", "[log]\ndisks = ['/dev/vdb']\n");
  ASSERT_TRUE(journal.config);
  EXPECT_TRUE(journal.config->has_log());
  EXPECT_EQ(journal.config->log.max_size.bytes, 4ull << 30);
  EXPECT_EQ(journal.config->index.memory.bytes, 64ull << 20);
  EXPECT_EQ(read("roles = ['storage', 'logger']").config->log.max_size.bytes, 8ull << 30);
  EXPECT_EQ(read("roles = ['storage']", "[log]\ndisks = ['/x']\nmax_size = '1G'\n")
                .config->log.max_size.bytes,
            1ull << 30);
  const ConfigReading nowhere =
      read("roles = ['storage']", "[log]\nmax_size = '1G'\n[index]\nmemory = '1G'\n");
  EXPECT_TRUE(nowhere.config);
  EXPECT_FALSE(nowhere.config->has_log());
  EXPECT_THAT(problems(nowhere),
              ElementsAre(HasSubstr("m.toml:3: warning: log: not used: a storage node keeps a "
                                    "journal where [log] disks says"),
                          HasSubstr("m.toml:5: warning: index: not used")));
  EXPECT_THAT(
      problems(read("roles = ['target', 'storage', 'logger']", "[views]\noverlay_max = '1G'\n")),
      ElementsAre(
          HasSubstr("m.toml:3: warning: views: not used: a cluster has no writable views yet")));
}

TEST(ConfigRoles, TagsOfPortalGroupsLeaveRoomForTheNodesNumber) {
  const auto group = [](const std::string& tag) {
    return "[[server.portal_group]]\ntag = " + tag + "\nportals = ['192.0.2.2:3260']\n";
  };
  const std::string roles = "roles = ['target', 'storage']";
  EXPECT_THAT(problems(read(roles, group("16"))), IsEmpty());
  const ConfigReading reading = read(roles, group("17"));
  EXPECT_FALSE(reading.config);
  EXPECT_THAT(problems(reading),
              ElementsAre(HasSubstr("server: there is a portal group 17: in a cluster, expected a "
                                    "tag of 2 to 16")));
  EXPECT_THAT(problems(parse_config("version = 1\n" + group("17"), "m.toml")), IsEmpty());
}

TEST(ConfigRoles, VolumesStandOnTargetsAndManagers) {
  EXPECT_THAT(problems(read("roles = ['target', 'storage']", kVolume)), IsEmpty());
  EXPECT_THAT(problems(read("roles = ['manager', 'logger']", kVolume)), IsEmpty());
  for (const char* roles : {"roles = ['logger']", "roles = ['storage']"}) {
    const ConfigReading reading = read(roles, kVolume);
    EXPECT_FALSE(reading.config);
    EXPECT_THAT(
        problems(reading),
        ElementsAre(HasSubstr("m.toml:3: volume: only on a node with the role \"target\" or "
                              "\"manager\"")));
  }
}

}  // namespace
}  // namespace mariner

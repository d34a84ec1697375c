#include "server/node/config_volume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mariner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Nodes a to c; what follows is a volume, from line 14 on.
constexpr const char* kCluster =
    "version = 1\n"
    "roles = ['target', 'storage']\n"
    "cluster.listen = ['10.0.0.1:9862']\n"
    "cluster.etcd = ['10.0.0.1:2379', '10.0.0.2:2379', '10.0.0.3:2379']\n"
    "cluster.node = [\n"
    "  {id = 1, name = 'a', addresses = ['10.0.0.1:9862']},\n"
    "  {id = 2, name = 'b', addresses = ['10.0.0.2:9862']},\n"
    "  {id = 3, name = 'c', addresses = ['10.0.0.3:9862']},\n"
    "]\n"
    "\n"
    "[[volume]]\n"
    "name = 'db1'\n"
    "size = '1G'\n";

ConfigReading read(const std::string& placement) { return parse_config(kCluster + placement, "m"); }

std::vector<std::string> problems(const ConfigReading& reading) {
  std::vector<std::string> all;
  for (const auto& problem : reading.problems) all.push_back(to_string(problem));
  return all;
}

TEST(ConfigVolume, WhichNodesDoWhat) {
  const ConfigReading reading = read("logger = 'c'\nstorage = ['b', 'a']\npromote = 'manual'\n");
  ASSERT_TRUE(reading.config) << testing::PrintToString(problems(reading));
  EXPECT_THAT(problems(reading), IsEmpty());
  const VolumeConfig& volume = reading.config->volumes.at(0);
  EXPECT_EQ(volume.logger, "c");
  EXPECT_THAT(volume.storage, ElementsAre("b", "a"));
  EXPECT_FALSE(volume.promote);
}

TEST(ConfigVolume, WhoMayServeItNeedNotStoreIt) {
  EXPECT_THAT(read("logger = 'c'\nstorage = ['a', 'b']\n").config->volumes.at(0).targets,
              IsEmpty());
  const ConfigReading reading =
      read("logger = 'c'\nstorage = ['a', 'b']\ntargets = ['c', 'b', 'a']\n");
  ASSERT_TRUE(reading.config) << testing::PrintToString(problems(reading));
  EXPECT_THAT(reading.config->volumes.at(0).targets, ElementsAre("c", "b", "a"));
}

TEST(ConfigVolume, AMulticastGroupOfItsOwn) {
  EXPECT_FALSE(read("logger = 'c'\nstorage = ['a']\n").config->volumes.at(0).group);
  const ConfigReading reading =
      read("logger = 'c'\nstorage = ['a', 'b']\ngroup = '239.192.7.2:6003'\n");
  ASSERT_TRUE(reading.config) << testing::PrintToString(problems(reading));
  EXPECT_EQ(reading.config->volumes.at(0).group, (trm::Group{"239.192.7.2", 6003}));
  EXPECT_THAT(
      problems(read("logger = 'c'\nstorage = ['a', 'b']\ngroup = '10.0.0.1:6003'\n")),
      ElementsAre(HasSubstr("m:16: volume.group: \"10.0.0.1:6003\" is no multicast group")));
}

TEST(ConfigVolume, ALoggerMayBeAStorageToo) {
  const ConfigReading reading = read("logger = 'a'\nstorage = ['a']\npromote = 'auto'\n");
  ASSERT_TRUE(reading.config) << testing::PrintToString(problems(reading));
  const VolumeConfig& volume = reading.config->volumes.at(0);
  EXPECT_EQ(volume.logger, "a");
  EXPECT_THAT(volume.storage, ElementsAre("a"));
  EXPECT_TRUE(volume.promote);
}

TEST(ConfigVolume, OthersTakeOverByThemselvesIfNothingIsSaid) {
  EXPECT_TRUE(read("logger = 'a'\nstorage = ['a', 'b']\n").config->volumes.at(0).promote);
}

TEST(ConfigVolume, HostsAreSentToWhoServesIfThatIsAskedFor) {
  EXPECT_FALSE(read("logger = 'a'\nstorage = ['a']\n").config->volumes.at(0).redirect_to_server);
  const ConfigReading reading = read("logger = 'a'\nstorage = ['a']\nredirect = true\n");
  ASSERT_TRUE(reading.config) << testing::PrintToString(problems(reading));
  EXPECT_TRUE(reading.config->volumes.at(0).redirect_to_server);
  EXPECT_EQ(reading.config->volumes.at(0).redirect, "");
}

TEST(ConfigVolume, WhereRolesAreWrongARedirectionIsNotJudged) {
  for (const char* redirect : {"redirect = true", "redirect = '192.0.2.1:3260'"}) {
    const ConfigReading reading = parse_config(
        std::string("version = 1\nroles = ['tarmac']\n[[volume]]\nname = 'db1'\nsize = '1G'\n") +
            redirect + "\nredirect_permanent = true\n",
        "m");
    EXPECT_THAT(problems(reading), ElementsAre(HasSubstr("tarmac"))) << redirect;
  }
}

TEST(ConfigVolume, EachRuleOfAClusterHasItsMessage) {
  struct Case {
    const char* placement;
    const char* problem;
  };
  const Case cases[] = {
      {"storage = ['a']",
       "m:11: volume.logger: missing: in a cluster a volume needs the name of the node that logs "
       "its writes, as in logger = \"c\""},
      {"logger = 'a'",
       "m:11: volume.storage: missing: in a cluster a volume needs the names of one or two nodes "
       "that keep its image, as in storage = [\"a\", \"b\"]"},
      {"logger = 'cc'\nstorage = ['a']",
       "m:14: volume.logger: there is no [[cluster.node]] \"cc\"; the nearest that exists is "
       "\"c\""},
      {"logger = 'c'\nstorage = ['a', 'bb']",
       "m:15: volume.storage: there is no [[cluster.node]] \"bb\"; the nearest that exists is "
       "\"b\""},
      {"logger = 7\nstorage = ['a']",
       "m:14: volume.logger: expected a string in quotes, found a whole number"},
      {"logger = 'c'\nstorage = []",
       "m:15: volume.storage: expected the names of one or two nodes, found 0"},
      {"logger = 'c'\nstorage = ['a', 'b', 'c']",
       "m:15: volume.storage: expected the names of one or two nodes, found 3"},
      {"logger = 'c'\nstorage = 7",
       "m:15: volume.storage: expected a list of strings, found a whole number"},
      {"logger = 'c'\nstorage = ['a', 'a']", "m:15: volume.storage: \"a\" stands there twice"},
      {"logger = 'c'\nstorage = ['a']\ntargets = []",
       "m:16: volume.targets: empty; expected the names of the nodes that may serve the volume, "
       "the "
       "first of which does rather than the others, as in targets = [\"d\", \"a\"]; without the "
       "key, its storages do"},
      {"logger = 'c'\nstorage = ['a']\ntargets = ['bb']",
       "m:16: volume.targets: there is no [[cluster.node]] \"bb\"; the nearest that exists is "
       "\"b\""},
      {"logger = 'c'\nstorage = ['a']\ntargets = ['a', 'b', 'a']",
       "m:16: volume.targets: \"a\" stands there twice"},
      {"logger = 'c'\nstorage = ['a']\npromote = 'yes'",
       "m:16: volume.promote: expected \"auto\" or \"manual\", found \"yes\""},
      {"logger = 'c'\nstorage = ['a']\npromote = true",
       "m:16: volume.promote: expected a string in quotes, found true or false"},
      {"logger = 'c'\nstorage = ['a']\nredirect = '192.0.2.1:3260'",
       "m:16: volume.redirect: expected true or false, found a string"},
      {"logger = 'c'\nstorage = ['a']\nredirect_permanent = true",
       "m:16: volume.redirect_permanent: not in a cluster: who serves the volume changes; remove "
       "it"},
  };
  for (const Case& c : cases) {
    const ConfigReading reading = read(c.placement);
    EXPECT_FALSE(reading.config) << c.placement;
    EXPECT_THAT(problems(reading), ElementsAre(c.problem));
  }
}

TEST(ConfigVolume, NodesThatAreNotThereAreSaidOnce) {
  const ConfigReading reading = parse_config(
      "version = 1\nroles = ['manager']\n[cluster]\nlisten = ['10.0.0.1:9862']\n"
      "etcd = ['10.0.0.1:2379', '10.0.0.2:2379', '10.0.0.3:2379']\n"
      "[[volume]]\nname = 'db1'\nsize = '1G'\nlogger = 'a'\nstorage = ['b']\n",
      "m");
  EXPECT_THAT(problems(reading), ElementsAre(HasSubstr("m:3: cluster.node: missing")));
}

TEST(ConfigVolume, InAStandaloneNodeThereAreNoOthers) {
  for (const char* key : {"logger = 'a'", "storage = ['a']", "targets = ['a']", "promote = 'auto'",
                          "group = '239.1.1.1:1'"}) {
    const ConfigReading reading = parse_config(
        std::string("version = 1\n[[volume]]\nname = 'db1'\nsize = '1G'\n") + key, "m");
    EXPECT_FALSE(reading.config) << key;
    const std::string name(key, std::string_view(key).find(' '));
    EXPECT_THAT(problems(reading), ElementsAre("m:5: volume." + name +
                                               ": only in a cluster: this node is standalone; "
                                               "remove it, or set the roles"));
  }
}

TEST(ConfigVolume, FaultsOfAVolume) {
  const ConfigReading reading = parse_config(
      "version = 1\nroles = [\"standalone\"]\n[[volume]]\nname = \"db1\"\nsize = \"1G\"\n"
      "[volume.faults]\nread_errors = \"1%\"\nwrite_errors = \"0.5%\"\nwrite_delay = \"10ms\"\n",
      "m.toml");
  ASSERT_TRUE(reading.config);
  ASSERT_TRUE(reading.config->volumes.at(0).faults);
  const FaultConfig& faults = *reading.config->volumes.at(0).faults;
  EXPECT_DOUBLE_EQ(faults.read_errors, 0.01);
  EXPECT_DOUBLE_EQ(faults.write_errors, 0.005);
  EXPECT_EQ(faults.read_delay, std::chrono::nanoseconds(0));
  EXPECT_EQ(faults.write_delay, std::chrono::milliseconds(10));
}

TEST(ConfigVolume, SharesOfFaultsAreChecked) {
  for (const char* share : {"1", "101%", "-1%", "%", "x%", ""}) {
    const ConfigReading reading = parse_config(
        std::string("version = 1\n[[volume]]\nname = \"db1\"\nsize = \"1G\"\n[volume.faults]\n"
                    "read_errors = \"") +
            share + "\"\n",
        "m.toml");
    EXPECT_FALSE(reading.config) << share;
  }
}

}  // namespace
}  // namespace mariner

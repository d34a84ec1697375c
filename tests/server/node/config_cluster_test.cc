#include "server/node/config_cluster.h"

#include <gtest/gtest.h>

namespace mariner {
namespace {

ConfigReading read(const std::string& text) {
  return parse_config("version = 1\nroles = ['standalone']\n" + text, "m.toml");
}

// The first problem, or "".
std::string problem(const std::string& text) {
  const ConfigReading reading = read(text);
  return reading.problems.empty() ? "" : to_string(reading.problems.front());
}

TEST(ConfigCluster, WhatIsWritten) {
  const ConfigReading reading = read("[cluster]\npki = '/x/pki'\nenrol = '192.0.2.1:9861'\n");
  ASSERT_TRUE(reading.config) << to_string(reading.problems.front());
  EXPECT_EQ(reading.config->cluster.pki, "/x/pki");
  ASSERT_TRUE(reading.config->cluster.enrol);
  EXPECT_EQ(to_string(*reading.config->cluster.enrol), "192.0.2.1:9861");
}

TEST(ConfigCluster, WithoutItThereIsAFolderAndNoEnrolment) {
  const ConfigReading reading = read("[server]\nstate_dir = '/var/x'\n");
  ASSERT_TRUE(reading.config);
  EXPECT_EQ(reading.config->cluster.pki, "/var/x/pki");
  EXPECT_FALSE(reading.config->cluster.enrol);
}

TEST(ConfigCluster, WhereNobodyCanConnectTo) {
  for (const auto* address : {"0.0.0.0:9861", "[::]:9861", "192.0.2.1:0"}) {
    const std::string found = problem(std::string("[cluster]\nenrol = '") + address + "'\n");
    EXPECT_NE(found.find("m.toml:4: cluster.enrol: "), std::string::npos) << found;
    EXPECT_NE(found.find("not where other nodes can connect to"), std::string::npos) << found;
  }
  EXPECT_NE(problem("[cluster]\nenrol = 'host'\n").find("there is no port"), std::string::npos);
}

TEST(ConfigCluster, WrongPathsAndUnknownKeys) {
  EXPECT_NE(problem("[cluster]\npki = 'pki'\n").find("not an absolute path"), std::string::npos);
  EXPECT_NE(problem("[cluster]\nenroll = '192.0.2.1:9861'\n").find("enrol"), std::string::npos);
}

}  // namespace
}  // namespace mariner

#include "server/node/config_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/support/source_folder.h"

namespace mariner {
namespace {

using ::testing::Contains;
using ::testing::Field;

std::string value_of(const Config& config, const std::string& key) {
  for (const ConfigKey& each : config_keys(config)) {
    if (each.key == key) return each.value;
  }
  return "";
}

Config parsed(const std::string& text) {
  const ConfigReading reading = parse_config(text, "file");
  EXPECT_TRUE(reading.config) << (reading.problems.empty() ? "" : to_string(reading.problems[0]));
  return reading.config.value_or(Config{});
}

TEST(ConfigKeys, ValuesStandAsInTheFile) {
  const Config config = parsed(
      "version = 1\n[server]\nportals = [\"192.0.2.1:3260\", \"[2001:db8::1]:3260\"]\n"
      "http = \"\"\nbusy_poll = \"50us\"\nsocket_threads = \"2\"\n"
      "[auth.host1]\nsecret_file = \"/etc/a \\\"b\\\"\"\n"
      "[log]\ndisks = [\"/log0\"]\nmax_size = \"1536M\"\ncompact_cpu = \"12.5%\"\n"
      "scrub_rate = \"4M\"\n"
      "[[volume]]\nname = \"db1\"\nsize = \"8M\"\nretain = \"hourly=24\"\nauth = \"host1\"\n"
      "[volume.faults]\nread_errors = \"1%\"\n");
  EXPECT_EQ(value_of(config, "roles"), "[\"standalone\"]");
  EXPECT_EQ(value_of(config, "server.portals"), "[\"192.0.2.1:3260\", \"[2001:db8::1]:3260\"]");
  EXPECT_EQ(value_of(config, "server.http"), "\"\"");
  EXPECT_EQ(value_of(config, "server.busy_poll"), "\"50us\"");
  EXPECT_EQ(value_of(Config{}, "server.busy_poll"), "\"auto\"");
  EXPECT_EQ(value_of(config, "server.socket_threads"), "\"2\"");
  EXPECT_EQ(value_of(config, "server.socket_threads_load"), "\"90%\"");
  EXPECT_EQ(value_of(config, "auth.host1.secret_file"), "\"/etc/a \\\"b\\\"\"");
  EXPECT_EQ(value_of(config, "log.max_size"), "\"1536M\"");
  EXPECT_EQ(value_of(config, "log.compact_cpu"), "\"12.5%\"");
  EXPECT_EQ(value_of(config, "log.scrub_rate"), "\"4M\"");
  EXPECT_EQ(value_of(config, "volume.db1.retain"), "\"hourly=24\"");
  EXPECT_EQ(value_of(config, "volume.db1.auth"), "[\"host1\"]");
  EXPECT_EQ(value_of(config, "volume.db1.faults.read_errors"), "\"1%\"");
  EXPECT_EQ(value_of(config, "volume.db1.redirect"), "") << "there is none";
  EXPECT_EQ(value_of(config, "volume.db1.logger"), "") << "only in a cluster";
  EXPECT_EQ(value_of(config, "cluster.lease"), "") << "the same";
  EXPECT_THAT(config_keys(config), Contains(Field(&ConfigKey::volume, "db1")));
}

TEST(ConfigKeys, OfTheClustersConfigurationThatIsDeployed) {
  const ConfigReading reading = load_config(test::source_path("deploy/marinerd-cluster.toml"));
  ASSERT_TRUE(reading.config);
  const Config& config = *reading.config;
  EXPECT_EQ(value_of(config, "cluster.node.b.addresses"), "[\"10.0.0.2:9862\"]");
  EXPECT_EQ(value_of(config, "cluster.logger_patience"), "\"3s\"");
  EXPECT_EQ(value_of(config, "replication.mode"), "\"unicast\"");
  EXPECT_EQ(value_of(config, "volume.db1.storage"), "[\"a\", \"b\"]");
  EXPECT_EQ(value_of(config, "volume.db1.promote"), "\"auto\"");
  EXPECT_EQ(value_of(config, "volume.db1.redirect"), "false");
}

// The file as it is deployed names each key of a standalone server, as it is or behind a "#".
TEST(ConfigKeys, NoneIsMissingThatTheDeployedFileNames) {
  std::ifstream file(test::source_path("deploy/marinerd.toml"));
  std::ostringstream text;
  text << file.rdbuf();
  // What the file has commented out, in force: all that can be set.
  std::istringstream lines(text.str());
  std::string section;
  std::size_t looked_at = 0;
  Config config;
  config.log.disks = {"/log0"};
  config.auth.push_back({"host1", "host1", "/a", "mariner", "/b"});
  config.server.portal_groups.push_back({2, {{"192.0.2.1", 3260, false}}});
  config.views.overlay_max = ByteSize{1};
  config.index.file = "/index";
  config.cluster.pki = "/pki";
  config.cluster.enrol.emplace();
  VolumeConfig& volume = config.volumes.emplace_back();
  volume.name = "db1";
  volume.redirect = "192.0.2.9:3260";
  volume.retain = *parse_retention("hourly=24");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# ")) line = line.substr(2);
    if (line.starts_with("[")) {
      section = line.substr(line.find_first_not_of('['));
      section = section.substr(0, section.find(']'));
      if (section == "server.portal_group") section += ".2";
      if (section == "volume") section += ".db1";
      continue;
    }
    const std::string key = line.substr(0, line.find_first_of(" ="));
    const auto equals = line.find_first_not_of(' ', key.size());
    if (key.empty() || equals == line.npos || line[equals] != '=') continue;
    if (key == "version" || key == "name" || key == "tag") continue;  // what a section is called by
    const std::string whole = section.empty() ? key : section + "." + key;
    EXPECT_NE(value_of(config, whole), "") << whole;
    ++looked_at;
  }
  EXPECT_GT(looked_at, 40u);
}

TEST(ConfigKeys, ExactSizesAreReadBack) {
  EXPECT_EQ(exact_size(ByteSize{0}), "0");
  EXPECT_EQ(exact_size(ByteSize{4097}), "4097");
  EXPECT_EQ(exact_size(ByteSize{1536u << 20}), "1536M");
  EXPECT_EQ(exact_size(ByteSize{1ull << 60}), "1024P");
  EXPECT_TRUE(rc::check("parse_size(exact_size(n)) is n", [](std::uint64_t n, std::uint8_t shift) {
    const ByteSize size{n >> 20 << (shift % 20)};
    RC_ASSERT(parse_size(exact_size(size)).value() == size);
  }));
}

}  // namespace
}  // namespace mariner

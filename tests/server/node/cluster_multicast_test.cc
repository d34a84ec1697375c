#include "server/node/cluster_multicast.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "tests/server/node/cluster_node_fixture.h"

namespace mariner::node {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// Nodes a and b store the volume, c logs it; they multicast by the loopback interface.
class ClusterMulticastTest : public testing::ClusterNodeFixture {
 protected:
  static constexpr std::size_t kLogs = 2;
  ClusterMulticastTest()
      : ClusterNodeFixture({{"a", {Role::kTarget, Role::kStorage}},
                            {"b", {Role::kTarget, Role::kStorage}},
                            {"c", {Role::kLogger}}}) {
    for (std::size_t member = 0; member < 3; ++member) {
      config(member).replication = {
          .multicast = true,
          .group = {"239.192.44.11", static_cast<std::uint16_t>(20'000 + getpid() % 20'000)},
          .interface = "127.0.0.1"};
    }
  }
  void begin() {
    configure_volume(0, "c", {"a", "b"});
    config(0).volumes.front().targets = {"a"};
    for (const std::size_t member : {2, 1, 0}) start(member);
    ASSERT_TRUE(comes_to_serve());
  }
  // How the node's writes come: "" is not known.
  std::string way_to(const std::string& name) {
    const api::ReplicatedVolume volume = node().replicas(kVolume);
    for (const api::Replica& replica : volume.replicas()) {
      if (replica.node() == name) return replica.payloads();
    }
    return "no such node";
  }
  std::vector<std::string> findings() {
    std::vector<std::string> all;
    const Result<api::DoctorAnswer> answer = node().ask(&ClusterControl::doctor);
    for (const api::Finding& finding : answer->findings()) {
      if (finding.check() != "multicast") continue;
      all.push_back(finding.level() + ": " + finding.found() + "; " + finding.advice());
    }
    return all;
  }
  std::string metrics(std::size_t member = 0) {
    return node(member).on_loop(
        [](ClusterNode& each) { return web::metrics_text(each.metrics()); });
  }
};

TEST_F(ClusterMulticastTest, WritesGoByMulticastAndEverybodyIsToldSo) {
  begin();
  ASSERT_TRUE(
      eventually([this] { return way_to("b") == "multicast" && way_to("c") == "multicast"; }));
  EXPECT_EQ(way_to("a"), "") << "itself";
  const std::string before = metrics();
  EXPECT_THAT(before, HasSubstr("mariner_multicast_payload_bytes_total{way=\"multicast\"} 0\n"));
  for (int i = 0; i < 4; ++i) write(static_cast<std::uint64_t>(i), 'x');
  EXPECT_EQ(read(3), 'x');
  const std::string after = metrics();
  EXPECT_THAT(after, HasSubstr("mariner_multicast_payload_bytes_total{way=\"multicast\"} 16384\n"));
  EXPECT_THAT(after, HasSubstr("mariner_multicast_admitted{volume=\"db1\",replica=\"b\"} 1\n"));
  EXPECT_THAT(after, HasSubstr("mariner_multicast_admitted{volume=\"db1\",replica=\"c\"} 1\n"));
  EXPECT_THAT(after, HasSubstr("mariner_multicast_repairs_total{replica=\"b\"} "));
  EXPECT_THAT(after,
              HasSubstr("mariner_multicast_dismissals_total{replica=\"c\",reason=\"deaf\"} 0\n"));
  EXPECT_EQ(told("writes to a node go by multicast"), 2u);
  EXPECT_EQ(findings(),
            std::vector<std::string>{"ok: nobody who is connected has been without it for long; "});
}

TEST_F(ClusterMulticastTest, WhoCannotListenGetsItsWritesAllTheSameAndIsNamed) {
  config(kLogs).replication.interface = "192.0.2.77";
  begin();
  ASSERT_TRUE(eventually([this] { return told("not by multicast") == 1; }));
  EXPECT_EQ(way_to("c"), "connection");
  write(1, 'x');
  EXPECT_EQ(read(1), 'x');
  ASSERT_TRUE(eventually([this] {
    return metrics().find("mariner_multicast_admitted{volume=\"db1\",replica=\"b\"} 1\n") !=
           std::string::npos;
  }));
  EXPECT_EQ(way_to("b"), "connection") << "alone it shares with nobody";
  EXPECT_THAT(metrics(), HasSubstr("mariner_multicast_payload_bytes_total{way=\"multicast\"} 0\n"));
  ASSERT_TRUE(eventually([this] { return findings().at(0).starts_with("warning"); }));
  EXPECT_THAT(findings().at(0), HasSubstr("node c has had no multicast of group 239.192.44.11:"));
  EXPECT_THAT(findings().at(0), HasSubstr("192.0.2.77"));
  EXPECT_THAT(findings().at(0), HasSubstr("look at node c"));
}

TEST_F(ClusterMulticastTest, ANodeWithoutAnInterfaceServesAndSaysSo) {
  config(0).replication.interface = "192.0.2.77";
  begin();
  write(1, 'x');
  EXPECT_EQ(read(1), 'x');
  EXPECT_EQ(way_to("b"), "");
  EXPECT_EQ(told("no interface of this node has address 192.0.2.77"), 1u);
  EXPECT_THAT(findings(), Contains(HasSubstr("cannot be used")));
}

TEST_F(ClusterMulticastTest, OnlyTheTargetNeedsToBeConfigured) {
  for (const std::size_t member : {1, 2}) config(member).replication = {.interface = "127.0.0.1"};
  begin();
  ASSERT_TRUE(
      eventually([this] { return way_to("b") == "multicast" && way_to("c") == "multicast"; }));
  write(1, 'x');
  EXPECT_EQ(read(1), 'x');
}

TEST_F(ClusterMulticastTest, ByUnicastNothingIsShownOrSaid) {
  config(0).replication.multicast = false;
  begin();
  write(1, 'x');
  EXPECT_EQ(way_to("b"), "");
  EXPECT_TRUE(findings().empty());
  EXPECT_EQ(told("multicast"), 0u);
}

TEST(ClusterMulticast, WhatIsConfiguredIsWhatTheBusIsTold) {
  const auto options = ClusterMulticast::options_of(
      {.rate_limit_bits = 800'000'000, .interface = "192.0.2.1", .encrypt = false});
  EXPECT_EQ(options.interface, "192.0.2.1");
  EXPECT_EQ(options.bytes_per_second_max, 1e8);
  EXPECT_FALSE(options.encrypted);
  EXPECT_FALSE(options.to_own_machine);
  const auto others = ClusterMulticast::options_of({.interface = "127.0.0.1"});
  EXPECT_FALSE(others.bytes_per_second_max.has_value()) << "as fast as they take it";
  EXPECT_TRUE(others.encrypted);
  EXPECT_TRUE(others.to_own_machine);
}

TEST_F(ClusterMulticastTest, AVolumeMayHaveAGroupOfItsOwn) {
  const ReplicationConfig replication{.multicast = true, .group = {"239.192.7.1", 6003}};
  testing::LoopThread loop;
  testing::LogFile log(path("log.txt"));
  const ClusterMulticast multicast(replication, loop.loop(), log.log());
  const trm::Group own{"239.192.7.2", 6003};
  const std::vector<VolumeConfig> volumes{{.name = "db1"}, {.name = "db2", .group = own}};
  EXPECT_EQ(multicast.group_of("db1", volumes), replication.group);
  EXPECT_EQ(multicast.group_of("db2", volumes), own);
  EXPECT_EQ(multicast.group_of("db3", volumes), replication.group);
  const ReplicationConfig unicast;
  EXPECT_FALSE(ClusterMulticast(unicast, loop.loop(), log.log()).group_of("db2", volumes));
}

}  // namespace
}  // namespace mariner::node

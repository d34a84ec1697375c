#include "server/node/cluster_node.h"

#include <gmock/gmock.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <fstream>

#include "server/manager/alive_node.h"
#include "tests/server/node/cluster_node_fixture.h"

namespace mariner::node {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

class ClusterNodeTest : public testing::ClusterNodeFixture {
 protected:
  // Of a node that runs.
  std::string unready() {
    const Result<void> ready = node().on_loop([](ClusterNode& node) { return node.readiness(); });
    return ready ? "" : ready.error().message;
  }
  // The first byte of a block of the image.
  char in_image(std::uint64_t block) const {
    std::ifstream image(path("state/images/1.raw"), std::ios::binary);
    image.seekg(static_cast<std::streamoff>(block * kBlockBytes));
    return static_cast<char>(image.get());
  }
};

TEST_F(ClusterNodeTest, AConfiguredVolumeIsCreatedServedAndThereAgainAfterARestart) {
  configure_volume(0, "a", {"a"});
  start();
  ASSERT_TRUE(comes_to_serve());
  EXPECT_EQ(read(7), '\0');
  write(7, 'x');
  EXPECT_EQ(read(7), 'x');
  const api::Volume before = *node().show(kVolume);
  const std::uint64_t epoch = node().replicas(kVolume).epoch();
  stop();

  start();
  ASSERT_TRUE(comes_to_serve());
  EXPECT_EQ(read(7), 'x');
  write(8, 'y');
  EXPECT_EQ(read(8), 'y');
  EXPECT_TRUE(eventually([&] { return node().replicas(kVolume).epoch() > epoch; }));
  EXPECT_EQ(node().show(kVolume)->serial(), before.serial());
  EXPECT_EQ(node().ask(&ClusterControl::volume_list)->volumes_size(), 1);
  EXPECT_EQ(told("created a volume of the cluster"), 1u);
  EXPECT_EQ(get("/mariner/last-volume"), "1");
}

// Each waits for the one before, and merges its bytes with what that has left.
TEST_F(ClusterNodeTest, WritesOfPartsOfOneBlockBehindEachOtherAllCount) {
  configure_volume(0, "a", {"a"});
  start();
  ASSERT_TRUE(comes_to_serve());
  for (char round = 'a'; round <= 'z'; ++round) {
    EXPECT_EQ(node().client(0).write_parts(kIqn, 4, round), 8u);
    EXPECT_EQ(read(4), round);
  }
}

TEST_F(ClusterNodeTest, ACertificateOfANodeThatIsNotConfiguredIsRefusedByName) {
  ASSERT_TRUE(peer::PkiFolder(path("other")).store(authority().node("zebra")));
  config().cluster.pki = path("other");
  const std::string message = refusal();
  EXPECT_THAT(message, HasSubstr("zebra"));
  EXPECT_THAT(message, HasSubstr("no [[cluster.node]] of that name"));
}

TEST_F(ClusterNodeTest, WhereSomebodyElseListensItIsRefusedAndStartsLater) {
  configure_volume(0, "a", {"a"});
  {
    boost::asio::io_context context;
    const Endpoint& wanted = config().cluster.listen.front();
    const boost::asio::ip::tcp::acceptor other(
        context, {boost::asio::ip::make_address(wanted.address), wanted.port});
    // (A log that is being prepared was never in the way of that.)
    for (int i = 0; i < 3; ++i) EXPECT_THAT(refusal(), HasSubstr(std::to_string(wanted.port)));
  }
  start();
  ASSERT_TRUE(comes_to_serve());
  write(3, 'b');
  EXPECT_EQ(read(3), 'b');
}

TEST_F(ClusterNodeTest, WithoutACertificateItSaysWhereOneIsMissing) {
  config().cluster.pki = path("none");
  EXPECT_THAT(refusal(), HasSubstr(path("none")));
}

TEST_F(ClusterNodeTest, TheStateDirectoryOfAStandaloneServerIsRefused) {
  ASSERT_TRUE(std::filesystem::create_directory(path("state")));
  {
    const auto store = MetaStore::open(path("state/store"));
    ASSERT_TRUE(store);
    meta::Volume volume;
    volume.set_id(1);
    volume.set_name("accounts");
    ASSERT_TRUE((*store)->put_volume(volume));
  }
  const std::string message = refusal();
  EXPECT_THAT(message, HasSubstr("accounts of a standalone server"));
  EXPECT_THAT(message, HasSubstr("state_dir"));
}

TEST_F(ClusterNodeTest, IsReadyWhileTheClustersStoreAnswers) {
  configure_volume(0, "a", {"a"});
  start();
  ASSERT_TRUE(comes_to_serve());
  write(3, 'b');
  EXPECT_EQ(unready(), "");
  const std::uint64_t epoch = node().replicas(kVolume).epoch();

  etcd().kill(0);
  ASSERT_TRUE(eventually([&] { return !unready().empty(); }));
  EXPECT_EQ(unready(), "the cluster's store does not answer");
  EXPECT_TRUE(node().on_loop([](ClusterNode& node) { return node.health(); }))
      << "a restart would not help";
  EXPECT_FALSE(node().serves(kVolume));
  EXPECT_FALSE(read(3)) << "another node may coordinate by now";
  EXPECT_NE(node().client(0).write(kIqn, 3, 'c').status, scsi::Status::kGood);
  EXPECT_FALSE(node().ask(&ClusterControl::cluster_status)->store_answers());
  EXPECT_TRUE(eventually([&] { return told("this node's lease has ended") == 1; }));

  etcd().start(0);
  ASSERT_TRUE(comes_to_serve());
  EXPECT_EQ(unready(), "");
  EXPECT_EQ(read(3), 'b');
  EXPECT_TRUE(eventually([&] { return node().replicas(kVolume).epoch() > epoch; }));
}

TEST_F(ClusterNodeTest, StartsWithoutTheClustersStoreAndServesWhenItComes) {
  configure_volume(0, "a", {"a"});
  start();
  ASSERT_TRUE(comes_to_serve());
  write(3, 'b');
  stop();
  etcd().kill(0);
  start();
  EXPECT_EQ(unready(), "the cluster's store does not answer");
  EXPECT_EQ(node().state_of(kVolume), "transitioning");
  etcd().start(0);
  ASSERT_TRUE(comes_to_serve());
  EXPECT_EQ(read(3), 'b');
}

TEST_F(ClusterNodeTest, StopsWithWhatWasAppliedInTheImageAndItsLeaseGivenBack) {
  configure_volume(0, "a", {"a"});
  start();
  ASSERT_TRUE(comes_to_serve());
  const auto alive = manager::decode_alive_node(get("/mariner/alive/1").value_or(""));
  ASSERT_TRUE(alive);
  EXPECT_EQ(alive->name, "a");
  EXPECT_TRUE(alive->target);
  ASSERT_EQ(alive->portals.size(), 1u);
  EXPECT_EQ(to_string(alive->portals[0]), node().ask(&ClusterControl::status)->portals(0));
  for (std::uint64_t block = 0; block < 32; ++block) write(block, static_cast<char>('A' + block));
  ASSERT_TRUE(eventually([&] { return node().show(kVolume)->unapplied_bytes() == 0; }));
  stop();
  for (std::uint64_t block = 0; block < 32; ++block) {
    EXPECT_EQ(in_image(block), static_cast<char>('A' + block)) << block;
  }
  EXPECT_FALSE(get("/mariner/alive/1")) << "others would wait for its end";
}

TEST_F(ClusterNodeTest, WhatTheImageLacksAtAStopComesFromTheHistory) {
  configure_volume(0, "a", {"a"});
  config().storage.apply_delay = std::chrono::hours(1);
  start();
  ASSERT_TRUE(comes_to_serve());
  for (std::uint64_t block = 0; block < 32; ++block) write(block, static_cast<char>('A' + block));
  stop();
  EXPECT_EQ(in_image(31), '\0') << "a stop does not wait for the image";
  config().storage.apply_delay = std::chrono::milliseconds(5);
  start();
  ASSERT_TRUE(comes_to_serve());
  for (std::uint64_t block = 0; block < 32; ++block) {
    EXPECT_EQ(read(block), static_cast<char>('A' + block)) << block;
  }
  EXPECT_TRUE(eventually([&] { return in_image(31) == static_cast<char>('A' + 31); }));
}

TEST_F(ClusterNodeTest, StopsWhileTheClustersStoreIsGone) {
  configure_volume(0, "a", {"a"});
  start();
  ASSERT_TRUE(comes_to_serve());
  write(3, 'b');
  etcd().kill(0);
  stop();
  EXPECT_EQ(told(" stopped"), 1u);
}

TEST_F(ClusterNodeTest, AVolumeThatAReloadBringsIsCreated) {
  start();
  ASSERT_TRUE(eventually([&] { return unready().empty(); }));
  configure_volume(0, "a", {"a"});
  const Config changed = config();
  EXPECT_TRUE(node().on_loop([&](ClusterNode& node) { return node.reload(changed); }));
  ASSERT_TRUE(comes_to_serve());
}

class ClusterOfThree : public testing::ClusterNodeFixture {
 protected:
  ClusterOfThree()
      : ClusterNodeFixture({{"a", {Role::kTarget, Role::kStorage}},
                            {"b", {Role::kTarget, Role::kStorage}},
                            {"c", {Role::kLogger}}}) {
    for (const std::size_t member : {0, 1}) configure_volume(member, "c", {"a", "b"});
  }
  void start_all() {
    for (const std::size_t member : {2, 0, 1}) start(member);
  }
};

TEST_F(ClusterOfThree, AnotherNodeTakesOverWithEverythingThatWasWritten) {
  start_all();
  ASSERT_TRUE(eventually([&] { return node(0).serves(kVolume) || node(1).serves(kVolume); }));
  const std::size_t first = node(0).serves(kVolume) ? 0 : 1;
  const std::size_t second = 1 - first;
  for (std::uint64_t block = 0; block < 20; ++block) {
    write(block, static_cast<char>('A' + block), first);
  }
  EXPECT_TRUE(eventually([&] { return node(second).state_of(kVolume) == "standby"; }));
  EXPECT_FALSE(read(0, second));
  EXPECT_EQ(node(2).state_of(kVolume), "elsewhere");

  const std::uint64_t epoch = node(second).replicas(kVolume).epoch();
  stop(first);
  ASSERT_TRUE(comes_to_serve(second));
  for (std::uint64_t block = 0; block < 20; ++block) {
    EXPECT_EQ(read(block, second), static_cast<char>('A' + block)) << block;
  }
  write(0, 'z', second);
  EXPECT_TRUE(eventually([&] { return node(second).replicas(kVolume).epoch() > epoch; }));

  start(first);
  ASSERT_TRUE(eventually([&] { return node(first).state_of(kVolume) == "standby"; }));
  stop(second);
  ASSERT_TRUE(comes_to_serve(first));
  EXPECT_EQ(read(0, first), 'z');
}

TEST_F(ClusterOfThree, WithoutItsLoggerAVolumeWaits) {
  start_all();
  ASSERT_TRUE(eventually([&] { return node(0).serves(kVolume) || node(1).serves(kVolume); }));
  const std::size_t serving = node(0).serves(kVolume) ? 0 : 1;
  write(5, 'v', serving);
  stop(2);
  start(2);
  ASSERT_TRUE(eventually([&] { return read(5, serving) == 'v'; }));
  write(6, 'w', serving);
  EXPECT_EQ(read(6, serving), 'w');
}

TEST_F(ClusterOfThree, OnlyOneOfThemCreatesAVolumeThatTwoConfigure) {
  start_all();
  ASSERT_TRUE(eventually([&] { return node(0).serves(kVolume) || node(1).serves(kVolume); }));
  EXPECT_EQ(told("created a volume of the cluster", 0) + told("created a volume of the cluster", 1),
            1u);
  EXPECT_EQ(told(" ERROR ", 0) + told(" ERROR ", 1) + told(" ERROR ", 2), 0u);
}

// The logger alone.
class ClusterForecastTest : public testing::ClusterNodeFixture {
 protected:
  ClusterForecastTest()
      : ClusterNodeFixture({{"a", {Role::kTarget, Role::kStorage}}, {"c", {Role::kLogger}}}) {}
  // As the metrics of the logger have it.
  std::optional<std::chrono::seconds> short_in() {
    const web::NodeMetrics metrics =
        node(1).on_loop([](ClusterNode& logger) { return logger.metrics(); });
    return metrics.volumes.empty() ? std::nullopt : metrics.volumes[0].window_short_in;
  }
};

TEST_F(ClusterForecastTest, TheLoggerForeseesThatItsLogWillBeTooSmall) {
  configure_volume(0, "c", {"a"});
  config(0).volumes[0].window = 24h;
  start(1);
  start(0);
  ASSERT_TRUE(comes_to_serve());
  EXPECT_EQ(short_in(), std::nullopt) << "no rate is known yet";
  std::uint64_t writes = 0;
  ASSERT_TRUE(eventually([&] {
    write(writes % 16, static_cast<char>('a' + writes % 26));
    ++writes;
    return short_in().has_value();
  }));
  EXPECT_TRUE(node(1).show(kVolume)->has_outlook());
  EXPECT_FALSE(node(0).show(kVolume)->has_outlook()) << "it has no log";
  EXPECT_GT(told("the log will be too small for a window", 1), 0u);
}

}  // namespace
}  // namespace mariner::node

#include "server/node/node.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "tests/server/node/node_fixture.h"
#include "tests/server/web/raw_client.h"

namespace mariner::node {
namespace {

constexpr const char* kFriend = "iqn.2026-11.org.example:friend";
constexpr const char* kStranger = "iqn.2026-11.org.example:stranger";

VolumeConfig volume_for(const std::string& name, std::vector<std::string> acl) {
  VolumeConfig volume;
  volume.name = name;
  volume.size = kVolumeSizeMin;
  volume.acl = std::move(acl);
  return volume;
}

// A TCP port of the loopback that nobody uses at the moment.
std::uint16_t free_port() {
  boost::asio::io_context context;
  using boost::asio::ip::tcp;
  return tcp::acceptor(context, {boost::asio::ip::address_v4::loopback(), 0})
      .local_endpoint()
      .port();
}

class NodeTest : public testing::NodeFixture {
 protected:
  void restart() {
    stop();
    start();
  }
  std::vector<std::string> discoverable(const char* initiator) {
    return on_loop([&] { return node().discoverable(initiator, ""); });
  }
  // Success, or why not.
  Result<void> open(const std::string& target, const char* initiator) {
    return on_loop([&]() -> Result<void> {
      Result<std::shared_ptr<scsi::TargetDevice>> device = node().open(target, initiator);
      if (!device) return device.error();
      return {};
    });
  }
  Result<void> start_another(const Config& config) {
    EventLoop loop;
    Node other(config, path("other.toml"), loop, log());
    return other.start();
  }
};

TEST_F(NodeTest, AnAccessListDecidesWhoSeesAndOpens) {
  config().volumes = {volume_for("open", {}), volume_for("closed", {kFriend})};
  restart();
  const std::string closed = "iqn.2026-11.org.example:closed";
  EXPECT_EQ(discoverable(kFriend).size(), 2u);
  EXPECT_EQ(discoverable(kStranger), std::vector<std::string>{"iqn.2026-11.org.example:open"});
  EXPECT_TRUE(open(closed, kFriend));
  EXPECT_EQ(open(closed, kStranger).error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(open("iqn.2026-11.org.example:open", kStranger));

  api::ExposeRequest expose;
  expose.set_volume("closed");
  const Result<api::View> view = ask(&NodeControl::view_expose, expose);
  ASSERT_TRUE(view);
  EXPECT_EQ(discoverable(kFriend).size(), 3u);
  EXPECT_EQ(discoverable(kStranger).size(), 1u);
  EXPECT_TRUE(open(view->iqn(), kFriend));
  EXPECT_EQ(open(view->iqn(), kStranger).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(NodeTest, AnUnknownTarget) {
  EXPECT_EQ(open("iqn.2026-11.org.example:none", kFriend).error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(discoverable(kFriend).empty());
}

TEST_F(NodeTest, AReloadChangesAccessListsAndAddsVolumes) {
  config().volumes = {volume_for("db1", {kFriend})};
  restart();
  const std::string db1 = "iqn.2026-11.org.example:db1";
  EXPECT_FALSE(open(db1, kStranger));
  config().volumes = {volume_for("db1", {kStranger}), volume_for("db2", {})};
  EXPECT_TRUE(on_loop([&] { return node().reload(config()); }));
  EXPECT_TRUE(open(db1, kStranger));
  EXPECT_FALSE(open(db1, kFriend));
  EXPECT_EQ(discoverable(kFriend), std::vector<std::string>{"iqn.2026-11.org.example:db2"});
}

TEST_F(NodeTest, AReloadAndAStartGrowDeclaredVolumesAndNoCommandDoes) {
  config().volumes = {volume_for("db1", {})};
  restart();
  api::VolumeRequest named;
  named.set_name("db1");
  const auto has = [&](std::uint64_t bytes) {
    return eventually([&] { return ask(&NodeControl::volume_show, named)->size_bytes() == bytes; });
  };
  const std::uint64_t size = kVolumeSizeMin.bytes;
  EXPECT_TRUE(has(size));
  config().volumes[0].size.bytes = 2 * size;
  EXPECT_TRUE(on_loop([&] { return node().reload(config()); }));
  EXPECT_TRUE(has(2 * size));
  config().volumes[0].size.bytes = 3 * size;
  restart();
  EXPECT_TRUE(has(3 * size));
  config().volumes[0].size.bytes = size;
  EXPECT_TRUE(on_loop([&] { return node().reload(config()); }));
  restart();
  EXPECT_TRUE(has(3 * size)) << "a volume never shrinks";
  api::ResizeRequest request;
  request.set_name("db1");
  request.set_size_bytes(4 * size);
  const Result<api::Volume> refused = ask(&NodeControl::volume_resize, request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kReadOnly);
  EXPECT_NE(refused.error().message.find("marinerd.toml"), std::string::npos);
}

TEST_F(NodeTest, WhatWasWrittenIsThereAfterARestart) {
  const api::Volume before = create("db1");
  ASSERT_EQ(write(before.iqn(), 7, 'x'), scsi::Status::kGood);
  const std::uint64_t epoch = ask(&NodeControl::status)->epoch();
  restart();
  EXPECT_EQ(read(before.iqn(), 7), 'x');
  EXPECT_GT(ask(&NodeControl::status)->epoch(), epoch);
  const Result<api::VolumeList> list = ask(&NodeControl::volume_list);
  ASSERT_EQ(list->volumes_size(), 1);
  EXPECT_EQ(list->volumes(0).serial(), before.serial());
}

TEST_F(NodeTest, HealthReadinessAndMetrics) {
  const api::Volume volume = create("db1");
  ASSERT_EQ(write(volume.iqn(), 0, 'x'), scsi::Status::kGood);
  const auto session = log_in(volume.iqn());
  EXPECT_TRUE(on_loop([&] { return node().health(); }));
  EXPECT_TRUE(on_loop([&] { return node().readiness(); }));
  on_loop([&] {
    const web::NodeMetrics metrics = node().metrics();
    ASSERT_EQ(metrics.volumes.size(), 1u);
    EXPECT_EQ(metrics.volumes[0].volume, "db1");
    EXPECT_EQ(metrics.volumes[0].oldest_recoverable->ns, volume.oldest().time_ns());
    EXPECT_EQ(metrics.iscsi_sessions, 1u);
    EXPECT_GT(metrics.log_used_bytes, 0u);
    EXPECT_LT(metrics.log_used_bytes, metrics.log_limit_bytes);
    EXPECT_EQ(metrics.clock_steps, 0u);
    EXPECT_NE(web::metrics_text(metrics).find("db1"), std::string::npos);
  });
}

TEST_F(NodeTest, ServesInitiatorsTheAdminApiAndTheWeb) {
  config().server.http = Endpoint{"127.0.0.1", free_port(), false};
  restart();
  log_in(create("db1").iqn())->use();
  const web::RawClient admin(config().server.admin_socket);
  admin.send("GET /v1/status HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(admin.receive().starts_with("HTTP/1.1 200 OK\r\n"));
  const web::RawClient web(config().server.http->port);
  web.send("GET /readyz HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(web.receive().starts_with("HTTP/1.1 200 OK\r\n"));
}

TEST_F(NodeTest, AStoppingNodeRefusesWork) {
  const std::string target = create("db1").iqn();
  const auto promise = std::make_shared<std::promise<void>>();
  on_loop([&] {
    node().stop([promise] { promise->set_value(); });
    EXPECT_EQ(node().open(target, kFriend).error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(node().readiness().error().code, ErrorCode::kUnavailable);
    EXPECT_TRUE(node().health());
  });
  ASSERT_EQ(promise->get_future().wait_for(testing::LoopThread::kPatience),
            std::future_status::ready);
  stopped();
}

TEST_F(NodeTest, AnInitiatorThatDoesNotLogOutDoesNotHoldAStopUp) {
  const auto session = log_in(create("db1").iqn());
  const auto begun = std::chrono::steady_clock::now();
  stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10));
}

TEST_F(NodeTest, APortThatIsTakenIsAnError) {
  const Result<Endpoint> taken = parse_endpoint(ask(&NodeControl::status)->portals(0));
  ASSERT_TRUE(taken);
  Config other = config();
  other.server.portals = {*taken};
  other.server.admin_socket = path("other.sock");
  EXPECT_FALSE(start_another(other));
}

TEST_F(NodeTest, AStateDirectoryIsOfOneNode) {
  Config other = config();
  other.server.admin_socket = path("other.sock");
  EXPECT_FALSE(start_another(other));
  create("db1");  // the first goes on
}

}  // namespace
}  // namespace mariner::node

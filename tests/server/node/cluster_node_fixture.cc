#include "tests/server/node/cluster_node_fixture.h"

#include <algorithm>
#include <csignal>
#include <filesystem>

namespace mariner::node::testing {

RunningNode::RunningNode(const Config& config, const std::string& log)
    : log_(log), node_(config, "marinerd.toml", loop_.loop(), log_.log()), control_(node_) {}

Result<void> RunningNode::start() {
  Result<void> started = node_.start();
  running_ = started.has_value();
  if (running_) loop_.begin();
  return started;
}

RunningNode::~RunningNode() {
  if (!running_) return;
  loop_.answer<bool>([this](auto done) { node_.stop([done] { done(true); }); });
  loop_.end();
}

Result<api::Volume> RunningNode::show(const std::string& volume) {
  api::VolumeRequest request;
  request.set_name(volume);
  return ask(&ClusterControl::volume_show, request);
}

api::ReplicatedVolume RunningNode::replicas(const std::string& volume) {
  const Result<api::ClusterStatus> status = ask(&ClusterControl::cluster_status);
  for (const api::ReplicatedVolume& each : status->volumes()) {
    if (each.name() == volume) return each;
  }
  return {};
}

bool RunningNode::serves(const std::string& volume) { return state_of(volume) == "serving"; }

std::string RunningNode::state_of(const std::string& volume) {
  const Result<api::Volume> shown = show(volume);
  return shown ? shown->state() : "";
}

std::string RunningNode::hand_over(const std::string& volume, std::uint64_t sequence,
                                   std::uint64_t block, char byte) {
  api::RepairsRequest request;
  request.set_volume(volume);
  request.set_sequence(sequence);
  const auto opened = loop_.answer<Result<api::Repairs>>(
      [&](auto done) { control_.repairs().open(request, std::move(done)); });
  if (!opened) return "";
  const std::vector<std::byte> content(kBlockBytes, static_cast<std::byte>(byte));
  const auto added = loop_.answer<Result<api::Repairs>>([&](auto done) {
    control_.repairs().add(opened->id(), {{Lbn{block}, content}}, std::move(done));
  });
  return added ? opened->id() : "";
}

ClusterNodeFixture::ClusterNodeFixture(const std::vector<Member>& members)
    : configs_(members.size()), nodes_(members.size()) {
  std::signal(SIGPIPE, SIG_IGN);  // as TlsContext demands
  std::vector<ClusterNodeConfig> nodes;
  for (std::size_t i = 0; i < members.size(); ++i) {
    nodes.push_back({.id = static_cast<std::uint32_t>(i + 1),
                     .name = members[i].name,
                     .addresses = {manager::EtcdCluster::free_endpoint()}});
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    CHECK(std::filesystem::create_directory(path("", i)));
    CHECK(peer::PkiFolder(path("pki", i)).store(authority_.node(members[i].name)));
    Config& config = configs_[i];
    config.roles = members[i].roles;
    config.server.iqn_base = "iqn.2026-11.org.example";
    config.server.portals = {{.address = "127.0.0.1"}};
    config.server.admin_socket = path("admin.sock", i);
    config.server.state_dir = path("state", i);
    config.log.disks = {path("log", i)};
    config.log.max_size = ByteSize{64u << 20};
    config.log.track_size = kTrackSizeMin;
    config.storage.apply_delay = std::chrono::milliseconds(5);
    config.cluster.pki = path("pki", i);
    config.cluster.listen = nodes[i].addresses;
    config.cluster.lease = kLeaseMin;
    config.cluster.nodes = nodes;
  }
}

void ClusterNodeFixture::SetUp() {
  if (!manager::EtcdCluster::installed()) GTEST_SKIP() << "Debian's etcd-server is not installed";
  etcd_ = std::make_unique<manager::EtcdCluster>(1);
  for (Config& config : configs_) config.cluster.etcd = etcd_->endpoints();
  store_ = std::make_unique<manager::EtcdStore>(
      loop_.loop().context(), loop_.loop(),
      manager::EtcdStoreOptions{.endpoints = etcd_->endpoints()});
  loop_.begin();
}

void ClusterNodeFixture::TearDown() {
  for (auto& node : nodes_) node.reset();
  loop_.end();
  store_.reset();
}

std::string ClusterNodeFixture::path(const std::string& name, std::size_t member) const {
  return directory_.file(std::to_string(member + 1)) + "/" + name;
}

void ClusterNodeFixture::configure_volume(std::size_t member, std::string logger,
                                          std::vector<std::string> storage) {
  config(member).volumes.push_back({.name = kVolume,
                                    .size = ByteSize{kVolumeBytes},
                                    .logger = std::move(logger),
                                    .storage = std::move(storage)});
}

void ClusterNodeFixture::start(std::size_t member) { ASSERT_EQ(refusal(member), ""); }

std::string ClusterNodeFixture::refusal(std::size_t member) {
  auto starting = std::make_unique<RunningNode>(config(member), path("log.txt", member));
  const Result<void> started = starting->start();
  if (!started) return started.error().message;
  nodes_[member] = std::move(starting);
  return "";
}

bool ClusterNodeFixture::comes_to_serve(std::size_t member) {
  const bool serves = eventually([&] { return node(member).serves(kVolume); });
  if (!serves) ADD_FAILURE() << logs();
  return serves;
}

std::string ClusterNodeFixture::logs() const {
  std::string all;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    all += "member " + std::to_string(i) + ":\n";
    for (const std::string& line : LogFile::lines(path("log.txt", i))) all += line + "\n";
  }
  return all;
}

void ClusterNodeFixture::write(std::uint64_t block, char byte, std::size_t member) {
  // As a host does: on a machine that is held up a lease may run out, and the unit is in
  // transition. Nothing else is repeated.
  scsi::Response response;
  EXPECT_TRUE(eventually([&] {
    response = node(member).client(member).write(kIqn, block, byte);
    return BlockClient::sense_key_of(response) != scsi::SenseKey::kNotReady;
  }));
  EXPECT_EQ(response.status, scsi::Status::kGood)
      << ::testing::PrintToString(response.sense) << logs();
}

std::optional<char> ClusterNodeFixture::read(std::uint64_t block, std::size_t member) {
  return BlockClient::byte_of(node(member).client(member).read(kIqn, block));
}

std::size_t ClusterNodeFixture::told(const std::string& text, std::size_t member) const {
  const auto lines = LogFile::lines(path("log.txt", member));
  return static_cast<std::size_t>(std::ranges::count_if(
      lines, [&](const std::string& line) { return line.find(text) != std::string::npos; }));
}

void ClusterNodeFixture::put(const std::string& key, const std::string& value) {
  const auto answer = loop_.answer<Result<manager::CommitAnswer>>([&](auto done) {
    manager::Transaction transaction;
    transaction.puts.push_back({key, value});
    store_->commit(std::move(transaction), std::move(done));
  });
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->outcome, manager::CommitOutcome::kApplied);
}

std::optional<std::string> ClusterNodeFixture::get(const std::string& key) {
  const auto reading =
      loop_.answer<Result<manager::Reading>>([&](auto done) { store_->get(key, std::move(done)); });
  if (!reading || !reading->entry) return std::nullopt;
  return reading->entry->value;
}

}  // namespace mariner::node::testing

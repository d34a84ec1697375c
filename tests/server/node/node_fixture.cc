#include "tests/server/node/node_fixture.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "proto/check.h"
#include "tests/server/node/block_client.h"

namespace mariner::node::testing {
namespace {

std::string make_directory() {
  std::string name = (std::filesystem::temp_directory_path() / "mariner-node-XXXXXX").string();
  CHECK(::mkdtemp(name.data()) != nullptr);
  return name;
}

int open_null() { return ::open("/dev/null", O_WRONLY | O_CLOEXEC); }

}  // namespace

NodeFixture::NodeFixture() : directory_(make_directory()), null_(open_null()) {
  config_.server.iqn_base = "iqn.2026-11.org.example";
  config_.server.portals = {{.address = "127.0.0.1"}};
  config_.server.admin_socket = path("admin.sock");
  config_.server.state_dir = path("state");
  config_.log.disks = {path("log")};
  config_.log.max_size = ByteSize{64u << 20};
  config_.log.track_size = kTrackSizeMin;
  config_.storage.apply_delay = std::chrono::milliseconds(5);
  start();
}

NodeFixture::~NodeFixture() {
  if (node_ != nullptr) stop();
  ::close(null_);
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void NodeFixture::start() {
  loop_ = std::make_unique<LoopThread>();
  node_ = std::make_unique<Node>(config_, path("marinerd.toml"), loop_->loop(), log_);
  const Result<void> started = node_->start();
  CHECK_MSG(started.has_value(), to_string(started.error()).c_str());
  control_ = std::make_unique<NodeControl>(*node_);
  loop_->begin();
}

void NodeFixture::stop() {
  loop_->answer<bool>([this](auto done) { node_->stop([done] { done(true); }); });
  stopped();
}

void NodeFixture::stopped() {
  loop_->end();
  control_.reset();
  node_.reset();
  loop_.reset();
}

Result<api::Volume> NodeFixture::import(const api::ImportRequest& request) {
  return loop_->answer<Result<api::Volume>>([this, request](auto done) {
    control_->volume_import(
        request, [](std::uint64_t, std::uint64_t) {}, std::move(done));
  });
}

Result<api::Clone> NodeFixture::clone(const api::CloneRequest& request) {
  return loop_->answer<Result<api::Clone>>([this, request](auto done) {
    control_->volume_clone(
        request, [](std::uint64_t, std::uint64_t) {}, std::move(done));
  });
}

api::Volume NodeFixture::create(const std::string& name) {
  api::CreateVolumeRequest request;
  request.set_name(name);
  request.set_size_bytes(kVolumeBytes);
  Result<api::Volume> created = ask(&NodeControl::volume_create, request);
  CHECK(created.has_value());
  return *created;
}

scsi::Status NodeFixture::write(const std::string& iqn, std::uint64_t block, char byte) {
  return BlockClient(*loop_, *node_).write(iqn, block, byte).status;
}

char NodeFixture::read(const std::string& iqn, std::uint64_t block) {
  const auto byte = BlockClient::byte_of(BlockClient(*loop_, *node_).read(iqn, block));
  CHECK(byte.has_value());
  return *byte;
}

std::string NodeFixture::hand_over(const std::string& volume, std::uint64_t sequence,
                                   const std::vector<std::uint64_t>& blocks, char byte) {
  api::RepairsRequest request;
  request.set_volume(volume);
  request.set_sequence(sequence);
  const auto opened = loop_->answer<Result<api::Repairs>>(
      [&](auto done) { control_->repairs().open(request, std::move(done)); });
  if (!opened) return "";
  const std::vector<std::byte> content(kBlockBytes, static_cast<std::byte>(byte));
  std::vector<admin::RepairedBlock> records;
  for (const std::uint64_t block : blocks) records.push_back({Lbn{block}, content});
  const auto added = loop_->answer<Result<api::Repairs>>(
      [&](auto done) { control_->repairs().add(opened->id(), records, std::move(done)); });
  return added ? opened->id() : "";
}

std::unique_ptr<InitiatorSession> NodeFixture::log_in(const std::string& iqn) {
  const Result<api::StatusAnswer> status = ask(&NodeControl::status);
  CHECK(status.has_value());
  return std::make_unique<InitiatorSession>(status->portals(0), iqn);
}

api::MomentSpec NodeFixture::at_sequence(std::uint64_t sequence) {
  api::MomentSpec spec;
  spec.set_sequence(sequence);
  return spec;
}

api::MomentSpec NodeFixture::at_time(std::uint64_t ns) {
  api::MomentSpec spec;
  spec.set_time_ns(ns);
  return spec;
}

api::MomentSpec NodeFixture::at_mark(const std::string& mark) {
  api::MomentSpec spec;
  spec.set_mark(mark);
  return spec;
}

}  // namespace mariner::node::testing

#include "tests/server/node/node_fixture.h"

#include <fcntl.h>
#include <unistd.h>

extern "C" {
#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>
}

#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace mariner::node::testing {
namespace {

// Of the volumes that the fixture makes.
constexpr std::uint64_t kLunBlockBytes = 512;

std::string make_directory() {
  std::string name = (std::filesystem::temp_directory_path() / "mariner-node-XXXXXX").string();
  CHECK(::mkdtemp(name.data()) != nullptr);
  return name;
}

int open_null() { return ::open("/dev/null", O_WRONLY | O_CLOEXEC); }

// READ (16) or WRITE (16) of one block of the log.
std::array<std::uint8_t, 16> cdb_of(std::uint8_t opcode, std::uint64_t block) {
  std::array<std::uint8_t, 16> cdb{opcode};
  const std::uint64_t lba = block * (kBlockBytes / kLunBlockBytes);
  for (unsigned i = 0; i < 8; ++i) cdb[2 + i] = static_cast<std::uint8_t>(lba >> (56 - 8 * i));
  cdb[13] = kBlockBytes / kLunBlockBytes;
  return cdb;
}

}  // namespace

InitiatorSession::InitiatorSession(const std::string& address, const std::string& target)
    : context_(iscsi_create_context(kName)) {
  CHECK(context_ != nullptr);
  CHECK(iscsi_set_targetname(context_, target.c_str()) == 0);
  CHECK(iscsi_set_session_type(context_, ISCSI_SESSION_NORMAL) == 0);
  iscsi_set_noautoreconnect(context_, 1);
  CHECK_MSG(iscsi_full_connect_sync(context_, address.c_str(), 0) == 0, iscsi_get_error(context_));
}

InitiatorSession::~InitiatorSession() {
  if (iscsi_is_logged_in(context_) != 0) iscsi_logout_sync(context_);
  iscsi_destroy_context(context_);
}

void InitiatorSession::use() {
  scsi_task* task =
      iscsi_read16_sync(context_, 0, 0, kLunBlockBytes, kLunBlockBytes, 0, 0, 0, 0, 0);
  CHECK(task != nullptr);
  scsi_free_scsi_task(task);
}

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
  loop_ = std::make_unique<EventLoop>();
  node_ = std::make_unique<Node>(config_, path("marinerd.toml"), *loop_, log_);
  const Result<void> started = node_->start();
  CHECK_MSG(started.has_value(), to_string(started.error()).c_str());
  control_ = std::make_unique<NodeControl>(*node_);
  thread_ = std::thread([this] { loop_->run(); });
}

bool NodeFixture::eventually(const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

void NodeFixture::stop() {
  auto promise = std::make_shared<std::promise<void>>();
  loop_->post([this, promise] { node_->stop([promise] { promise->set_value(); }); });
  await(promise);
  stopped();
}

void NodeFixture::stopped() {
  loop_->stop();
  thread_.join();
  control_.reset();
  node_.reset();
  loop_.reset();
}

Result<api::Volume> NodeFixture::import(const api::ImportRequest& request) {
  auto promise = std::make_shared<std::promise<Result<api::Volume>>>();
  loop_->post([this, request, promise] {
    control_->volume_import(
        request, [](std::uint64_t, std::uint64_t) {},
        [promise](Result<api::Volume> answer) { promise->set_value(std::move(answer)); });
  });
  return await(promise);
}

api::Volume NodeFixture::create(const std::string& name) {
  api::CreateVolumeRequest request;
  request.set_name(name);
  request.set_size_bytes(kVolumeBytes);
  Result<api::Volume> created = ask(&NodeControl::volume_create, request);
  CHECK(created.has_value());
  return *created;
}

// A new nexus is told of the power on before anything else: a command that hears of that instead
// of being executed is sent again.
scsi::Response NodeFixture::execute(const std::string& iqn, const std::array<std::uint8_t, 16>& cdb,
                                    const Payload& data) {
  constexpr int kAttempts = 3;
  Result<std::shared_ptr<scsi::TargetDevice>> device =
      on_loop([&] { return node_->open(iqn, InitiatorSession::kName); });
  CHECK_MSG(device.has_value(), iqn.c_str());
  std::shared_ptr<scsi::Nexus> nexus = on_loop([&] {
    return (*device)->attach({{InitiatorSession::kName, {}}});
  });
  scsi::Response response;
  for (int i = 0; i < kAttempts; ++i) {
    auto promise = std::make_shared<std::promise<scsi::Response>>();
    loop_->post([&] {
      scsi::Command command;
      command.cdb = cdb;
      command.data_out = data;
      command.data_out_announced = data.size();
      command.unit_blocks = (*device)->transfer_of(0, cdb).unit_blocks;
      command.nexus = nexus;
      (*device)->execute(std::move(command), [promise](scsi::Response answer) {
        promise->set_value(std::move(answer));
      });
    });
    response = await(promise);
    if (response.status != scsi::Status::kCheckCondition) break;
  }
  on_loop([&] {  // they belong to the loop's thread
    nexus.reset();
    device = Error{};
  });
  return response;
}

scsi::Status NodeFixture::write(const std::string& iqn, std::uint64_t block, char byte) {
  Payload data = Payload::allocate(kBlockBytes);
  std::memset(data.data(), byte, kBlockBytes);
  return execute(iqn, cdb_of(0x8a, block), data).status;
}

char NodeFixture::read(const std::string& iqn, std::uint64_t block) {
  const scsi::Response response = execute(iqn, cdb_of(0x88, block), {});
  CHECK(response.status == scsi::Status::kGood && !response.data_in.empty());
  return static_cast<char>(response.data_in.front().bytes()[0]);
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

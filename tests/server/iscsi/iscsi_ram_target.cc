// An iSCSI target over memory: the whole of server/iscsi and server/scsi without a log, for trying
// clients and for measuring the protocol alone.
//
//   iscsi_ram_target [ADDRESS [MIB]]       e.g. 127.0.0.1:3261 256
//
// Serves the targets iqn.2026-11.org.mariner:ram and :ram2. Runs until SIGINT or SIGTERM.
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "server/iscsi/portal.h"
#include "server/scsi/device.h"
#include "tests/server/iscsi/asio_executor.h"
#include "tests/server/iscsi/ram_layer.h"

namespace mariner::iscsi {
namespace {

constexpr std::string_view kIqnBase = "iqn.2026-11.org.mariner:";

class RamDirectory final : public TargetDirectory {
 public:
  void add(const std::string& name, std::uint64_t bytes, std::uint8_t id) {
    const std::string iqn = std::string(kIqnBase) + name;
    scsi::DiskOptions disk;
    disk.identity.target_name = iqn;
    disk.identity.volume_name = name;
    disk.identity.serial = "ram-" + name;
    disk.identity.naa = {0x30, 0, 0, 0, 0, 0, 0, id};
    std::vector<scsi::LogicalUnitOptions> units;
    units.push_back({.lun = {0}, .disk = disk, .layer = std::make_shared<RamLayer>(bytes)});
    names_.push_back(iqn);
    devices_.push_back(std::make_shared<scsi::Device>(std::move(units)));
  }

  [[nodiscard]] std::vector<std::string> discoverable(std::string_view) const override {
    return names_;
  }
  [[nodiscard]] Result<std::shared_ptr<scsi::TargetDevice>> open(std::string_view target,
                                                                 std::string_view) override {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] == target) return std::shared_ptr<scsi::TargetDevice>(devices_[i]);
    }
    return Error{ErrorCode::kNotFound, "there is no such target"};
  }

 private:
  std::vector<std::string> names_;
  std::vector<std::shared_ptr<scsi::Device>> devices_;
};

class PrintingObserver final : public Observer {
 public:
  void session_opened(const SessionInfo& session) override {
    std::printf("session %lu: %s from %s to %s\n", session.id, session.initiator.c_str(),
                session.endpoints.address.c_str(), session.target.c_str());
  }
  void connection_ended(const ConnectionEnd& end) override {
    std::printf("%s: session %lu of %s ended: %s %s\n", end.endpoints.address.c_str(),
                end.session_id, end.initiator.c_str(),
                std::string(end_reason_name(end.reason)).c_str(), end.detail.c_str());
  }
  void portal_failed(std::string_view portal, std::string_view what) override {
    std::printf("%s: %s\n", std::string(portal).c_str(), std::string(what).c_str());
  }
};

int run(const std::string& address, std::uint64_t mib) {
  boost::asio::io_context context(1);
  AsioExecutor executor(context);
  RamDirectory directory;
  directory.add("ram", mib << 20, 1);
  directory.add("ram2", mib << 20, 2);
  PrintingObserver observer;
  PortalOptions options;
  options.addresses = {address};
  auto portal = Portal::open(
      options,
      {.context = context, .executor = executor, .directory = directory, .observer = observer});
  if (!portal) {
    std::fprintf(stderr, "%s\n", to_string(portal.error()).c_str());
    return EXIT_FAILURE;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::printf("listening on %s\n", (*portal)->addresses().front().c_str());
  boost::asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait(
      [&](const boost::system::error_code&, int) { (*portal)->stop(2, [&] { context.stop(); }); });
  context.run();
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace mariner::iscsi

int main(int argc, char** argv) {
  const std::string address = argc > 1 ? argv[1] : "127.0.0.1:3261";
  const std::uint64_t mib = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 256;
  return mariner::iscsi::run(address, mib);
}

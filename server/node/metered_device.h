// A target device that counts: commands, bytes and durations of what is behind it, for metrics.
#pragma once

#include <memory>

#include "proto/executor.h"
#include "server/scsi/target_device.h"
#include "server/web/metrics.h"

namespace mariner::node {

class MeteredDevice final : public scsi::TargetDevice {
 public:
  MeteredDevice(std::shared_ptr<scsi::TargetDevice> device, Executor& executor)
      : device_(std::move(device)), executor_(executor) {}

  [[nodiscard]] const web::ScsiMetrics& metrics() const { return *metrics_; }

  std::shared_ptr<scsi::Nexus> attach(const scsi::NexusId& id) override {
    return device_->attach(id);
  }
  [[nodiscard]] scsi::Transfer transfer_of(std::uint64_t lun,
                                           std::span<const std::uint8_t, 16> cdb) const override {
    return device_->transfer_of(lun, cdb);
  }
  void execute(scsi::Command command, scsi::CommandDone done) override;
  void abort_task(std::uint64_t lun, scsi::TaskTag tag, const std::shared_ptr<scsi::Nexus>& nexus,
                  UniqueFunction<void()> done) override {
    device_->abort_task(lun, tag, nexus, std::move(done));
  }
  void manage(scsi::TaskManagementFunction function, std::uint64_t lun,
              const std::shared_ptr<scsi::Nexus>& nexus, UniqueFunction<void()> done) override {
    device_->manage(function, lun, nexus, std::move(done));
  }
  [[nodiscard]] bool has_lun(std::uint64_t lun) const override { return device_->has_lun(lun); }

 private:
  const std::shared_ptr<scsi::TargetDevice> device_;
  Executor& executor_;
  // Shared with commands in flight, which may outlive the device.
  std::shared_ptr<web::ScsiMetrics> metrics_ = std::make_shared<web::ScsiMetrics>();
};

}  // namespace mariner::node

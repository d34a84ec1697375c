// The SCSI target device: routes commands to its logical units by LUN, keeps the nexuses and their
// unit attentions, and answers what belongs to the device and not to a unit (REPORT LUNS, commands
// to a LUN that does not exist).
//
// Owner's thread only, like everything behind TargetDevice. A command keeps its logical unit (and
// the unit its layer) alive until it has completed, so a device may be dropped at any time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "server/scsi/copy_manager.h"
#include "server/scsi/disk.h"
#include "server/scsi/lun.h"
#include "server/scsi/nexus.h"
#include "server/scsi/target_device.h"
#include "server/scsi/unit_format.h"
#include "server/scsi/unit_reservations.h"
#include "server/scsi/unit_sanitize.h"

namespace mariner::scsi {

struct LogicalUnitOptions {
  Lun lun;
  DiskOptions disk;
  std::shared_ptr<volume::Layer> layer;
  ReservationOptions reservations{};
};

class Device final : public TargetDevice {
 public:
  // Requires at least one unit, LUN 0 among them (SAM-5 4.7.4), no LUN twice, none above 255.
  // `elsewhere` finds the units of other devices that a copy of an initiator may use; without it
  // there are none. `tokens` are those of the devices between which copies are possible; without
  // them the device has its own.
  explicit Device(std::vector<LogicalUnitOptions> units, FindCopyUnit elsewhere = nullptr,
                  std::shared_ptr<RodTokens> tokens = nullptr);
  ~Device() override;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  std::shared_ptr<Nexus> attach(const NexusId& id) override;
  [[nodiscard]] Transfer transfer_of(std::uint64_t lun,
                                     std::span<const std::uint8_t, 16> cdb) const override;
  void execute(Command command, CommandDone done) override;
  void manage(TaskManagementFunction function, std::uint64_t lun,
              const std::shared_ptr<Nexus>& nexus, UniqueFunction<void()> done) override;
  void abort_task(std::uint64_t lun, TaskTag tag, const std::shared_ptr<Nexus>& nexus,
                  UniqueFunction<void()> done) override;
  [[nodiscard]] bool has_lun(std::uint64_t lun) const override;

  // The unit with this designator; null if it is not one of these.
  [[nodiscard]] std::shared_ptr<CopyUnit> find_copy_unit(const CopyTarget& target) const;

  // What the node tells the initiators of a unit, as unit attentions of every nexus:
  // the size of the layer changed (2A/09);
  void capacity_changed(Lun lun);
  // identity, write protection or the like changed (2A/01);
  void parameters_changed(Lun lun);
  // other contents stand on the medium than the initiator knows, as after a rollback: 2A/01, then
  // 28/00, so that a host forgets what it has cached.
  void contents_replaced(Lun lun);
  // the state of a target port group changed (2A/06), after it did: so that initiators ask for it
  // before they meet it.
  void access_state_changed(Lun lun);

  // Puts what another node kept of the unit's reservations in the place of what is known here. For
  // when this node begins to coordinate the unit: before the state of its ports is active, since
  // commands that conflict are let in from then on. See UnitReservations::replace().
  void replace_reservations(Lun lun, Reservations kept);

 private:
  struct Unit {
    Lun lun;
    std::shared_ptr<Disk> disk;
    std::shared_ptr<UnitReservations> reservations;
    std::shared_ptr<UnitSanitize> sanitize;
    std::shared_ptr<UnitFormat> format;
  };
  // A task management function, and who asks for it.
  struct Management {
    TaskManagementFunction function = TaskManagementFunction::kAbortTask;
    std::uint64_t lun = 0;
    std::shared_ptr<Nexus> nexus;
    std::optional<TaskTag> tag{};  // of the command that it ends; none: of all that it may mean
  };

  [[nodiscard]] const Unit* find(std::uint64_t lun_field) const;
  [[nodiscard]] const Unit& unit_of(Lun lun) const;
  [[nodiscard]] std::size_t index_of(const Unit& unit) const;
  [[nodiscard]] std::size_t index_of(Lun lun) const;
  [[nodiscard]] Response report_luns(const ReportLuns& report) const;
  [[nodiscard]] Response answer_absent(const Command& command) const;
  void reserve_out(const Unit& unit, const PersistentReserveOut& reserve, const Command& command,
                   CommandDone done);
  void sanitize(const Unit& unit, const Sanitize& command, const Command& request,
                CommandDone done);
  void carry_out(const Management& management, UniqueFunction<void()> done);
  [[nodiscard]] std::vector<Unit> affected_by(const Management& management) const;
  // What it means for every initiator: attentions, and the end of what RESERVE(6) began.
  void establish(const Management& management, const std::vector<Unit>& affected);
  Response execute_and_tell(Disk& disk, std::size_t index, const Decoded& decoded,
                            const Command& command);
  static void format(const Unit& unit, const FormatUnit& command, const Command& request,
                     CommandDone done);

  std::vector<Unit> units_;  // in order of their LUNs
  NexusTable nexuses_;
  std::shared_ptr<CopyManager> copies_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::scsi

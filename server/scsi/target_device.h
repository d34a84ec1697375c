// What iSCSI sees of SCSI: a target device with logical units behind it (SAM-5).
//
// One TargetDevice stands behind one iSCSI target name. Commands of all its sessions arrive on the
// Executor's thread that owns the volume, with their whole data-out payload in memory; responses
// leave on the same thread, possibly before execute() returns and in any order.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "proto/payload.h"
#include "proto/unique_function.h"

namespace mariner::scsi {

// SAM-5 5.3.1.
enum class Status : std::uint8_t {
  kGood = 0x00,
  kCheckCondition = 0x02,
  kConditionMet = 0x04,
  kBusy = 0x08,
  kReservationConflict = 0x18,
  kTaskSetFull = 0x28,
  kTaskAborted = 0x40,
};

struct InitiatorPort {
  std::string name;                    // iSCSI name
  std::array<std::uint8_t, 6> isid{};  // RFC 7143 11.12.5
  friend auto operator<=>(const InitiatorPort&, const InitiatorPort&) = default;
};

// What an I_T nexus is known by: an initiator port, and the target port that it uses.
struct NexusId {
  InitiatorPort initiator;
  std::uint16_t target_port = 1;  // relative target port identifier: the portal group's tag
  friend auto operator<=>(const NexusId&, const NexusId&) = default;
};

// One I_T nexus as the target sees it. Unit attentions and reservations belong to it. Created by
// TargetDevice::attach(); the session holds it.
class Nexus {
 public:
  virtual ~Nexus() = default;
};

// What a CDB itself asks to transfer, before any session's limits.
struct Transfer {
  enum class Direction { kNone, kToTarget, kToInitiator };
  Direction direction = Direction::kNone;
  std::uint64_t bytes = 0;
  // The CDB does not say how much: what the initiator has is right, up to `bytes`.
  bool open = false;
  std::uint64_t unit_blocks = 0;  // the logical blocks that the unit had when this was asked
  bool is_use = false;            // of what is stored (opcodes.h)
};

// What names a command among those of its nexus that have not been answered: the command identifier
// of SAM-5, in iSCSI the initiator task tag.
struct TaskTag {
  std::uint32_t value = 0;
  friend bool operator==(const TaskTag&, const TaskTag&) = default;
};

struct Command {
  std::uint64_t lun = 0;                 // the 8-byte LUN field, big endian, as on the wire
  std::array<std::uint8_t, 16> cdb{};    // variable-length CDBs are refused before this
  Payload data_out;                      // exactly as many bytes as the initiator could send, at
                                         // most Transfer::bytes; shorter on residual overflow
  std::uint64_t data_out_announced = 0;  // bytes that the initiator said it would send; more than
                                         // Transfer::bytes on residual underflow
  std::uint64_t unit_blocks = 0;  // of the Transfer that decided on the data: an extent beyond
                                  // them is refused, also when the unit has grown meanwhile
  std::shared_ptr<Nexus> nexus;
  std::optional<TaskTag> tag{};  // none: each abort_task() of its nexus may mean it
};

struct Response {
  Status status = Status::kGood;
  std::vector<std::uint8_t> sense;    // descriptor or fixed format; empty when none
  std::vector<PayloadSlice> data_in;  // in order; the sum may exceed what the initiator expects
};

// SAM-5 clause 7; iSCSI function codes of RFC 7143 11.5.1 are mapped to these by the session.
enum class TaskManagementFunction {
  kAbortTask,  // without a tag it is not known of which one: of each of the nexus
  kAbortTaskSet,
  kClearTaskSet,
  kLogicalUnitReset,
  kTargetReset,
  kNexusReset  // I_T NEXUS RESET: as kAbortTaskSet, of all logical units
};

using CommandDone = UniqueFunction<void(Response)>;

class TargetDevice {
 public:
  virtual ~TargetDevice() = default;

  // The nexus of this identity; the same object as before while any session holds it, so that a
  // session that reinstates another keeps what belongs to the nexus.
  virtual std::shared_ptr<Nexus> attach(const NexusId& id) = 0;

  // What `cdb` asks to transfer. Unknown and malformed CDBs: kNone, and execute() says why.
  [[nodiscard]] virtual Transfer transfer_of(std::uint64_t lun,
                                             std::span<const std::uint8_t, 16> cdb) const = 0;

  // Executes one command. `done` runs exactly once.
  virtual void execute(Command command, CommandDone done) = 0;

  // Calls `done` when every write that the function affects is settled or void; commands that it
  // affects and that have not been answered may be answered before, or never (the session then
  // drops the answers). Establishes the unit attentions that the function demands for others.
  virtual void manage(TaskManagementFunction function, std::uint64_t lun,
                      const std::shared_ptr<Nexus>& nexus, UniqueFunction<void()> done) = 0;

  // ABORT TASK: as manage(), of the command with this tag and no other one of its nexus. A device
  // whose commands end soon does not need to tell them apart.
  virtual void abort_task(std::uint64_t lun, TaskTag /*tag*/, const std::shared_ptr<Nexus>& nexus,
                          UniqueFunction<void()> done) {
    manage(TaskManagementFunction::kAbortTask, lun, nexus, std::move(done));
  }

  // True if `lun` addresses a logical unit of this device.
  [[nodiscard]] virtual bool has_lun(std::uint64_t lun) const = 0;
};

}  // namespace mariner::scsi

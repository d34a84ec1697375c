// I_T nexuses, and the unit attentions that wait on them for their initiators (SAM-5 5.14).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "server/scsi/sense.h"
#include "server/scsi/target_device.h"

namespace mariner::scsi {

// In order of precedence: the first one that waits is reported first (SAM-5 5.14.1). Resets clear
// every attention after them, because a reset implies them all.
enum class Attention : std::uint8_t {
  kPowerOn,                 // 29/00, for a nexus that is new
  kTargetReset,             // 29/02
  kLogicalUnitReset,        // 29/03
  kCommandsCleared,         // 2F/00
  kAccessStateChanged,      // 2A/06
  kCapacityChanged,         // 2A/09
  kParametersChanged,       // 2A/01
  kMediumChanged,           // 28/00
  kReservationsPreempted,   // 2A/03
  kReservationsReleased,    // 2A/04
  kRegistrationsPreempted,  // 2A/05
  kLogParametersChanged,    // 2A/02
  kFailurePredictedInTest,  // 5D/FF
  kSelfTestFailed,          // 0B/04
};

[[nodiscard]] Sense sense_of(Attention attention);

// The attentions that wait on one nexus for one logical unit. At most one of each kind, so it is
// bounded by nature.
class AttentionSet {
 public:
  void add(Attention attention);
  [[nodiscard]] bool empty() const { return bits_ == 0; }
  // Takes the one to be reported next.
  std::optional<Attention> take();

 private:
  std::uint16_t bits_ = 0;
};

// One initiator port as this device knows it. Lives as long as a session holds it.
class InitiatorNexus final : public Nexus {
 public:
  InitiatorNexus(NexusId id, std::size_t unit_count)
      : id_(std::move(id)), attentions_(unit_count), echoes_(unit_count) {}

  [[nodiscard]] const NexusId& id() const { return id_; }

  // `unit` is the ordinal of a logical unit in its device.
  [[nodiscard]] AttentionSet& attentions(std::size_t unit) { return attentions_.at(unit); }
  // What the initiator has written to its echo buffer of the unit (SPC-4 6.18.6); bounded by the
  // decoding of WRITE BUFFER.
  [[nodiscard]] std::optional<Payload>& echo(std::size_t unit) { return echoes_.at(unit); }

 private:
  const NexusId id_;
  std::vector<AttentionSet> attentions_;
  std::vector<std::optional<Payload>> echoes_;
};

// The relative target port identifier of the port through which a command came.
[[nodiscard]] inline std::uint16_t target_port_of(const Command& command) {
  return static_cast<const InitiatorNexus&>(*command.nexus).id().target_port;
}

// The nexuses of one device. Holds them weakly: bounded by the sessions that exist.
class NexusTable {
 public:
  explicit NexusTable(std::size_t unit_count) : unit_count_(unit_count) {}

  // The nexus of `id`; a new one starts with the power-on attention on every unit.
  std::shared_ptr<InitiatorNexus> attach(const NexusId& id);

  // Adds `attention` for `unit` to every nexus but `except` (which may be null).
  void establish(std::size_t unit, Attention attention, const Nexus* except = nullptr);
  // Adds `attention` for `unit` to one nexus. Who is not there hears of nothing: a new nexus begins
  // with power on.
  void establish_for(std::size_t unit, Attention attention, const NexusId& id);

 private:
  std::size_t unit_count_;
  std::map<NexusId, std::weak_ptr<InitiatorNexus>> nexuses_;
};

}  // namespace mariner::scsi

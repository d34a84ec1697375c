// I_T nexuses, and the unit attentions that wait on them for their initiators (SAM-5 5.14).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/scsi/sense.h"
#include "server/scsi/target_device.h"

namespace mariner::scsi {

// In order of precedence: the first one that waits is reported first (SAM-5 5.14.1). Resets clear
// every attention after them, because a reset implies them all.
enum class Attention : std::uint8_t {
  kPowerOn,            // 29/00, for a nexus that is new
  kTargetReset,        // 29/02
  kLogicalUnitReset,   // 29/03
  kCommandsCleared,    // 2F/00
  kCapacityChanged,    // 2A/09
  kParametersChanged,  // 2A/01
  kMediumChanged,      // 28/00
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
  std::uint8_t bits_ = 0;
};

// One initiator port as this device knows it. Lives as long as a session holds it.
class InitiatorNexus final : public Nexus {
 public:
  explicit InitiatorNexus(std::size_t unit_count) : attentions_(unit_count) {}

  // `unit` is the ordinal of a logical unit in its device.
  [[nodiscard]] AttentionSet& attentions(std::size_t unit) { return attentions_.at(unit); }

 private:
  std::vector<AttentionSet> attentions_;
};

// The nexuses of one device. Holds them weakly: bounded by the sessions that exist.
class NexusTable {
 public:
  explicit NexusTable(std::size_t unit_count) : unit_count_(unit_count) {}

  // The nexus of `port`; a new one starts with the power-on attention on every unit.
  std::shared_ptr<InitiatorNexus> attach(const InitiatorPort& port);

  // Adds `attention` for `unit` to every nexus but `except` (which may be null).
  void establish(std::size_t unit, Attention attention, const Nexus* except = nullptr);

 private:
  using Key = std::pair<std::string, std::array<std::uint8_t, 6>>;

  std::size_t unit_count_;
  std::map<Key, std::weak_ptr<InitiatorNexus>> nexuses_;
};

}  // namespace mariner::scsi

// The medium of one logical unit: whether it is in its drive, and who prevents its removal
// (SBC-3 5.10, PREVENT ALLOW MEDIUM REMOVAL, and 5.25, LOEJ of START STOP UNIT).
//
// What is stored is not touched: a medium that is out cannot be reached through the unit, no more.
// While one initiator prevents removal the medium moves neither way. Nothing is saved: with the
// server's start the medium is in. Owner's thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "server/scsi/nexus.h"
#include "server/scsi/sense.h"
#include "server/scsi/target_device.h"

namespace mariner::scsi {

class RemovableMedium {
 public:
  explicit RemovableMedium(bool removable) : removable_(removable) {}

  [[nodiscard]] bool removable() const { return removable_; }
  [[nodiscard]] bool present() const { return present_; }
  // How a command ends that needs the medium; nothing: as always.
  [[nodiscard]] std::optional<Sense> absence() const;

  // A nexus that ends, with its last session, prevents nothing any more.
  void prevent(const std::shared_ptr<Nexus>& nexus);
  void allow(const NexusId& nexus);
  void allow_all() { preventing_.clear(); }

  // Moves the medium, which must be removable. ILLEGAL REQUEST, and nothing moves, if that is
  // prevented; where it is already it may stay.
  [[nodiscard]] std::optional<Sense> eject() { return move(false); }
  [[nodiscard]] std::optional<Sense> load() { return move(true); }
  // Counts those that brought it in, so that other initiators can be told.
  [[nodiscard]] std::uint64_t load_generation() const { return load_generation_; }

 private:
  [[nodiscard]] std::optional<Sense> move(bool in);
  void allow_who_is_gone();

  const bool removable_;
  bool present_ = true;
  std::uint64_t load_generation_ = 0;
  std::vector<std::weak_ptr<InitiatorNexus>> preventing_;  // bounded by the nexuses that exist
};

}  // namespace mariner::scsi

// What the asymmetric access state means for one logical unit's commands (SPC-4 5.15.2): which are
// allowed, and what the others end with.
//
// A unit whose owner gave it no port groups is active/optimized through every port, for ever.
// Owner's thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "proto/error.h"
#include "server/scsi/opcodes.h"
#include "server/scsi/port_groups.h"
#include "server/scsi/sense.h"

namespace mariner::scsi {

// In which states a command is allowed (SPC-4 5.15.2.4 and 5.15.2.5): the one table of it.
enum class AccessNeed : std::uint8_t {
  kNone,     // in every state
  kStandby,  // in the active states and in standby
  kActive,   // in the active states
};
[[nodiscard]] AccessNeed access_need(Operation operation);
[[nodiscard]] bool allows(AccessState state, Operation operation);

// NOT READY, with what that state, which is not active, is called.
//
// TRANSITION (04/0A) has initiators wait and try again: Linux's scsi_dh_alua takes the group for
// transitioning, asks REPORT TARGET PORT GROUPS until it is not, for as long as the implicit
// transition time says, and repeats the command meanwhile; multipath-tools' checker leaves the path
// pending. Windows' MSDSM asks, too, and does not count the repetitions.
// STANDBY (04/0B) has Linux fail the path over at once, and MSDSM repeat the command on a path of
// another group, but only so often while it knows of no active one: so with nobody to coordinate no
// node is in standby. BECOMING READY (04/01) would be repeated on this path, wherever the unit is.
[[nodiscard]] Sense not_accessible(AccessState state);

// Whether a layer failed because the unit is not to be had through this node (any more): it is
// coordinated elsewhere, or nowhere.
[[nodiscard]] bool is_loss_of_access(const Error& error);

// What REPORT TARGET PORT GROUPS tells.
struct PortGroupReport {
  std::vector<PortGroup> groups;
  bool changes = false;           // whether states can change at all, which they do implicitly
  std::uint8_t transition_s = 0;  // see PortGroups
};

class UnitAccess {
 public:
  // `groups` may be null, of a unit with these ports: aborts where they do not agree.
  UnitAccess(std::shared_ptr<const PortGroups> groups,
             const std::vector<std::uint16_t>& target_ports);

  // Whether there are other states than active/optimized.
  [[nodiscard]] bool changes() const { return groups_ != nullptr; }
  // In which state a nexus through this port finds the unit now.
  [[nodiscard]] AccessState state(std::uint16_t target_port) const {
    return groups_ == nullptr ? AccessState::kActiveOptimized : groups_->state_of(target_port);
  }
  // What a command ends with that was under way when its layer failed like this, so that its
  // initiator tries again, here or elsewhere, and sees no I/O error: the state of now, or a
  // transition where that is active (still, or again). Nothing for any other error, and for a unit
  // without port groups: there the error says what it always said.
  [[nodiscard]] std::optional<Sense> lost(const Error& error, std::uint16_t target_port) const;
  // The identifier of the group that has this port.
  [[nodiscard]] std::uint16_t group_of(std::uint16_t target_port) const;
  // `target_ports`: all that the unit has.
  [[nodiscard]] PortGroupReport report(const std::vector<std::uint16_t>& target_ports) const;

 private:
  std::shared_ptr<const PortGroups> groups_;
};

}  // namespace mariner::scsi

// Target port groups (SPC-4 5.15, SPC-5 5.18): through which of its target ports a logical unit can
// be used now, where several nodes serve it. This is what the owner of such a unit tells of it;
// UnitAccess is what the unit makes of that.
//
// The target ports of one node, which are its portal groups, are one target port group. A nexus
// comes through a port of this node, so that the state in which it finds the unit is this node's:
// active where the unit is coordinated, standby or unavailable elsewhere, transitioning while
// nobody coordinates. States change by themselves (implicitly), at any time, and nobody is asked
// before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mariner::scsi {

// ASYMMETRIC ACCESS STATE of REPORT TARGET PORT GROUPS (SPC-4 6.37).
enum class AccessState : std::uint8_t {
  kActiveOptimized = 0x0,
  kActiveNonOptimized = 0x1,
  kStandby = 0x2,
  kUnavailable = 0x3,
  kTransitioning = 0xF,
};

// Commands are carried out in these, and in no other.
[[nodiscard]] constexpr bool is_active(AccessState state) {
  return state == AccessState::kActiveOptimized || state == AccessState::kActiveNonOptimized;
}

// Of a unit without port groups of its owner. A number of SCSI, as all identifiers of groups, not
// the tag of a portal group of iSCSI: those are the ports.
inline constexpr std::uint16_t kTargetPortGroup = 1;
// TARGET PORT COUNT is one byte.
inline constexpr std::size_t kTargetPortsMax = 255;

struct PortGroup {
  std::uint16_t id = kTargetPortGroup;
  AccessState state = AccessState::kActiveOptimized;
  bool preferred = false;            // PREF
  std::vector<std::uint16_t> ports;  // relative target port identifiers; at most kTargetPortsMax

  friend bool operator==(const PortGroup&, const PortGroup&) = default;
};

// The groups of one logical unit. Owner's thread only. Everything is asked for at the moment at
// which it counts, and nothing is remembered.
class PortGroups {
 public:
  virtual ~PortGroups() = default;

  // All of them, no identifier twice, at most 255; together they have all ports of
  // Identity::target_ports, each once. Which groups and ports there are never changes.
  [[nodiscard]] virtual std::vector<PortGroup> groups() const = 0;
  // The state of the group that has this port, one of Identity::target_ports. Asked for each
  // command when it begins, so it is to cost no more than a comparison or two.
  [[nodiscard]] virtual AccessState state_of(std::uint16_t target_port) const = 0;
  // For how long initiators are to wait for a transition to end before they give the path up
  // (IMPLICIT TRANSITION TIME, SPC-4 6.37), in seconds; 0: that is not said, and they decide
  // (Linux: 60 s).
  [[nodiscard]] virtual std::uint8_t transition_s() const = 0;
};

}  // namespace mariner::scsi

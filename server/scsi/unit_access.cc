#include "server/scsi/unit_access.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"

namespace mariner::scsi {

// Standby and unavailable have lists of commands in SPC-4 5.15.2.4.4 and 5.15.2.4.5, transitions
// that of unavailable (5.15.2.5). Two things are left out of, or put into, that of standby:
//
// A node where a unit is in standby does not know the unit's reservations, because they are kept
// where it is coordinated. So it does not tell of them (PERSISTENT RESERVE IN), and does nothing
// that one of them might forbid, or that would be about this node's share of the unit only
// (PERSISTENT RESERVE OUT, MODE SELECT, LOG SELECT, SEND DIAGNOSTIC).
//
// Other commands may be supported. READ CAPACITY is, because Linux gives a disk that does not tell
// its capacity none, and multipath-tools refuse a path whose size is not that of the others; so are
// those that tell which commands there are.
AccessNeed access_need(Operation operation) {
  using enum Operation;
  switch (operation) {
    case kInquiry:
    case kReportLuns:
    case kRequestSense:
    case kReportPortGroups:
    case kReadBuffer:  // the echo buffer, as there is no other
    case kWriteBuffer: return AccessNeed::kNone;
    case kLogSense:
    case kModeSense:
    case kReceiveDiagnostic:
    case kReadCapacity:
    case kReportOpcodes:
    case kReportTaskManagement: return AccessNeed::kStandby;
    case kTestUnitReady:
    case kModeSelect:
    case kStartStopUnit:
    case kPreventAllow:
    case kRead:
    case kWrite:
    case kWriteAndVerify:
    case kVerify:
    case kPrefetch:
    case kSynchronizeCache:
    case kWriteSame:
    case kUnmap:
    case kGetLbaStatus:
    case kReserve6:
    case kRelease6:
    case kPersistentReserveIn:
    case kPersistentReserveOut:
    case kCompareAndWrite:
    case kOrWrite:
    case kWriteAtomic:
    case kReadDefectData:
    case kExtendedCopy:
    case kReceiveCopyResults:
    case kLogSelect:
    case kSendDiagnostic:
    case kPopulateToken:
    case kWriteUsingToken:
    case kCopyOperationAbort:
    case kReceiveCopyStatus:
    case kReceiveRodTokens:
    case kReportRodTokens:
    case kSanitize:
    case kFormatUnit: return AccessNeed::kActive;
  }
  return AccessNeed::kActive;
}

bool allows(AccessState state, Operation operation) {
  if (is_active(state)) return true;
  switch (access_need(operation)) {
    case AccessNeed::kNone: return true;
    case AccessNeed::kStandby: return state == AccessState::kStandby;
    case AccessNeed::kActive: break;
  }
  return false;
}

Sense not_accessible(AccessState state) {
  switch (state) {
    case AccessState::kStandby: return {SenseKey::kNotReady, asc::kPortInStandby};
    case AccessState::kUnavailable: return {SenseKey::kNotReady, asc::kPortUnavailable};
    case AccessState::kTransitioning: return {SenseKey::kNotReady, asc::kAccessStateTransition};
    case AccessState::kActiveOptimized:
    case AccessState::kActiveNonOptimized: break;
  }
  CHECK_MSG(false, "in an active state everything is accessible");
}

bool is_loss_of_access(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kStaleEpoch;
}

UnitAccess::UnitAccess(std::shared_ptr<const PortGroups> groups,
                       const std::vector<std::uint16_t>& target_ports)
    : groups_(std::move(groups)) {
  if (groups_ == nullptr) return;
  std::vector<std::uint16_t> ids;
  std::vector<std::uint16_t> ports;
  for (const PortGroup& group : groups_->groups()) {
    ids.push_back(group.id);
    ports.insert(ports.end(), group.ports.begin(), group.ports.end());
  }
  std::ranges::sort(ids);
  std::ranges::sort(ports);
  CHECK_MSG(ids.size() <= kTargetPortsMax && std::ranges::adjacent_find(ids) == ids.end(),
            "each target port group once");
  CHECK_MSG(ports == target_ports, "each target port is in one group");
}

std::optional<Sense> UnitAccess::lost(const Error& error, std::uint16_t target_port) const {
  if (groups_ == nullptr || !is_loss_of_access(error)) return std::nullopt;
  const AccessState now = groups_->state_of(target_port);
  return not_accessible(is_active(now) ? AccessState::kTransitioning : now);
}

std::uint16_t UnitAccess::group_of(std::uint16_t target_port) const {
  if (groups_ == nullptr) return kTargetPortGroup;
  const std::vector<PortGroup> groups = groups_->groups();
  const auto found = std::ranges::find_if(groups, [&](const PortGroup& group) {
    return std::ranges::find(group.ports, target_port) != group.ports.end();
  });
  CHECK_MSG(found != groups.end(), "each target port is in a group");
  return found->id;
}

PortGroupReport UnitAccess::report(const std::vector<std::uint16_t>& target_ports) const {
  if (groups_ == nullptr) return {.groups = {PortGroup{.ports = target_ports}}};
  return {.groups = groups_->groups(), .changes = true, .transition_s = groups_->transition_s()};
}

}  // namespace mariner::scsi

#include "server/scsi/nexus.h"

#include <bit>

#include "proto/check.h"

namespace mariner::scsi {

Sense sense_of(Attention attention) {
  switch (attention) {
    case Attention::kPowerOn: return {SenseKey::kUnitAttention, asc::kPowerOnOrReset};
    case Attention::kTargetReset: return {SenseKey::kUnitAttention, asc::kBusReset};
    case Attention::kLogicalUnitReset: return {SenseKey::kUnitAttention, asc::kDeviceReset};
    case Attention::kCommandsCleared: return {SenseKey::kUnitAttention, asc::kCommandsCleared};
    case Attention::kAccessStateChanged:
      return {SenseKey::kUnitAttention, asc::kAccessStateChanged};
    case Attention::kCapacityChanged: return {SenseKey::kUnitAttention, asc::kCapacityChanged};
    case Attention::kParametersChanged:
      return {SenseKey::kUnitAttention, asc::kModeParametersChanged};
    case Attention::kMediumChanged: return {SenseKey::kUnitAttention, asc::kMediumMayHaveChanged};
    case Attention::kReservationsPreempted:
      return {SenseKey::kUnitAttention, asc::kReservationsPreempted};
    case Attention::kReservationsReleased:
      return {SenseKey::kUnitAttention, asc::kReservationsReleased};
    case Attention::kRegistrationsPreempted:
      return {SenseKey::kUnitAttention, asc::kRegistrationsPreempted};
    case Attention::kLogParametersChanged:
      return {SenseKey::kUnitAttention, asc::kLogParametersChanged};
    case Attention::kFailurePredictedInTest:
      return {SenseKey::kUnitAttention, asc::kFailurePredictedInTest};
    case Attention::kSelfTestFailed:
      return {SenseKey::kUnitAttention, asc::kBackgroundSelfTestFailed};
  }
  CHECK_MSG(false, "no such attention");
}

void AttentionSet::add(Attention attention) {
  const auto bit = static_cast<std::uint16_t>(1u << static_cast<unsigned>(attention));
  if (attention <= Attention::kLogicalUnitReset) {
    const auto higher = static_cast<std::uint16_t>(bits_ & (bit - 1u));
    // What is lower is implied by the reset, and the reset by a higher one that still waits.
    bits_ = higher != 0 ? higher : bit;
  } else {
    bits_ |= bit;
  }
}

std::optional<Attention> AttentionSet::take() {
  if (bits_ == 0) return std::nullopt;
  const auto first = static_cast<unsigned>(std::countr_zero(bits_));
  bits_ &= static_cast<std::uint16_t>(bits_ - 1);
  return static_cast<Attention>(first);
}

std::shared_ptr<InitiatorNexus> NexusTable::attach(const NexusId& id) {
  std::erase_if(nexuses_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<InitiatorNexus>& place = nexuses_[id];
  if (auto existing = place.lock()) return existing;
  auto nexus = std::make_shared<InitiatorNexus>(id, unit_count_);
  for (std::size_t unit = 0; unit < unit_count_; ++unit) {
    nexus->attentions(unit).add(Attention::kPowerOn);
  }
  place = nexus;
  return nexus;
}

void NexusTable::establish(std::size_t unit, Attention attention, const Nexus* except) {
  for (auto& [key, weak] : nexuses_) {
    const auto nexus = weak.lock();
    if (nexus && nexus.get() != except) nexus->attentions(unit).add(attention);
  }
}

void NexusTable::establish_for(std::size_t unit, Attention attention, const NexusId& id) {
  const auto found = nexuses_.find(id);
  if (found == nexuses_.end()) return;
  if (const auto nexus = found->second.lock()) nexus->attentions(unit).add(attention);
}

}  // namespace mariner::scsi

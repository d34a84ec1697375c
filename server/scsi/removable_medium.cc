#include "server/scsi/removable_medium.h"

#include "proto/check.h"

namespace mariner::scsi {

std::optional<Sense> RemovableMedium::absence() const {
  if (present_) return std::nullopt;
  return Sense{SenseKey::kNotReady, asc::kMediumNotPresentTrayOpen};
}

void RemovableMedium::prevent(const std::shared_ptr<Nexus>& nexus) {
  auto initiator = std::static_pointer_cast<InitiatorNexus>(nexus);
  allow(initiator->id());  // at most once for each
  preventing_.push_back(std::move(initiator));
}

void RemovableMedium::allow(const NexusId& nexus) {
  allow_who_is_gone();
  std::erase_if(preventing_, [&](const auto& weak) { return weak.lock()->id() == nexus; });
}

std::optional<Sense> RemovableMedium::move(bool in) {
  CHECK(removable_);
  if (present_ == in) return std::nullopt;
  allow_who_is_gone();
  if (!preventing_.empty()) return illegal_request(asc::kMediumRemovalPrevented);
  present_ = in;
  if (in) ++load_generation_;
  return std::nullopt;
}

void RemovableMedium::allow_who_is_gone() {
  std::erase_if(preventing_, [](const auto& weak) { return weak.expired(); });
}

}  // namespace mariner::scsi

// The hidden volumes behind writable views. See volume_set.h.
#include <algorithm>
#include <utility>

#include "server/node/identity.h"
#include "server/node/volume_set.h"

namespace mariner::node {

using volume::Volume;

Result<std::shared_ptr<Volume>> VolumeSet::make_overlay(const meta::Volume& meta) {
  ServedVolume* parent = find(meta.parent_id());
  if (parent == nullptr || parent->volume == nullptr) {
    return Error{ErrorCode::kNotFound, "the volume of a writable view is gone"};
  }
  volume::VolumeOptions options;
  options.id = VolumeId{meta.id()};
  options.size_bytes = meta.size_bytes();
  options.epoch = epoch_;
  options.parent = parent->volume;
  options.parent_at = SequenceNumber{meta.parent_sequence()};
  Result<RecoveredVolumes::Found> recovering = parts_.recovered.take(meta.id());
  if (!recovering) return recovering.error();
  options.index = std::move(recovering->index);
  auto overlay =
      std::make_shared<Volume>(std::move(options), std::move(recovering->history), log_->parts(),
                               nullptr, parts_.executor, Volume::Events{});
  remember(overlay);
  return overlay;
}

Result<std::shared_ptr<Volume>> VolumeSet::create_overlay(const ServedVolume& parent,
                                                          SequenceNumber at, std::uint32_t& id) {
  Result<std::uint32_t> next = parts_.store.next_volume_id();
  if (!next) return next.error();
  meta::Volume meta;
  meta.set_id(*next);
  meta.set_size_bytes(parent.meta.size_bytes());
  meta.set_block_size(parent.meta.block_size());
  meta.set_created_ns(parts_.executor.wall_time().ns);
  meta.set_uuid(new_uuid());
  meta.set_parent_id(parent.meta.id());
  meta.set_parent_sequence(at.value);
  if (Result<void> r = parts_.store.put_volume(meta); !r) return r.error();
  overlays_[meta.id()] = meta;
  id = meta.id();
  return make_overlay(meta);
}

Result<std::shared_ptr<Volume>> VolumeSet::open_overlay(std::uint32_t id) {
  const auto found = overlays_.find(id);
  if (found == overlays_.end()) {
    return Error{ErrorCode::kNotFound, "the store has no overlay " + std::to_string(id)};
  }
  return make_overlay(found->second);
}

void VolumeSet::remove_overlay(std::uint32_t id, std::shared_ptr<Volume> overlay) {
  overlays_.erase(id);
  parts_.recovered.drop(id);
  if (Result<void> r = parts_.store.remove_volume(id); !r) {
    parts_.log.warning("cannot forget an overlay; it is removed at the next start",
                       {{"error", to_string(r.error())}});
  }
  if (overlay == nullptr) return parts_.recovered.remove_index(id);
  overlay->close(Error{ErrorCode::kNotFound, "the view was unexposed"});
  retire(std::move(overlay), [this, id] { parts_.recovered.remove_index(id); });
}

void VolumeSet::remove_orphans(const std::vector<std::uint32_t>& claimed) {
  std::vector<std::uint32_t> orphans;
  for (const auto& [id, meta] : overlays_) {
    if (std::find(claimed.begin(), claimed.end(), id) == claimed.end()) orphans.push_back(id);
  }
  for (const std::uint32_t id : orphans) remove_overlay(id, nullptr);
}

}  // namespace mariner::node

#include "server/node/cluster_views.h"

#include <utility>
#include <vector>

#include "server/node/identity.h"
#include "server/node/names.h"
#include "server/volume/history_view.h"

namespace mariner::node {

void ClusterViews::look() {
  std::map<std::string, meta::View> wanted;
  for (meta::View& view : moments_.views()) wanted[view.name()] = std::move(view);
  for (auto at = views_.begin(); at != views_.end();) {
    const auto still = wanted.find(at->first);
    if (still != wanted.end() && still->second.uuid() == at->second.meta.uuid()) {
      ++at;
      continue;
    }
    leave_(at->second.iqn);
    at = views_.erase(at);
  }
  for (const auto& [name, meta] : wanted) {
    if (views_.contains(name) || !check_volume_name(name) || meta.uuid().size() != kUuidBytes) {
      continue;
    }
    const auto volume = volumes_.all().find(meta.volume_id());
    if (volume == volumes_.all().end() || volume->second.target == nullptr) continue;
    if (volume->second.storage == nullptr) continue;
    serve(meta, volume->second);
  }
}

ClusterServedView ClusterViews::described(const meta::View& meta,
                                          const ClusterVolume& volume) const {
  ClusterServedView view{meta, view_iqn(iqn_base_, meta.name()), {}, nullptr};
  view.identity = identity_of(meta.uuid(), view.iqn, meta.name(), "VIEW");
  view.identity.target_ports = volume.identity.target_ports;
  return view;
}

void ClusterViews::serve(const meta::View& meta, const ClusterVolume& volume) {
  ClusterServedView& view = views_[meta.name()] = described(meta, volume);
  std::vector<scsi::LogicalUnitOptions> units(1);
  units[0].layer = std::make_shared<volume::HistoryView>(
      meta.size_bytes(), volume.storage->storage().past(), SequenceNumber{meta.sequence()});
  units[0].disk.identity = view.identity;
  units[0].disk.block_bytes = volume.meta.block_size();
  units[0].disk.clock = [executor = &executor_] { return executor->monotonic_time(); };
  view.device = std::make_shared<scsi::Device>(std::move(units));
}

void ClusterViews::close() {
  for (const auto& [name, view] : views_) leave_(view.iqn);
  views_.clear();
}

const ClusterServedView* ClusterViews::find_target(std::string_view iqn) const {
  for (const auto& [name, view] : views_) {
    if (view.iqn == iqn) return &view;
  }
  return nullptr;
}

}  // namespace mariner::node

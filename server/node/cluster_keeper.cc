#include "server/node/cluster_keeper.h"

namespace mariner::node {

std::vector<VolumeId> ClusterKeeper::volumes() const {
  std::vector<VolumeId> out;
  for (const auto& [id, volume] : volumes_.all()) {
    if (volume.logger != nullptr) out.push_back({id});
  }
  return out;
}

// (What a node logs stays as long as the node runs.)
std::shared_ptr<volume::Reclaimable> ClusterKeeper::find(VolumeId volume) {
  const auto found = volumes_.all().find(volume.value);
  if (found == volumes_.all().end()) return nullptr;
  const ClusterVolume& here = found->second;
  if (here.logger != nullptr) return {std::shared_ptr<void>(), here.logger.get()};
  return {std::shared_ptr<void>(), here.journal_reclaimable.get()};
}

const ClusterVolume* ClusterKeeper::logged(VolumeId volume) const {
  const auto found = volumes_.all().find(volume.value);
  if (found == volumes_.all().end() || found->second.logger == nullptr) return nullptr;
  return &found->second;
}

std::optional<HistoryKeeper::Window> ClusterKeeper::window(VolumeId volume) const {
  const ClusterVolume* const here = logged(volume);
  if (here == nullptr) return std::nullopt;
  const meta::Volume& meta = here->meta;
  return Window{meta.name(), meta.window_s(), VersionTime{meta.created_ns()}, retention_of(meta)};
}

Result<std::vector<meta::Mark>> ClusterKeeper::marks(VolumeId volume) const {
  if (logged(volume) == nullptr) return std::vector<meta::Mark>{};
  if (!moments_.readable(volume)) {
    return Error{ErrorCode::kCorrupt,
                 "an entry of the cluster's store for a mark or a view cannot be read"};
  }
  return moments_.marks(volume);
}

std::vector<meta::View> ClusterKeeper::views(VolumeId volume) const {
  if (logged(volume) == nullptr) return {};
  std::vector<meta::View> views = moments_.views();
  std::erase_if(views, [&](const meta::View& view) { return view.volume_id() != volume.value; });
  return views;
}

std::vector<index::IndexMoment> ClusterKeeper::clean_moments(VolumeId volume) const {
  return clean_among(moments_.verdicts(volume));
}

// Until the shared store says so, it is asked again: that does no harm.
void ClusterKeeper::drop_view(const std::string& name) {
  moments_.remove_view(name, [](const Result<void>&) {});
}

bool ClusterKeeper::drop_mark(const meta::Mark& mark) {
  moments_.remove_mark(VolumeId{mark.volume_id()}, mark.name(), [](const Result<void>&) {});
  return true;
}

}  // namespace mariner::node

#include "server/node/local_keeper.h"

namespace mariner::node {

std::vector<VolumeId> LocalKeeper::volumes() const {
  std::vector<VolumeId> out;
  for (const auto& [name, served] : std::as_const(volumes_).all()) {
    if (served.volume != nullptr) out.push_back({served.meta.id()});
  }
  return out;
}

std::shared_ptr<volume::Reclaimable> LocalKeeper::find(VolumeId volume) {
  return volumes_.find_volume(volume.value);
}

std::optional<HistoryKeeper::Window> LocalKeeper::window(VolumeId volume) const {
  const ServedVolume* served = volumes_.find(volume.value);
  if (served == nullptr) return std::nullopt;
  return Window{served->meta.name(), served->meta.window_s(),
                VersionTime{served->meta.created_ns()}, retention_of(served->meta)};
}

Result<std::vector<meta::Mark>> LocalKeeper::marks(VolumeId volume) const {
  return store_.marks_of(volume.value);
}

std::vector<meta::View> LocalKeeper::views(VolumeId volume) const {
  std::vector<meta::View> out;
  for (const auto& [name, view] : views_.all()) {
    if (view.meta.volume_id() == volume.value || view.meta.overlay_volume_id() == volume.value) {
      out.push_back(view.meta);
    }
  }
  return out;
}

// (What cannot be read is not known.)
std::vector<index::IndexMoment> LocalKeeper::clean_moments(VolumeId volume) const {
  const Result<std::vector<meta::Verdict>> verdicts = store_.verdicts_of(volume.value);
  return verdicts ? clean_among(*verdicts) : std::vector<index::IndexMoment>{};
}

bool LocalKeeper::drop_mark(const meta::Mark& mark) {
  if (mark.group().empty()) {
    return store_.remove_mark(mark.volume_id(), mark.name()).has_value();
  }
  // Never of one volume alone. (Its name there is "GROUP/NAME".)
  const std::string name = mark.name().substr(mark.group().size() + 1);
  return store_.remove_group_mark(mark.group(), name).has_value();
}

}  // namespace mariner::node

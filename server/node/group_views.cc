// Views of groups: those of their volumes, which come and go together. The second part of
// view_set.h.
#include <utility>

#include "server/node/names.h"
#include "server/node/view_set.h"

namespace mariner::node {

std::vector<std::string> ViewSet::together(const std::string& name) const {
  if (name.empty()) return {};
  const auto found = views_.find(name);
  const std::string whole = found == views_.end() || found->second.meta.group_view().empty()
                                ? name
                                : found->second.meta.group_view();
  std::vector<std::string> names;
  for (const auto& [each, view] : views_) {
    if (view.meta.group_view() == whole || each == whole) names.push_back(each);
  }
  return names;
}

std::string ViewSet::group_view_name(const NewView& request) const {
  if (!request.group_view.empty()) return request.group_view;
  for (int number = 1;; ++number) {
    std::string name = request.group + "-" + std::to_string(number);
    if (together(name).empty()) return name;
  }
}

Result<std::vector<meta::View>> ViewSet::plan_together(const std::vector<OfVolume>& parts) const {
  std::vector<meta::View> out;
  for (const OfVolume& part : parts) {
    NewView view = part.view;
    view.group_view = group_view_name(view);
    if (Result<void> r = check_new(view.group_view); !r) return r.error();
    view.name = view.group_view + "-" + part.volume->meta.name();
    if (view.name.size() > kVolumeNameBytesMax) {
      return Error{ErrorCode::kInvalidArgument,
                   "the view of " + part.volume->meta.name() + " would be named " + view.name +
                       ", which has more than " + std::to_string(kVolumeNameBytesMax) +
                       " characters: give the view of the group a shorter name"};
    }
    Result<meta::View> planned = plan(*part.volume, view);
    if (!planned) return planned.error();
    out.push_back(*std::move(planned));
  }
  if (views_.size() + out.size() > kViewsMax) {
    return Error{ErrorCode::kLimit,
                 "there would be more than " + std::to_string(kViewsMax) +
                     " views, which is the limit: a view of a group counts once for each of its "
                     "volumes; unexpose some"};
  }
  return out;
}

Result<std::vector<ServedView*>> ViewSet::expose_together(const std::vector<OfVolume>& parts) {
  Result<std::vector<meta::View>> views = plan_together(parts);
  if (!views) return views.error();
  std::vector<std::shared_ptr<volume::Volume>> overlays(parts.size());
  const auto give_up = [&](const Error& error) -> Result<std::vector<ServedView*>> {
    for (std::size_t i = 0; i < overlays.size(); ++i) {
      if (overlays[i] == nullptr) continue;
      volumes_.remove_overlay((*views)[i].overlay_volume_id(), std::move(overlays[i]));
    }
    return error;
  };
  const auto forget = [&](const Error& error) {
    std::vector<std::string> names;
    for (const meta::View& view : *views) {
      views_.erase(view.name());
      names.push_back(view.name());
    }
    if (Result<void> r = store_.remove_views(names); !r) return give_up(r.error());
    return give_up(error);
  };
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].view.writable) continue;
    std::uint32_t id = 0;
    Result<std::shared_ptr<volume::Volume>> overlay =
        volumes_.create_overlay(*parts[i].volume, parts[i].view.at.sequence, id);
    if (!overlay) return give_up(overlay.error());
    (*views)[i].set_overlay_volume_id(id);
    overlays[i] = *std::move(overlay);
  }
  if (Result<void> r = store_.put_views(*views); !r) return give_up(r.error());
  std::vector<ServedView*> out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Result<ServedView*> added = add(*parts[i].volume, (*views)[i], overlays[i]);
    if (!added) return forget(added.error());
    out.push_back(*added);
  }
  return out;
}

}  // namespace mariner::node

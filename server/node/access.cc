#include "server/node/access.h"

#include <algorithm>

namespace mariner::node {
namespace {

char lower_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool has_account(const meta::Volume& volume, std::string_view account) {
  return std::ranges::find(volume.auth(), account) != volume.auth().end();
}

}  // namespace

bool shown(const meta::Volume& volume, std::string_view initiator, std::string_view account) {
  if (!admits(volume, initiator)) return false;
  return account.empty() || volume.auth().empty() || has_account(volume, account);
}

Result<std::vector<iscsi::ChapAccount>> accounts_named(const Accounts& accounts,
                                                       const std::vector<std::string>& names) {
  std::vector<iscsi::ChapAccount> found;
  for (const std::string& name : names) {
    if (const auto account = accounts.find(name); account != accounts.end()) {
      found.push_back(account->second);
    }
  }
  if (found.empty() && !names.empty()) {
    return Error{ErrorCode::kUnavailable,
                 "the account " + names.front() + " is not in the configuration any more"};
  }
  return found;
}

bool admits(const meta::Volume& volume, std::string_view initiator) {
  if (volume.acl().empty()) return !volume.acl_closed();
  return std::ranges::any_of(volume.acl(), [&](const std::string& name) {
    return std::ranges::equal(name, initiator, {}, lower_letter);
  });
}

const ServedVolume* Access::volume_of(std::string_view target) const {
  if (const ServedView* view = parts_.views.find_target(target); view != nullptr) {
    return parts_.volumes.find(view->meta.volume_id());
  }
  return parts_.volumes.find_target(target);
}

bool Access::forbids(std::string_view target, std::string_view initiator) const {
  const ServedVolume* volume = volume_of(target);
  return volume != nullptr && !admits(volume->meta, initiator);
}

std::vector<std::string> Access::discoverable(std::string_view initiator,
                                              std::string_view account) const {
  std::vector<std::string> names;
  for (const auto& [name, served] : parts_.volumes.all()) {
    if (served.volume != nullptr && shown(served.meta, initiator, account))
      names.push_back(served.iqn);
  }
  for (const auto& [name, view] : parts_.views.all()) {
    const ServedVolume* volume = parts_.volumes.find(view.meta.volume_id());
    if (volume != nullptr && shown(volume->meta, initiator, account)) names.push_back(view.iqn);
  }
  return names;
}

Result<std::shared_ptr<scsi::TargetDevice>> Access::open(std::string_view target,
                                                         std::string_view initiator) const {
  const ServedVolume* volume = volume_of(target);
  if (volume != nullptr && !admits(volume->meta, initiator)) {
    return Error{ErrorCode::kInvalidArgument,
                 std::string(initiator) + " is not on the access list of " + volume->meta.name()};
  }
  if (const ServedView* view = parts_.views.find_target(target); view != nullptr) {
    if (view->device == nullptr) return not_served(*view);
    return std::shared_ptr<scsi::TargetDevice>(view->device);
  }
  if (volume == nullptr) {
    return Error{ErrorCode::kNotFound, "there is no target " + std::string(target)};
  }
  if (volume->volume == nullptr) {
    return Error{ErrorCode::kUnavailable, volume->meta.name() + " is not ready"};
  }
  if (!volume->serves()) return not_served(*volume);
  return std::shared_ptr<scsi::TargetDevice>(volume->metered);
}

std::optional<iscsi::Redirection> Access::redirection(std::string_view target) const {
  const ServedVolume* volume = volume_of(target);
  if (volume == nullptr || volume->meta.redirect().empty()) return std::nullopt;
  return iscsi::Redirection{volume->meta.redirect(), volume->meta.redirect_permanent()};
}

Result<std::vector<iscsi::ChapAccount>> Access::accounts(std::string_view target) const {
  std::vector<std::string> names = parts_.config.server.discovery_auth;
  if (!target.empty()) {
    const ServedVolume* volume = volume_of(target);
    if (volume == nullptr) return std::vector<iscsi::ChapAccount>{};
    names.assign(volume->meta.auth().begin(), volume->meta.auth().end());
  }
  return accounts_named(parts_.accounts, names);
}

// A copy is not to reach further than whoever asks for it: the access list must have the initiator,
// and whichever account let it in here must let it in there.
bool Access::may_reach(const ServedVolume& from, const ServedVolume& to,
                       const scsi::InitiatorPort& initiator) {
  if (!admits(to.meta, initiator.name)) return false;
  if (to.meta.auth().empty()) return true;
  const auto& here = from.meta.auth();
  return !here.empty() && std::ranges::all_of(here, [&](const std::string& account) {
    return has_account(to.meta, account);
  });
}

std::shared_ptr<scsi::CopyUnit> Access::find_copy_unit(std::uint32_t from,
                                                       const scsi::CopyTarget& target,
                                                       const scsi::InitiatorPort& initiator) const {
  const ServedVolume* asked = parts_.volumes.find(from);
  if (asked == nullptr) return nullptr;
  for (const auto& [name, served] : parts_.volumes.all()) {
    if (!served.serves() || !may_reach(*asked, served, initiator)) continue;
    if (auto unit = served.device->find_copy_unit(target)) return unit;
  }
  for (const auto& [name, view] : parts_.views.all()) {
    if (view.device == nullptr) continue;
    const ServedVolume* volume = parts_.volumes.find(view.meta.volume_id());
    if (volume == nullptr || !may_reach(*asked, *volume, initiator)) continue;
    if (auto unit = view.device->find_copy_unit(target)) return unit;
  }
  return nullptr;
}

std::string Access::declared_in(const ServedVolume& volume) const {
  const auto& declared = parts_.config.volumes;
  return std::ranges::find(declared, volume.meta.name(), &VolumeConfig::name) == declared.end()
             ? std::string{}
             : parts_.config_path;
}

Result<void> Access::check_changeable(const ServedVolume& volume, std::string_view key) const {
  const std::string file = declared_in(volume);
  if (file.empty()) return {};
  return Error{ErrorCode::kReadOnly, volume.meta.name() + " is declared in " + file + ": change " +
                                         std::string(key) +
                                         " of its [[volume]] there, and let the daemon read it "
                                         "again (systemctl reload marinerd)"};
}

Result<void> Access::check_account(const std::string& name) const {
  if (parts_.accounts.contains(name)) return {};
  return Error{ErrorCode::kNotFound, "there is no account " + name + ": declare [auth." + name +
                                         "] in " + parts_.config_path};
}

Result<void> Access::change(ServedVolume& volume, const meta::Volume& changed) {
  if (Result<void> r = parts_.store.put_volume(changed); !r) return r;
  volume.meta = changed;
  return {};
}

Result<void> Access::declare(ServedVolume& volume, const VolumeConfig& wanted) {
  meta::Volume changed = volume.meta;
  changed.mutable_acl()->Assign(wanted.acl.begin(), wanted.acl.end());
  changed.set_acl_closed(false);
  changed.mutable_auth()->Assign(wanted.auth.begin(), wanted.auth.end());
  changed.set_redirect(wanted.redirect);
  changed.set_redirect_permanent(wanted.redirect_permanent);
  return change(volume, changed);
}

}  // namespace mariner::node

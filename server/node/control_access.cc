// Who may use a volume's target, and where. See node_control.h.
#include <algorithm>
#include <utility>

#include "server/node/names.h"
#include "server/node/node_control.h"

namespace mariner::node {
namespace {

constexpr std::string_view kAny = "any";

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

void remove_initiator(meta::Volume& volume, const std::string& initiator) {
  auto& acl = *volume.mutable_acl();
  acl.erase(std::remove_if(acl.begin(), acl.end(),
                           [&](const std::string& name) { return lower(name) == initiator; }),
            acl.end());
}

bool has_initiator(const meta::Volume& volume, const std::string& initiator) {
  return std::ranges::any_of(volume.acl(),
                             [&](const std::string& name) { return lower(name) == initiator; });
}

}  // namespace

api::Access NodeControl::access_of(const ServedVolume& volume, const meta::Volume& meta) const {
  api::Access out;
  out.set_schema(1);
  out.set_volume(meta.name());
  out.set_any_initiator(meta.acl().empty() && !meta.acl_closed());
  out.mutable_acl()->Assign(meta.acl().begin(), meta.acl().end());
  out.mutable_accounts()->Assign(meta.auth().begin(), meta.auth().end());
  out.set_redirect(meta.redirect());
  out.set_redirect_permanent(meta.redirect_permanent());
  out.set_declared_in(node_.access_->declared_in(volume));
  return out;
}

void NodeControl::access_show(const api::AccessRequest& request, admin::Answer<api::Access> done) {
  const ServedVolume* served = node_.volumes_->find(request.volume());
  if (served == nullptr) return done(find(request.volume()).error());
  done(access_of(*served, served->meta));
}

// Makes `changed` hold, unless it is a dry run, and answers. Who may not stay is asked to leave, if
// that is meant.
void NodeControl::change_access(ServedVolume& volume, const meta::Volume& changed,
                                const AccessChange& how, admin::Answer<api::Access> done) {
  api::Access out = access_of(volume, changed);
  std::size_t cut = 0;
  for (const iscsi::SessionInfo& session : node_.front_->portal().sessions().list()) {
    if (session.discovery || node_.access_->volume_of(session.target) != &volume) continue;
    const bool forbidden = !admits(changed, session.initiator);
    const bool elsewhere =
        !changed.redirect().empty() && changed.redirect() != session.endpoints.portal;
    if (!forbidden && !elsewhere) continue;
    *out.add_sessions() = to_api(session);
    cut += forbidden ? 1 : 0;
  }
  if (cut > 0 && !how.force) {
    return done(Error{ErrorCode::kBusy, std::to_string(cut) + " sessions use " +
                                            volume.meta.name() +
                                            " that may not any more then, the first of them that "
                                            "of " +
                                            out.sessions(0).initiator()});
  }
  if (how.dry_run) return done(std::move(out));
  if (Result<void> r = node_.access_->change(volume, changed); !r) return done(r.error());
  node_.log_.info("access was changed", {{"volume", volume.meta.name()},
                                         {"what", how.what},
                                         {"sessions_asked_to_leave", out.sessions_size()}});
  node_.enforce_access();
  done(std::move(out));
}

Result<ServedVolume*> NodeControl::find_changeable(const std::string& name, std::string_view key) {
  Result<ServedVolume*> served = find_known(name);
  if (!served) return served;
  if (Result<void> r = node_.access_->check_changeable(**served, key); !r) return r.error();
  return served;
}

void NodeControl::acl_add(const api::AclRequest& request, admin::Answer<api::Access> done) {
  Result<ServedVolume*> served = find_changeable(request.volume(), "acl");
  if (!served) return done(served.error());
  meta::Volume changed = (*served)->meta;
  if (request.initiator() == kAny) {
    changed.clear_acl();
    changed.set_acl_closed(false);
  } else {
    if (Result<void> r = check_initiator_name(request.initiator()); !r) return done(r.error());
    const std::string initiator = lower(request.initiator());
    if (changed.acl_size() >= Access::kInitiatorsMax) {
      return done(Error{ErrorCode::kLimit, "the access list of " + request.volume() + " has " +
                                               std::to_string(Access::kInitiatorsMax) +
                                               " initiators already, which is the limit"});
    }
    if (!has_initiator(changed, initiator)) changed.add_acl(initiator);
    changed.set_acl_closed(true);
  }
  change_access(**served, changed,
                {.dry_run = request.dry_run(),
                 .force = request.force(),
                 .what = "acl add " + request.initiator()},
                std::move(done));
}

void NodeControl::acl_remove(const api::AclRequest& request, admin::Answer<api::Access> done) {
  Result<ServedVolume*> served = find_changeable(request.volume(), "acl");
  if (!served) return done(served.error());
  meta::Volume changed = (*served)->meta;
  const std::string initiator = lower(request.initiator());
  const bool any = changed.acl().empty() && !changed.acl_closed();
  if (initiator == kAny ? !any : !has_initiator(changed, initiator)) {
    return done(Error{ErrorCode::kNotFound,
                      any ? "every initiator may use " + request.volume() +
                                ": there is no list that " + initiator +
                                " could be removed from; remove \"any\", or add those who may"
                          : initiator + " is not on the access list of " + request.volume()});
  }
  remove_initiator(changed, initiator);
  changed.set_acl_closed(true);  // without the last one nobody may, not everybody
  change_access(**served, changed,
                {.dry_run = request.dry_run(),
                 .force = request.force(),
                 .what = "acl remove " + request.initiator()},
                std::move(done));
}

void NodeControl::auth_set(const api::AuthRequest& request, admin::Answer<api::Access> done) {
  Result<ServedVolume*> served = find_changeable(request.volume(), "auth");
  if (!served) return done(served.error());
  if (request.accounts_size() > Access::kAccountsMax) {
    return done(Error{ErrorCode::kLimit, "a volume has at most " +
                                             std::to_string(Access::kAccountsMax) + " accounts"});
  }
  meta::Volume changed = (*served)->meta;
  changed.clear_auth();
  std::string what = "auth";
  for (const std::string& account : request.accounts()) {
    if (Result<void> r = node_.access_->check_account(account); !r) return done(r.error());
    if (std::ranges::find(changed.auth(), account) == changed.auth().end()) {
      changed.add_auth(account);
      what += " " + account;
    }
  }
  change_access(**served, changed,
                {.dry_run = request.dry_run(), .force = true, .what = std::move(what)},
                std::move(done));
}

void NodeControl::redirect_set(const api::RedirectRequest& request,
                               admin::Answer<api::Access> done) {
  Result<ServedVolume*> served = find_changeable(request.volume(), "redirect");
  if (!served) return done(served.error());
  meta::Volume changed = (*served)->meta;
  changed.clear_redirect();
  changed.set_redirect_permanent(request.permanent());
  if (!request.address().empty()) {
    const Result<Endpoint> address = parse_target_address(request.address());
    if (!address) return done(address.error());
    changed.set_redirect(to_string(*address));
  } else if (request.permanent()) {
    return done(Error{ErrorCode::kInvalidArgument, "permanently redirected where to?"});
  }
  change_access(
      **served, changed,
      {.dry_run = request.dry_run(), .force = true, .what = "redirect " + changed.redirect()},
      std::move(done));
}

}  // namespace mariner::node

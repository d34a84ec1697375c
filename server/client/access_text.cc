#include "server/client/access_text.h"

namespace mariner::client {
namespace {

template <typename Names>
std::string joined(const Names& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

std::string initiators_text(const api::Access& access) {
  if (access.any_initiator()) return "any initiator";
  return access.acl().empty() ? "nobody" : joined(access.acl());
}

std::string accounts_text(const api::Access& access) {
  return access.accounts().empty() ? "none" : joined(access.accounts());
}

std::string redirect_text(const api::Access& access) {
  if (access.redirect().empty()) return "-";
  return access.redirect() + (access.redirect_permanent() ? ", permanently" : "");
}

}  // namespace mariner::client

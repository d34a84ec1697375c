#include "server/node/view_rules.h"

#include "server/node/names.h"

namespace mariner::node {

std::string free_view_name(const std::string& volume, SequenceNumber at,
                           const std::function<bool(const std::string&)>& taken) {
  constexpr std::size_t kTwinBytes = 4;  // room for the number of a twin
  const std::string number = "-" + std::to_string(at.value);
  const std::string stem =
      volume.substr(0, kVolumeNameBytesMax - number.size() - kTwinBytes) + number;
  std::string name = stem;
  for (int n = 2; taken(name); ++n) name = stem + "-" + std::to_string(n);
  return name;
}

VersionTime view_expires(std::uint64_t ttl_s, VersionTime now) {
  constexpr std::uint64_t kNs = 1'000'000'000;
  if (ttl_s == 0 || ttl_s > (UINT64_MAX - now.ns) / kNs) return {};
  return {now.ns + ttl_s * kNs};
}

Error no_view(const std::string& name) {
  return {ErrorCode::kNotFound, "there is no view " + name + "; see `mariner view list`"};
}

Result<void> check_unexpose(const api::View& view, bool force) {
  if (view.sessions() == 0 || force) return {};
  return Error{ErrorCode::kBusy, view.name() + " is used by " + std::to_string(view.sessions()) +
                                     " sessions; log them out, or use --force"};
}

}  // namespace mariner::node

#include "server/node/view_rules.h"

#include <algorithm>

#include "server/node/config.h"
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

std::uint64_t overlay_default(std::optional<ByteSize> configured, std::uint64_t log_bytes) {
  return configured ? configured->bytes : std::max(kOverlayMin.bytes, log_bytes / 4);
}

Result<void> check_overlay(const api::ExposeRequest& request) {
  const std::uint64_t bytes = request.overlay_bytes_max();
  if (bytes == 0) return {};
  if (!request.writable()) {
    return Error{ErrorCode::kInvalidArgument,
                 "a bound of the overlay was asked for, and the view is not to be writable"};
  }
  if (bytes >= kOverlayMin.bytes) return {};
  return Error{ErrorCode::kInvalidArgument, "the overlay of a writable view may hold " +
                                                format_size(kOverlayMin.bytes) + " at least; " +
                                                std::to_string(bytes) + " bytes were asked for"};
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

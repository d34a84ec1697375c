// What holds for views wherever they are remembered: names, times to live, and when one may go.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "proto/admin.pb.h"
#include "proto/error.h"
#include "proto/units.h"
#include "server/client/quantity.h"

namespace mariner::node {

// A name for a view whose name was not given: "<volume>-<sequence>", made unique by a number. A
// long volume's name is cut.
[[nodiscard]] std::string free_view_name(const std::string& volume, SequenceNumber at,
                                         const std::function<bool(const std::string&)>& taken);

// When its time to live ends; 0: never.
[[nodiscard]] VersionTime view_expires(std::uint64_t ttl_s, VersionTime now);

// What hosts may fill of the overlay of a writable view of which nothing else is asked: a quarter
// of the log, unless it is configured.
[[nodiscard]] std::uint64_t overlay_default(std::optional<ByteSize> configured,
                                            std::uint64_t log_bytes);
// kInvalidArgument: it asks for a bound of an overlay that the view does not have, or for one that
// is too small.
[[nodiscard]] Result<void> check_overlay(const api::ExposeRequest& request);

[[nodiscard]] Error no_view(const std::string& name);
// kBusy: hosts use it, and it is not taken away by force.
[[nodiscard]] Result<void> check_unexpose(const api::View& view, bool force);

}  // namespace mariner::node

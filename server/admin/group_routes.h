// The paths of groups of volumes: API.md.
#pragma once

#include <span>

#include "server/admin/route.h"

namespace mariner::admin {

[[nodiscard]] std::span<const Route> group_routes();

}  // namespace mariner::admin

// The paths of the past of volumes, and of blocks that repair it: API.md.
#pragma once

#include <span>

#include "server/admin/route.h"

namespace mariner::admin {

[[nodiscard]] std::span<const Route> past_routes();

}  // namespace mariner::admin

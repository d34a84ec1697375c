// What a view gets that is about to be exposed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "proto/units.h"

namespace mariner::node {

// A name for a view whose name was not given: "<volume>-<sequence>", made unique by a number. A
// long volume's name is cut.
[[nodiscard]] std::string free_view_name(const std::string& volume, SequenceNumber at,
                                         const std::function<bool(const std::string&)>& taken);

// When its time to live ends; 0: never.
[[nodiscard]] VersionTime view_expires(std::uint64_t ttl_s, VersionTime now);

}  // namespace mariner::node

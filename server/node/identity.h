// Names and identities of what a node serves: unique and stable for each volume and each view.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "server/scsi/identity.h"

namespace mariner::node {

inline constexpr std::size_t kUuidBytes = 16;

// Random bytes: what serial numbers and NAA designators derive from.
[[nodiscard]] std::string new_uuid();

// The target name of a volume: "<base>:<name>"; of a view: "<base>:view:<name>".
[[nodiscard]] std::string volume_iqn(std::string_view base, std::string_view name);
[[nodiscard]] std::string view_iqn(std::string_view base, std::string_view name);

// What INQUIRY says. `uuid` has kUuidBytes; `product` is "VOLUME" or "VIEW".
[[nodiscard]] scsi::Identity identity_of(std::string_view uuid, std::string iqn, std::string name,
                                         std::string_view product);

// The NAA designator in hexadecimal, as hosts print it.
[[nodiscard]] std::string naa_text(const scsi::Identity& identity);

}  // namespace mariner::node

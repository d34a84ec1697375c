// Which names volumes, targets and initiators may have.
#pragma once

#include <string_view>

#include "proto/error.h"

namespace mariner {

inline constexpr std::size_t kVolumeNameBytesMax = 63;
// RFC 7143 4.2.7.1. The base leaves room for ":", a volume's name and a view's name.
inline constexpr std::size_t kIscsiNameBytesMax = 223;
inline constexpr std::size_t kIqnBaseBytesMax = 80;

// A volume's name: 1 to 63 characters of a-z, 0-9, '.', '_' and '-', a letter or digit first and
// last. It becomes part of an iSCSI name and of file names, so "." and ".." are impossible.
[[nodiscard]] Result<void> check_volume_name(std::string_view name);

// The beginning of every target name: "iqn.YYYY-MM.reversed.domain", lower case, at most 80 bytes.
[[nodiscard]] Result<void> check_iqn_base(std::string_view name);

// An initiator's name as it stands in an access list: "iqn.", "eui." or "naa.", then printable
// ASCII without blanks (initiators exist whose names break the finer rules of RFC 3722).
[[nodiscard]] Result<void> check_initiator_name(std::string_view name);

}  // namespace mariner

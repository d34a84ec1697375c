// What a record of the $MFT says of a file by itself, whatever its attributes are worth.
//
// While a file grows, a driver writes its size before it writes where its contents are: libtsk
// refuses such a file as a whole, and a driver shows it. Pure: bytes in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "uvfs/object_state.h"

namespace mariner::uvfs {

struct NtfsRecord {
  std::uint16_t sequence = 0;
  ObjectState state;  // with the size of its contents
};

// As it stands in the $MFT, whose bytes are changed: the ends of its sectors are put back. Nothing:
// it is torn, or not in use, or belongs to another record.
[[nodiscard]] std::optional<NtfsRecord> parse_ntfs_record(std::span<std::byte> record);

// The ends of the sectors of a record or an index block, which stand elsewhere so that a torn one
// is known, are put back. False: it is torn, or none.
[[nodiscard]] bool put_back_ntfs_ends(std::span<std::byte> block);

}  // namespace mariner::uvfs

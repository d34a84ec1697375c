// MODE SENSE and MODE SELECT (SPC-4 6.11 to 6.14, SBC-3 6.5): the header, the block descriptor and
// the pages of mode_pages.h. Nothing can be saved: a reset of the logical unit returns to the
// defaults.
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "server/scsi/cdb.h"
#include "server/scsi/mode_pages.h"

namespace mariner::scsi {

struct ModeState {
  ModeParameters parameters;
  bool write_protected = false;  // the WP bit: by SWP, or because the medium cannot be written
};

// The answer to MODE SENSE, uncut; or what is wrong with the request.
[[nodiscard]] std::variant<Sense, std::vector<std::uint8_t>> mode_sense(const ModeSense& command,
                                                                        const ModeState& state,
                                                                        const Geometry& geometry);

// The parameters after MODE SELECT with this list; or what is wrong with it, and nothing changes.
[[nodiscard]] std::variant<Sense, ModeParameters> mode_select(const ModeSelect& command,
                                                              std::span<const std::byte> list,
                                                              const ModeParameters& current,
                                                              const Geometry& geometry);

}  // namespace mariner::scsi

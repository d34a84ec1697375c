// Mode pages: what MODE SENSE shows of a disk and MODE SELECT changes (SPC-4 7.5, SBC-3 6.5).
//
// Two pages: caching (08h), whose write cache is off because an acknowledged write is durable, and
// control (0Ah), of which D_SENSE and SWP can be changed. Nothing can be saved: a reset of the
// logical unit returns to the defaults.
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "server/scsi/cdb.h"

namespace mariner::scsi {

struct ModeParameters {
  bool descriptor_sense = false;        // D_SENSE
  bool software_write_protect = false;  // SWP
  friend bool operator==(const ModeParameters&, const ModeParameters&) = default;
};

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

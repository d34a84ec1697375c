// What `mariner-geometry` prints.
#pragma once

#include <cstdint>
#include <string>

#include "logging/geometry_extraction.h"

namespace mariner::client {

// How `mariner-geometry` ends; 1 and 2 as ExitCode has them.
inline constexpr int kExitFound = 0;
inline constexpr int kExitNoGeometry = 3;

struct GeometryReport {
  std::string device;  // as the user named it
  std::uint64_t sectors = 0;
  std::uint32_t sector_bytes = 0;
  bool is_file = false;
  bool rewritten = false;  // not only read
  logging::GeometryExtraction extraction;

  // Takes what does not hold for this kind of device out of the extraction, and says so: a file on
  // a rotating disk has no geometry of its own, and who only read may have seen a drive's buffer.
  void qualify();
};

// Sentences and, if there is one, the table.
[[nodiscard]] std::string to_text(const GeometryReport& report);
// One object on one line; 64-bit numbers are strings, as in the admin API.
[[nodiscard]] std::string to_json(const GeometryReport& report);
[[nodiscard]] int exit_code_of(const GeometryReport& report);

}  // namespace mariner::client

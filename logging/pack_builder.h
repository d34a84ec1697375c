// Builds a pack from complete tracks. PACK.md says what it holds; section 4 how it is chosen.
//
// Reads every track once, less than 1 MiB at a time. The bytes of base blocks that are no longer at
// hand are read again one by one. Takes about 60 bytes of memory for each payload block, those of
// the table, and about 40 MiB besides. The same tracks and options give the same pack.
//
// Blocks with equal hashes (XXH3, 128 bits) are taken as equal, and not compared. So a pack counts
// only when it has been verified (pack_verification.h); on a difference, build it again with
// deduplicate = false.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "logging/beside.h"
#include "logging/pack_source.h"
#include "logging/pack_table.h"
#include "proto/error.h"

namespace mariner::logging {

class PackSink {
 public:
  PackSink() = default;
  PackSink(const PackSink&) = delete;
  PackSink& operator=(const PackSink&) = delete;
  virtual ~PackSink() = default;

  // The pack's next bytes, which are gone on return. Blocking; an error ends the building.
  virtual Result<void> append(std::span<const std::byte> bytes) = 0;
};

struct PackOptions {
  int level = 3;  // of zstd
  bool deduplicate = true;
  bool deltas = true;
  // How many regions that hold none of its own blocks 128 KiB of track may refer to, before a
  // shared block or a delta there needs one of the same regions (PACK.md section 4). Where single
  // blocks are written over and over, 4 leaves three of four of their versions whole, and 16 none;
  // where the pack lies on a disk with a slow head, each one may cost reading in order a seek.
  std::uint32_t foreign_regions_max = 16;
  PackPause pause;
  // Reads what comes next, meanwhile. Null: nobody does. Outlives the building.
  Beside* beside = nullptr;
};

// Bytes of a track, whole blocks, that the pack has only because their hashes are those of others.
struct TakenAsEqual {
  std::uint32_t track = 0;
  std::uint32_t at = 0;  // byte offset in it
  std::uint32_t bytes = 0;
  friend bool operator==(const TakenAsEqual&, const TakenAsEqual&) = default;
};

struct BuiltPack {
  PackTable table;
  std::vector<TakenAsEqual> taken_as_equal;  // ascending, apart
};

// Appends the regions to `sink`, from byte 0 of the pack on. The caller stores the table. Errors:
// kInvalidArgument when the tracks break a bound of pack_source.h or pack_table.h; those of
// `source`, `sink` and `options.pause`, passed on: what was appended is then worthless.
[[nodiscard]] Result<BuiltPack> build_pack(std::span<const PackTrack> tracks, PackSource& source,
                                           PackSink& sink, const PackOptions& options);

}  // namespace mariner::logging

// Reads tracks back from a pack, exactly as they were. PACK.md section 3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "logging/pack_table.h"
#include "logging/region_cache.h"
#include "proto/error.h"

namespace mariner::logging {

// Where a pack's bytes are.
class PackBytes {
 public:
  PackBytes() = default;
  PackBytes(const PackBytes&) = delete;
  PackBytes& operator=(const PackBytes&) = delete;
  virtual ~PackBytes() = default;

  // Fills `to` with the pack's bytes from `at` on. Blocking, by any thread, without any alignment.
  virtual Result<void> read(std::uint64_t at, std::span<std::byte> to) = 0;
};

// Any number of threads may read. `bytes` and `cache` outlive it.
class PackReader {
 public:
  PackReader(std::uint64_t pack_id, std::shared_ptr<const PackTable> table, PackBytes& bytes,
             RegionCache& cache);

  // Fills `to` with the bytes from `offset` on of the pack's track `track` (its number in the
  // pack). kInvalidArgument when they are not all within the track; kCorrupt, naming pack and
  // region, when the pack is damaged; errors of the PackBytes passed on. `to` is then unspecified.
  [[nodiscard]] Result<void> read(std::size_t track, std::uint64_t offset,
                                  std::span<std::byte> to) const;

  [[nodiscard]] const PackTable& table() const { return *table_; }

 private:
  Result<RegionBytes> region(std::uint32_t number) const;
  Result<void> read_piece(const PackPiece& piece, std::uint32_t from,
                          std::span<std::byte> to) const;

  const std::uint64_t pack_id_;
  const std::shared_ptr<const PackTable> table_;
  PackBytes& bytes_;
  RegionCache& cache_;
};

}  // namespace mariner::logging

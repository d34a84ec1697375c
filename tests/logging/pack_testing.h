// What the tests of packs share: tracks in memory, and a pack made of them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "logging/pack_builder.h"
#include "logging/pack_reader.h"
#include "logging/pack_source.h"
#include "logging/pack_table.h"
#include "logging/region_cache.h"

namespace mariner::logging::test {

using Bytes = std::vector<std::byte>;

// Bytes that do not compress, other ones for each seed.
Bytes noise(std::uint64_t seed, std::size_t bytes);
// Bytes that compress about as program text does: words of a small vocabulary.
Bytes prose(std::uint64_t seed, std::size_t bytes);

// Tracks in memory, filled in their order.
class MemoryTracks final : public PackSource {
 public:
  // From here on all goes into a further track, of so many bytes.
  void begin_track(std::uint64_t bytes);
  void add_header(std::span<const std::byte> bytes);
  // Whole blocks, consecutive from `lbn` on.
  void add_payload(std::span<const std::byte> bytes, std::uint64_t lbn = kNoBlock,
                   std::uint32_t volume = 1);
  // Zeros that no batch covers.
  void add_hole(std::uint64_t bytes);

  [[nodiscard]] std::span<const PackTrack> tracks() const { return tracks_; }
  // What should be read back: zeros behind `used`.
  [[nodiscard]] std::span<const std::byte> contents(std::size_t track) const;
  [[nodiscard]] std::uint64_t payload_bytes() const;
  // Behind the last batch, where nothing counts.
  void litter(std::size_t track);

  // Fails, in the test's terms, when it is not aligned as it must be.
  Result<void> read(std::size_t track, std::uint64_t offset, std::span<std::byte> to) override;

  std::uint64_t reads = 0;
  std::uint64_t fail_at_read = UINT64_MAX;  // its number, from 0
  Bytes* tampered = nullptr;                // what track 0 is from `tampered_from` reads on
  std::uint64_t tampered_from = UINT64_MAX;

  Bytes& bytes(std::size_t track) { return bytes_[track]; }

 private:
  std::vector<PackTrack> tracks_;
  std::vector<Bytes> bytes_;
  std::vector<Bytes> littered_;
};

// Where a pack is written, and read from.
class MemoryPack final : public PackSink, public PackBytes {
 public:
  Result<void> append(std::span<const std::byte> more) override;
  Result<void> read(std::uint64_t at, std::span<std::byte> to) override;

  Bytes bytes;
  std::uint64_t fail_at_append = UINT64_MAX;  // its number, from 0
  std::uint64_t appends = 0;
  std::vector<std::uint64_t> reads;  // their places
};

// A pack of those tracks; a test failure when it cannot be built.
struct MadePack {
  explicit MadePack(MemoryTracks& tracks, PackOptions options = {});

  MemoryPack pack;
  std::shared_ptr<const PackTable> table;
  std::uint64_t table_bytes = 0;
  std::vector<TakenAsEqual> taken_as_equal;
  RegionCache cache{64u << 20};
  std::unique_ptr<PackReader> reader;

  [[nodiscard]] std::uint64_t bytes() const { return pack.bytes.size() + table_bytes; }
};

// Whether every track reads back, whole and in `count` parts at random places.
void expect_reads_back(const MemoryTracks& tracks, const PackReader& reader, std::uint64_t seed = 1,
                       int count = 200);

// Every rule that a pack keeps beyond those of its table: deltas and references lead to literals,
// and 128 KiB of track to few foreign regions.
void expect_shallow(const PackTable& table);

}  // namespace mariner::logging::test

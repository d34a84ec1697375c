// What becomes of each block.
//
// A block that stands plain in a region is a *literal*. Every block is a literal, a reference to
// one with the same bytes, a delta of one, or zero; so reading it opens two regions at most.
#include "logging/pack_builder.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "logging/base_cache.h"
#include "logging/first_blocks.h"
#include "logging/pack_fan_out.h"
#include "logging/pack_regions.h"
#include "logging/pack_survey.h"
#include "logging/pack_window.h"
#include "proto/check.h"

namespace mariner::logging {
namespace {

using Stream = PackRegions::Stream;
using Place = PackRegions::Place;

constexpr std::uint32_t kNone = PackSurvey::kNone;
// A run of references is worth the opening of regions whatever else its stretch refers to.
constexpr std::uint32_t kRunBlocksMin = 4;
// A delta is longer to read than a literal: it must be worth it.
constexpr std::uint32_t kDeltaBytesMax = 1024;
constexpr std::uint32_t kDeltaBytesLeast = 64;  // that is always worth it
// After so many in a row that were not worth it, one in so many is tried.
constexpr std::uint32_t kDeltaMissesMax = 64;
constexpr std::uint32_t kDeltaTriedOneIn = 8;
constexpr std::size_t kBaseCacheBlocks = 8192;

class PackWriter {
 public:
  PackWriter(std::span<const PackTrack> tracks, PackSource& source, PackSink& sink,
             const PackOptions& options, PackPace& pace)
      : tracks_(tracks),
        options_(options),
        survey_(tracks, options.deltas),
        firsts_(options.deduplicate ? survey_.blocks() : 0),
        first_(survey_.blocks()),
        window_(tracks, source, pace, PackWindow::kBytes, options.beside),
        base_window_(tracks, source, pace, PackWindow::kBytesMin),
        regions_(sink, options.level),
        compressor_(options.level),
        fan_out_(options.foreign_regions_max),
        bases_(kBaseCacheBlocks),
        nearest_(survey_.blocks()),
        places_(survey_.blocks()),
        families_(survey_.blocks()) {}

  Result<BuiltPack> write() {
    for (std::size_t track = 0; track < tracks_.size(); ++track) {
      done_.push_back({.bytes = tracks_[track].bytes, .pieces = {}});
      if (const Result<void> written = write_track(track); !written) return written.error();
      done_.back().pieces.shrink_to_fit();
    }
    Result<std::vector<PackRegion>> regions = regions_.finish();
    if (!regions) return regions.error();
    return BuiltPack{PackTable(std::move(done_), std::move(*regions)), std::move(equal_)};
  }

 private:
  // The literal that a block's bytes are, or that its next version may have as its base.
  struct Nearest {
    std::uint32_t literal = kNone;  // number of a block
    bool is_equal = false;
  };
  // A literal's deltas.
  struct Family {
    std::uint32_t deltas = 0;
    std::uint32_t delta_bytes = 0;
  };

  Result<void> write_track(std::size_t track) {
    track_ = track;
    begin_looking();
    std::uint64_t at = 0;
    for (const PackBlocks& blocks : tracks_[track].payloads) {
      if (const Result<void> between = write_between(at, blocks.at); !between) return between;
      for (std::uint32_t i = 0; i < blocks.blocks; ++i) {
        const Result<void> block = write_block(blocks.at + i * kBlockBytes);
        if (!block) return block;
        ++next_block_;
      }
      at = blocks.end();
    }
    return write_between(at, tracks_[track].used);
  }

  // Header areas.
  Result<void> write_between(std::uint64_t at, std::uint64_t end) {
    while (at < end) {
      const std::uint64_t bytes = std::min<std::uint64_t>(end - at, kBlockBytes);
      const auto plain = window_.at(track_, at, bytes);
      if (!plain) return plain.error();
      if (!is_zero_block(*plain)) {
        const Result<Place> place = regions_.add(Stream::kHeaders, *plain);
        if (!place) return place.error();
        add_plain(static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(bytes), *place);
      }
      at += bytes;
    }
    return {};
  }

  Result<void> write_block(std::uint32_t at) {
    const std::uint32_t block = next_block_;
    if (const Result<void> looked = look_through(block + kRunBlocksMin - 1); !looked) return looked;
    const std::uint32_t previous = survey_.previous_version(block);
    const std::uint32_t base = previous == kNone ? kNone : nearest_[previous].literal;
    if (is_zero(block)) {
      nearest_[block] = {base, false};
      return {};
    }
    fan_out_.enter(track_, at, regions_.payload_region());
    const auto plain = window_.at(track_, at, kBlockBytes);
    if (!plain) return plain.error();
    if (refer_to_equal(block, at, *plain)) return {};
    if (base != kNone && tries_delta() && fan_out_.allows(places_[base].region)) {
      const Result<bool> written = write_delta(at, *plain, base);
      if (!written) return written.error();
      if (*written) {
        delta_misses_ = 0;
        nearest_[block] = {base, false};
        return {};
      }
      ++delta_misses_;
    }
    return write_literal(block, at, *plain);
  }

  Result<void> write_literal(std::uint32_t block, std::uint32_t at,
                             std::span<const std::byte> plain) {
    const Result<Place> place = regions_.add(Stream::kPayloads, plain);
    if (!place) return place.error();
    add_plain(at, kBlockBytes, *place);
    places_[block] = *place;
    nearest_[block] = {block, true};
    nearest_[first_[block]] = {block, true};
    if (survey_.has_later_version(block)) bases_.insert(block, plain);
    return {};
  }

  // Of the blocks that have been looked at.
  [[nodiscard]] bool is_zero(std::uint32_t block) const { return first_[block] == kNone; }

  void begin_looking() {
    looked_run_ = 0;
    looked_in_run_ = 0;
    track_end_block_ = next_block_;
    for (const PackBlocks& blocks : tracks_[track_].payloads) track_end_block_ += blocks.blocks;
  }

  // Finds for each block of the track up to `last` the first one with its hash.
  Result<void> look_through(std::uint32_t last) {
    for (; looked_end_ <= last && looked_end_ < track_end_block_; ++looked_end_) {
      const PackBlocks& blocks = tracks_[track_].payloads[looked_run_];
      const auto plain =
          window_.at(track_, blocks.at + std::uint64_t{looked_in_run_} * kBlockBytes, kBlockBytes);
      if (!plain) return plain.error();
      if (is_zero_block(*plain)) {
        first_[looked_end_] = kNone;
      } else {
        first_[looked_end_] = options_.deduplicate
                                  ? firsts_.add(looked_end_, FirstBlocks::hash_of(*plain))
                                  : looked_end_;
      }
      if (++looked_in_run_ < blocks.blocks) continue;
      looked_in_run_ = 0;
      ++looked_run_;
    }
    return {};
  }

  // The literal with the block's bytes; kNone if there is none.
  [[nodiscard]] std::uint32_t equal_literal(std::uint32_t block) const {
    if (is_zero(block)) return kNone;
    const std::uint32_t first = first_[block];
    return first < next_block_ && nearest_[first].is_equal ? nearest_[first].literal : kNone;
  }

  // Whether the literals stand one behind the other.
  [[nodiscard]] bool follows(std::uint32_t literal, std::uint32_t before) const {
    return literal == before + 1 &&
           (places_[literal].region == places_[before].region || places_[literal].offset == 0);
  }

  // Whether the block begins a run of references that are allowed whatever they refer to.
  [[nodiscard]] bool begins_run(std::uint32_t block, std::uint32_t literal) const {
    for (std::uint32_t i = 1; i < kRunBlocksMin; ++i) {
      if (block + i >= track_end_block_) return false;
      const std::uint32_t next = equal_literal(block + i);
      if (next == kNone || !follows(next, literal + i - 1)) return false;
    }
    return true;
  }

  bool refer_to_equal(std::uint32_t block, std::uint32_t at, std::span<const std::byte> plain) {
    const std::uint32_t literal = equal_literal(block);
    if (literal == kNone) return false;
    const bool is_in_run = run_block_ == block && follows(literal, run_literal_);
    const bool is_run = is_in_run || begins_run(block, literal);
    const Place place = places_[literal];
    if (!is_run && !fan_out_.allows(place.region)) return false;
    if (is_run) {
      run_block_ = block + 1;
      run_literal_ = literal;
    }
    fan_out_.refer(place.region);
    add_plain(at, kBlockBytes, place);
    add_equal(at);
    nearest_[block] = {literal, true};
    if (survey_.has_later_version(block)) bases_.insert(literal, plain);
    return true;
  }

  void add_equal(std::uint32_t at) {
    if (!equal_.empty()) {
      TakenAsEqual& last = equal_.back();
      if (last.track == track_ && last.at + last.bytes == at) {
        last.bytes += kBlockBytes;
        return;
      }
    }
    equal_.push_back({static_cast<std::uint32_t>(track_), at, kBlockBytes});
  }

  // Contents that are new each time have none, and looking for one is what takes longest.
  [[nodiscard]] bool tries_delta() {
    if (!options_.deltas) return false;
    return delta_misses_ < kDeltaMissesMax || ++deltas_left_out_ % kDeltaTriedOneIn == 0;
  }

  // As a delta of `base`, or as the base itself; false when neither is worth it. Versions grow away
  // from their base: the next one becomes a literal when its delta would be longer than what the
  // literal and its deltas have taken on average, which is where a new base begins to pay.
  Result<bool> write_delta(std::uint32_t at, std::span<const std::byte> plain, std::uint32_t base) {
    const Result<std::span<const std::byte>> base_bytes = bytes_of(base);
    if (!base_bytes) return base_bytes.error();
    if (std::ranges::equal(*base_bytes, plain)) {  // a block that came back, or was written again
      fan_out_.refer(places_[base].region);
      add_plain(at, kBlockBytes, places_[base]);
      return true;
    }
    Family& family = families_[base];
    const std::uint32_t cost = regions_.block_cost();
    const std::uint32_t average = (cost + family.delta_bytes) / (family.deltas + 1);
    const std::uint32_t bytes_max =
        std::clamp(std::min(cost / 2, average), kDeltaBytesLeast, kDeltaBytesMax);
    const std::size_t bytes =
        compressor_.delta(*base_bytes, plain, std::span(delta_).first(bytes_max));
    if (bytes == 0) return false;
    const Result<Place> place = regions_.add_delta(std::span(delta_).first(bytes));
    if (!place) return place.error();
    fan_out_.refer(places_[base].region);
    ++family.deltas;
    family.delta_bytes += static_cast<std::uint32_t>(bytes);
    done_.back().pieces.push_back({.at = at,
                                   .bytes = kBlockBytes,
                                   .region = place->region,
                                   .offset = place->offset,
                                   .base_region = places_[base].region,
                                   .base_offset = places_[base].offset,
                                   .delta_bytes = static_cast<std::uint16_t>(bytes),
                                   .kind = PackPiece::Kind::kDelta});
    return true;
  }

  Result<std::span<const std::byte>> bytes_of(std::uint32_t literal) {
    if (const auto cached = bases_.find(literal); !cached.empty()) return cached;
    const PackSurvey::Place place = survey_.place_of(literal);
    const auto read = base_window_.at(place.track, place.at, kBlockBytes);
    if (!read) return read.error();
    bases_.insert(literal, *read);
    return bases_.find(literal);
  }

  // Goes on with the last piece where it can.
  void add_plain(std::uint32_t at, std::uint32_t bytes, Place place) {
    std::vector<PackPiece>& pieces = done_.back().pieces;
    if (!pieces.empty()) {
      PackPiece& last = pieces.back();
      if (last.kind == PackPiece::Kind::kPlain && last.end() == at && last.region == place.region &&
          last.offset + last.bytes == place.offset) {
        last.bytes += bytes;
        return;
      }
    }
    pieces.push_back({.at = at, .bytes = bytes, .region = place.region, .offset = place.offset});
  }

  const std::span<const PackTrack> tracks_;
  const PackOptions& options_;
  const PackSurvey survey_;
  FirstBlocks firsts_;
  std::vector<std::uint32_t> first_;  // with the hash of each block; kNone: it is zero
  PackWindow window_;
  PackWindow base_window_;
  PackRegions regions_;
  PackCompressor compressor_;
  PackFanOut fan_out_;
  BaseCache bases_;
  std::array<std::byte, kDeltaBytesMax> delta_;
  std::vector<Nearest> nearest_;  // of each block
  std::vector<Place> places_;     // of those that are literals
  std::vector<Family> families_;  // of those
  std::vector<PackTable::Track> done_;
  std::size_t track_ = 0;
  std::vector<TakenAsEqual> equal_;
  std::uint32_t next_block_ = 0;
  // In the track: what first_ is known of, and where the next block is.
  std::uint32_t looked_end_ = 0;
  std::size_t looked_run_ = 0;
  std::uint32_t looked_in_run_ = 0;
  std::uint32_t track_end_block_ = 0;
  std::uint32_t delta_misses_ = 0;  // in a row
  std::uint32_t deltas_left_out_ = 0;
  std::uint32_t run_block_ = kNone;  // the block that would go on with the run of references
  std::uint32_t run_literal_ = kNone;
};

}  // namespace

Result<BuiltPack> build_pack(std::span<const PackTrack> tracks, PackSource& source, PackSink& sink,
                             const PackOptions& options) {
  if (const Result<void> checked = check_pack_tracks(tracks); !checked) return checked.error();
  PackPace pace(options.pause);
  return PackWriter(tracks, source, sink, options, pace).write();
}

}  // namespace mariner::logging

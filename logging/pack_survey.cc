#include "logging/pack_survey.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "proto/bytes.h"
#include "proto/units.h"

namespace mariner::logging {
namespace {

struct Hash {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const Hash&, const Hash&) = default;
};

Hash hash_of(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

// Slots of an open table for so many blocks: at most two of three are taken.
std::size_t slots_for(std::size_t blocks) { return blocks + blocks / 2 + 1; }

std::size_t slot_of(std::uint64_t hash, std::size_t slots) { return ((hash >> 32) * slots) >> 32; }

// The first block of each hash.
class Firsts {
 public:
  explicit Firsts(std::size_t blocks) : hashes_(blocks), slots_(slots_for(blocks), kFree) {}

  // `block` has that hash; returns the first one that had it.
  std::uint32_t add(std::uint32_t block, const Hash& hash) {
    for (std::size_t slot = slot_of(hash.low, slots_.size());; slot = next(slot)) {
      if (slots_[slot] == kFree) {
        slots_[slot] = block;
        hashes_[block] = hash;
        return block;
      }
      if (hashes_[slots_[slot]] == hash) return slots_[slot];
    }
  }

 private:
  static constexpr std::uint32_t kFree = UINT32_MAX;
  [[nodiscard]] std::size_t next(std::size_t slot) const {
    return slot + 1 == slots_.size() ? 0 : slot + 1;
  }

  std::vector<Hash> hashes_;  // of the blocks that are in the table
  std::vector<std::uint32_t> slots_;
};

// The last block seen of each block of a volume. Half of a hash stands for the block: taking one
// for another costs a delta that is too long, and nothing else.
class Latest {
 public:
  explicit Latest(std::size_t blocks) : slots_(slots_for(blocks)) {}

  // `block` is a version of that block; returns the one before, or kNone.
  std::uint32_t replace(VolumeId volume, std::uint64_t lbn, std::uint32_t block) {
    std::byte key[12];
    store_le(key, lbn);
    store_le(key + 8, volume.value);
    const std::uint64_t hash = XXH3_64bits(key, sizeof key);
    const auto tag = static_cast<std::uint32_t>(hash);
    for (std::size_t slot = slot_of(hash, slots_.size());; slot = next(slot)) {
      Slot& found = slots_[slot];
      if (found.block == PackSurvey::kNone || found.tag == tag) {
        found.tag = tag;
        return std::exchange(found.block, block);
      }
    }
  }

 private:
  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t block = PackSurvey::kNone;
  };
  [[nodiscard]] std::size_t next(std::size_t slot) const {
    return slot + 1 == slots_.size() ? 0 : slot + 1;
  }

  std::vector<Slot> slots_;
};

}  // namespace

bool is_zero_block(std::span<const std::byte> bytes) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  if (bytes.size() < kWord) return all_zero(bytes);
  return load_le<std::uint64_t>(bytes.data()) == 0 &&
         std::memcmp(bytes.data(), bytes.data() + kWord, bytes.size() - kWord) == 0;
}

Result<PackSurvey> PackSurvey::of(std::span<const PackTrack> tracks, PackWindow& window,
                                  const Options& options) {
  PackSurvey survey;
  std::uint32_t count = 0;
  for (std::size_t track = 0; track < tracks.size(); ++track) {
    for (const PackBlocks& blocks : tracks[track].payloads) {
      survey.runs_.push_back({count, static_cast<std::uint32_t>(track), blocks.at});
      count += blocks.blocks;
    }
  }
  survey.first_.resize(count);
  if (options.versions) survey.previous_.resize(count, kNone);
  Firsts firsts(options.equals ? count : 0);
  Latest latest(options.versions ? count : 0);
  std::uint32_t number = 0;
  for (std::size_t track = 0; track < tracks.size(); ++track) {
    for (const PackBlocks& blocks : tracks[track].payloads) {
      for (std::uint32_t i = 0; i < blocks.blocks; ++i, ++number) {
        const auto bytes =
            window.at(track, blocks.at + std::uint64_t{i} * kBlockBytes, kBlockBytes);
        if (!bytes) return bytes.error();
        std::uint32_t& first = survey.first_[number];
        if (is_zero_block(*bytes)) {
          first = kNone;
        } else {
          first = options.equals ? firsts.add(number, hash_of(*bytes)) : number;
        }
        if (options.versions && blocks.lbn != kNoBlock) {
          survey.previous_[number] = latest.replace(blocks.volume, blocks.lbn + i, number);
        }
      }
    }
  }
  if (options.versions) survey.mark_followed();
  return survey;
}

void PackSurvey::mark_followed() {
  followed_.resize(first_.size());
  for (const std::uint32_t previous : previous_) {
    if (previous == kNone) continue;
    followed_[previous] = true;
    if (first_[previous] != kNone) followed_[first_[previous]] = true;
  }
}

PackSurvey::Place PackSurvey::place_of(std::uint32_t block) const {
  const auto behind = std::ranges::upper_bound(runs_, block, {}, &Run::first);
  const Run& run = *std::prev(behind);
  return {run.track, run.at + (block - run.first) * kBlockBytes};
}

}  // namespace mariner::logging

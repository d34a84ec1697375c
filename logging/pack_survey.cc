#include "logging/pack_survey.h"

#include <xxhash.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "logging/open_table.h"
#include "proto/bytes.h"
#include "proto/units.h"

namespace mariner::logging {
namespace {

// The last block seen of each block of a volume. Half of a hash stands for the block: taking one
// for another costs a delta that is too long, and nothing else.
class Latest {
 public:
  explicit Latest(std::size_t blocks) : slots_(open_table_slots(blocks)) {}

  // `block` is a version of that block; returns the one before, or kNone.
  std::uint32_t replace(VolumeId volume, std::uint64_t lbn, std::uint32_t block) {
    std::byte key[12];
    store_le(key, lbn);
    store_le(key + 8, volume.value);
    const std::uint64_t hash = XXH3_64bits(key, sizeof key);
    const auto tag = static_cast<std::uint32_t>(hash);
    for (std::size_t slot = open_table_slot(hash, slots_.size());;
         slot = next_slot(slot, slots_.size())) {
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
  std::vector<Slot> slots_;
};

}  // namespace

PackSurvey::PackSurvey(std::span<const PackTrack> tracks, bool versions) {
  for (std::size_t track = 0; track < tracks.size(); ++track) {
    for (const PackBlocks& blocks : tracks[track].payloads) {
      runs_.push_back({blocks_, static_cast<std::uint32_t>(track), blocks.at});
      blocks_ += blocks.blocks;
    }
  }
  if (versions) find_versions(tracks);
}

void PackSurvey::find_versions(std::span<const PackTrack> tracks) {
  previous_.resize(blocks_, kNone);
  followed_.resize(blocks_);
  Latest latest(blocks_);
  std::uint32_t number = 0;
  for (const PackTrack& track : tracks) {
    for (const PackBlocks& blocks : track.payloads) {
      for (std::uint32_t i = 0; i < blocks.blocks; ++i, ++number) {
        if (blocks.lbn == kNoBlock) continue;
        const std::uint32_t previous = latest.replace(blocks.volume, blocks.lbn + i, number);
        previous_[number] = previous;
        if (previous != kNone) followed_[previous] = true;
      }
    }
  }
}

PackSurvey::Place PackSurvey::place_of(std::uint32_t block) const {
  const auto behind = std::ranges::upper_bound(runs_, block, {}, &Run::first);
  const Run& run = *std::prev(behind);
  return {run.track, run.at + (block - run.first) * kBlockBytes};
}

}  // namespace mariner::logging

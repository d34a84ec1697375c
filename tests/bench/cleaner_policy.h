// Ways to clean a log (cleaner_model.h): into which stream each version goes, and what is freed
// when room is wanted.
//
// One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "tests/bench/cleaner_heat.h"
#include "tests/bench/cleaner_model.h"

namespace mariner::bench {

class CleanerPolicy {
 public:
  struct Streams {
    StreamId written = 0;
    StreamId before_image = 0;
  };

  virtual ~CleanerPolicy() = default;
  // Where a write of `block` goes. Once for each, in order, before it is made.
  virtual Streams streams_of(const CleanerModel& model, std::uint32_t block) = 0;
  // Frees one track. False: none can be freed with a gain, unless the horizon moves.
  virtual bool clean(CleanerModel& model) = 0;
  // After each write, before room is wanted.
  virtual void settle(CleanerModel&) {}
};

// Survivors of a victim are at most a share `moved_max` of its track.

// What Mariner does today: one stream, the oldest track; current versions are dropped.
std::unique_ptr<CleanerPolicy> make_fifo(double moved_max);

// The track with the fewest needed blocks. With `keep_current` current versions are moved, too.
std::unique_ptr<CleanerPolicy> make_greedy(double moved_max, bool keep_current);

// Sprite LFS: (1 - u) * age / (1 + u), u being the needed share. Survivors and before-images have a
// stream of their own. Current versions are dropped.
std::unique_ptr<CleanerPolicy> make_cost_benefit(double moved_max);

// What is written is in a young stream that takes `young` of the log. When that is full, the
// replaced versions of its oldest track are moved to the old stream, and current ones dropped; or
// all of it becomes a track of the old stream as it is, if at least `adopt` of it are replaced
// versions. The old one, which before-images go to, is freed in order.
std::unique_ptr<CleanerPolicy> make_generations(double moved_max, double young, double adopt);

struct HeatOptions {
  double moved_max = 0.875;
  double span = 0;       // host writes; what is expected to be written again within it is hot
  unsigned buckets = 1;  // of history, by when it expires; streams only, at most kStreamsMax - 2
  // Rings only; else what would go there goes to the hot ring.
  bool late_ring = true;
  bool history_ring = true;
  // Rings only: the span shrinks while more than this share of a hot track survives, and grows
  // back up to `span` while less does. 1: it stays.
  double survivors = 1;
};

// Hot and cold writes, and history by how much of the window it still has: streams of their own.
// Victims by benefit over cost over all of them.
std::unique_ptr<CleanerPolicy> make_streams(const HeatOptions& options,
                                            std::unique_ptr<CleanerHeat> heat);

// Four rings, of each of which the oldest track is freed first: hot writes; cold writes, dropped
// when room is wanted, as soon as the image holds them; history, which expires in its order:
// before-images and what was replaced among the cold; and what survived where it was, which has not
// long to go.
std::unique_ptr<CleanerPolicy> make_rings(const HeatOptions& options,
                                          std::unique_ptr<CleanerHeat> heat);

}  // namespace mariner::bench

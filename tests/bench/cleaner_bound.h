// What theory allows a cleaner: the least number of blocks appended for a host write, where the log
// has `room` blocks for all that is not history. Each host write replaces one version, which is
// needed for a window from then on; so history takes exactly the window, and what is left of the
// log is for current versions and for slots that are dead.
//
// A load is some classes of blocks, each written at a rate of its own, without memory: the time to
// a block's next write is exponentially distributed.
#pragma once

#include <span>

namespace mariner::bench {

struct HeatClass {
  double writes = 0;  // share of the host writes
  double blocks = 0;  // of the volume
};

struct CleanerRoom {
  double room = 0;    // blocks
  double window = 0;  // host writes
  double lag = 0;     // host writes until a version may be dropped to the image
};

// By one that knows when each block will be written next, and has no dead slots: what will be
// current longest is dropped as soon as the image holds it.
double amplification_of_oracle(std::span<const HeatClass> load, const CleanerRoom& room);

// By one that knows each block's rate alone, and has no dead slots: what is in the log of current
// versions is that of the blocks that are written most.
double amplification_without_tracks(std::span<const HeatClass> load, const CleanerRoom& room);

// The same with tracks: what is written together is freed together. A version of a class either is
// dropped with its track when the image holds it, or stays with it until the window and `x` writes
// have passed. Of what was not replaced within x, that which has been since is moved then, once, to
// where no slot is dead, and what is current is dropped. All tracks of a class are treated alike: a
// cleaner that chooses among them by what they happen to hold may do a little better.
double amplification_with_tracks(std::span<const HeatClass> load, const CleanerRoom& room);

}  // namespace mariner::bench

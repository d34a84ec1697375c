// The moments of a volume that a question is about.
#pragma once

#include <cstdint>

#include "proto/units.h"

namespace mariner::uvfs {

// [first, last]: what was at `first`, and every write behind it up to `last`.
struct Stretch {
  SequenceNumber first;
  SequenceNumber last;
  friend bool operator==(const Stretch&, const Stretch&) = default;
};

// A moment, and the time of its last write.
struct Instant {
  SequenceNumber at;
  VersionTime time;
  friend auto operator<=>(const Instant&, const Instant&) = default;
};

// Behind every moment that there is.
inline constexpr SequenceNumber kEndless{~std::uint64_t{0}};

}  // namespace mariner::uvfs

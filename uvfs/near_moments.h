// Moments of a volume that lie close together, and what was written between them: a block that was
// not is the same at both (dissertation 4.5.3).
//
// Asked is the past once for each two that are neighbours. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

#include "ifsck/past.h"

namespace mariner::uvfs {

class NearMoments {
 public:
  static constexpr std::uint64_t kWritesMax = 20'000;   // between two that are close together
  static constexpr std::size_t kRangesMax = 16 * 1024;  // that they touched
  static constexpr std::size_t kMomentsMax = 1024;      // beyond, all are forgotten
  static constexpr int kStepsMax = 16;                  // from one to the next, both ways

  // `past` outlives it.
  explicit NearMoments(ifsck::Past& past) : past_(past) {}

  // From now on it is one of them. What the past cannot say is as if they lay far from each other.
  void add(SequenceNumber at);
  [[nodiscard]] bool has(SequenceNumber at) const { return moments_.contains(at); }
  // Calls `visit` for others at which the block is the same, the nearest ones first, until it says
  // true. Of a moment that is none of them: for none.
  using Visit = std::function<bool(SequenceNumber)>;
  bool any_alike(Lbn block, SequenceNumber at, const Visit& visit) const;

 private:
  // Blocks that were written to since the moment before; none: that lies far.
  using Written = std::optional<std::vector<BlockRange>>;
  using Moments = std::map<SequenceNumber, Written>;

  [[nodiscard]] Written written_between(SequenceNumber from, SequenceNumber to) const;
  [[nodiscard]] static bool is_same(const Written& written, Lbn block);

  ifsck::Past& past_;
  Moments moments_;
};

}  // namespace mariner::uvfs

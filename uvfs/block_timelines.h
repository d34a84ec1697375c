// When which blocks of a volume were written in a stretch, and what they held then: asked for many
// blocks at once, and once for each.
//
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "ifsck/past.h"
#include "proto/error.h"
#include "proto/units.h"
#include "uvfs/stretch.h"

namespace mariner::uvfs {

class BlockTimelines {
 public:
  using Version = ifsck::Past::Version;
  using Question = ifsck::Past::Question;

  // Writes that are kept: up to 90 bytes for each.
  static constexpr std::size_t kVersionsMax = 10'000'000;

  // `past` outlives it. Errors, here and below: of the past; kLimit: more than kVersionsMax.
  [[nodiscard]] static Result<BlockTimelines> open(ifsck::Past& past, const Stretch& stretch);

  [[nodiscard]] const Stretch& stretch() const { return stretch_; }
  [[nodiscard]] ifsck::Past& past() const { return *past_; }
  // Of the stretch's first moment.
  [[nodiscard]] VersionTime first_time() const { return first_time_; }

  // Adds the blocks of `range` that were written in the stretch to `to`: few of many.
  void add_written(const BlockRange& range, std::vector<Lbn>& to) const;
  // Of these, in any order, of() is known from then on.
  [[nodiscard]] Result<void> load(std::vector<Lbn> blocks);
  // The writes in (first, last] to a block that was loaded, ascending. Good until the next load().
  [[nodiscard]] std::span<const Version> of(Lbn block) const;
  // Those in (from, end).
  [[nodiscard]] std::span<const Version> of(Lbn block, SequenceNumber from,
                                            SequenceNumber end) const;

  // Calls `visit(index, bytes)` for the block of each question, in order.
  using Visit = std::function<void(std::size_t index, std::span<const std::byte> block)>;
  [[nodiscard]] Result<void> read(std::span<const Question> questions, const Visit& visit) const;

 private:
  struct Place {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  BlockTimelines(ifsck::Past& past, const Stretch& stretch) : past_(&past), stretch_(stretch) {}

  ifsck::Past* past_;
  Stretch stretch_;
  VersionTime first_time_;
  std::vector<BlockRange> written_;
  std::unordered_map<std::uint64_t, Place> places_;
  std::vector<Version> versions_;
};

}  // namespace mariner::uvfs

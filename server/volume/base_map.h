// Which blocks of a volume have their base in the image: what the history does not reach back to.
//
// A block that was never written has zeros for its base, unless the volume was imported. When the
// log gives up a block's newest version because the image holds it durably, the image becomes its
// base, and from then on the block's contents are logged as a before-image before they are first
// overwritten (design.md, invariant 5). Never goes back: a block that has its base in the image may
// be captured once too often, never too seldom.
//
// What is added counts at once, and is stored a little later, before the log gives anything up. Who
// leaves something in an image because of what this says, and nowhere else, asks before whether a
// crash would take that back (is_stored()).
//
// It also remembers, until a restart, where the image was overwritten since it became the base:
// there it cannot be that any more, so that whoever overwrites it again need not ask the history
// first.
//
// Owner's thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "proto/units.h"
#include "server/volume/block_set.h"

namespace mariner::volume {

class BaseMap {
 public:
  static constexpr std::uint64_t kPageBlocks = BlockSet::kPageBlocks;
  struct Page {
    std::uint64_t number = 0;
    std::string bits;  // kPageBlocks / 8 bytes, least significant bit first
  };

  // `everywhere`: an imported volume, all of whose blocks were in the image to begin with, a
  // writable view, all of whose blocks are its parent's, or a history that began anew.
  explicit BaseMap(bool everywhere) : everywhere_(everywhere) {}

  // The image holds the base of all of it, from now on or again.
  void add(BlockRange range);
  // From now on everywhere; whoever says so remembers it.
  void add_all() {
    everywhere_ = true;
    overwritten_ = {};
  }
  // A page as it was stored; false if it has a wrong length.
  [[nodiscard]] bool load(const Page& page);

  // The image does not hold what it held of `range`: what was the base was captured, or no moment
  // shows it.
  void overwritten(BlockRange range);
  // Whether the image may still hold the base of some of `range`.
  [[nodiscard]] bool may_hold_base(BlockRange range) const;

  // Visits `range` in order without gaps: each part with whether its base is in the image.
  void visit(BlockRange range, const std::function<void(BlockRange, bool)>& visitor) const;
  [[nodiscard]] bool empty() const { return !everywhere_ && blocks_.empty(); }

  // What this says of `range` holds after a crash, too.
  [[nodiscard]] bool is_stored(BlockRange range) const;

  // The pages that are not stored yet, as they are now.
  [[nodiscard]] std::vector<Page> changed() const;
  // All of those have been stored; none has changed since.
  void stored() { changed_.clear(); }

 private:
  bool everywhere_;
  BlockSet blocks_;
  BlockSet overwritten_;  // of these
  std::set<std::uint64_t> changed_;
};

}  // namespace mariner::volume

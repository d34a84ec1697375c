// A volume as the reclaimer sees it: what the logger has of it, and how far its images have come,
// wherever they are.
//
// Owner's thread only.
#pragma once

#include <optional>
#include <vector>

#include "proto/error.h"
#include "proto/unique_function.h"
#include "proto/units.h"
#include "server/volume/logged_volume.h"

namespace mariner::volume {

class Reclaimable {
 public:
  virtual ~Reclaimable() = default;

  [[nodiscard]] virtual LoggedVolume& logged() = 0;
  // Everything at or below is durable or void.
  [[nodiscard]] virtual SequenceNumber settled() const = 0;
  // False: a writable view.
  [[nodiscard]] virtual bool has_image() const = 0;
  // Everything at or below is durable in every image.
  [[nodiscard]] virtual SequenceNumber durable() const = 0;
  // The oldest moment that a rollback, a snapshot or an image still needs; nothing: none does.
  [[nodiscard]] virtual std::optional<SequenceNumber> oldest_pinned() const = 0;
  // Of a journal: nobody asks it about anything at or below, whatever is to be kept of the volume's
  // past, so that its records go as they are and leave no base behind. Nothing: it is no journal.
  [[nodiscard]] virtual std::optional<SequenceNumber> spare_through() const { return std::nullopt; }
  // The images are to get on, if they can be hurried.
  virtual void hurry() = 0;
  // Writes wait because an image is behind, which may be worth less.
  virtual void want_room() {}
  // Makes what reads as zero in `ranges` zero in every image, too, durably. `done` is always
  // called.
  virtual void punch(std::vector<BlockRange> ranges, UniqueFunction<void(Result<void>)> done) = 0;
  // Gives up what snapshots keep; false: there are none. Whoever reads one is told.
  virtual bool drop_snapshots() { return logged().snapshots()->drop_all(); }
};

}  // namespace mariner::volume

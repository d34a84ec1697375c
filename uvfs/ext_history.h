// The history of a file system (ext2, ext3, ext4) over a stretch, inode by inode: found from the
// writes to the blocks that an inode is in and consists of, not by looking at every moment; and the
// same as if every moment had been looked at.
//
// (Dissertation 4.5 finds versions by the times of their last change, in snapshot after snapshot.)
//
// A file system that begins within the stretch (mke2fs), or whose structures get other places
// (resize2fs), shortens it: see stretch(). Many inodes are asked for at once. One thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ifsck/ext_layout.h"
#include "ifsck/moment.h"
#include "ifsck/overlay.h"
#include "ifsck/past.h"
#include "proto/error.h"
#include "uvfs/block_timelines.h"
#include "uvfs/inode_slices.h"
#include "uvfs/map_spans.h"
#include "uvfs/name_history.h"
#include "uvfs/object_history.h"
#include "uvfs/stretch.h"

namespace mariner::uvfs {

class ExtHistory {
 public:
  // `past` outlives it. Errors as of ExtVolume::open(), of the stretch's last moment; here and
  // below: of the past; kLimit.
  [[nodiscard]] static Result<std::unique_ptr<ExtHistory>> open(ifsck::Past& past,
                                                                const Stretch& wanted);

  // Those of the wanted moments that the file system was there at.
  [[nodiscard]] const Stretch& stretch() const { return timelines_->stretch(); }
  // Of its first moment.
  [[nodiscard]] VersionTime first_time() const { return timelines_->first_time(); }
  [[nodiscard]] const ifsck::ExtContext& context() const { return moment_.context(); }

  // What is asked of them below is known from then on. Numbers that no inode can have are left out.
  [[nodiscard]] Result<void> load(std::span<const ifsck::InodeNumber> numbers);
  // That were loaded, and are kept.
  [[nodiscard]] std::size_t objects() const { return all_.size(); }
  // Null: it was left out.
  [[nodiscard]] const ObjectHistory* find(ifsck::InodeNumber number) const;
  // Of an inode that was a directory at any moment; null: it was none.
  [[nodiscard]] const NameHistory* names(ifsck::InodeNumber number) const;
  // Of one that was found: as it stands in its table at a moment of the stretch.
  [[nodiscard]] std::span<const std::byte> inode(ifsck::InodeNumber number,
                                                 SequenceNumber at) const;

 private:
  struct One {
    std::vector<InodeSlice> slices;
    std::vector<MapSpan> maps;
    ObjectHistory history;
    std::unique_ptr<NameHistory> names;
  };
  class Loading;

  ExtHistory(ifsck::Past& past, const Stretch& stretch) : moment_(past, stretch.last, none_) {}

  ifsck::Overlay none_;
  ifsck::Moment moment_;
  std::unique_ptr<BlockTimelines> timelines_;
  std::unique_ptr<InodeSliceReader> slices_;
  std::unordered_map<ifsck::InodeNumber, One> all_;
};

}  // namespace mariner::uvfs

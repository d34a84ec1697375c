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
#include "uvfs/files_history.h"
#include "uvfs/inode_slices.h"
#include "uvfs/map_spans.h"
#include "uvfs/name_history.h"
#include "uvfs/object_history.h"
#include "uvfs/stretch.h"

namespace mariner::uvfs {

class ExtHistory final : public FilesHistory {
 public:
  // `past` outlives it. Errors as of ExtVolume::open(), of the stretch's last moment; here and
  // below: of the past; kLimit.
  [[nodiscard]] static Result<std::unique_ptr<ExtHistory>> open(ifsck::Past& past,
                                                                const Stretch& wanted);

  [[nodiscard]] const Stretch& stretch() const override { return timelines_->stretch(); }
  [[nodiscard]] VersionTime first_time() const override { return timelines_->first_time(); }
  [[nodiscard]] ObjectNumber root() const override;
  [[nodiscard]] const ifsck::ExtContext& context() const { return moment_.context(); }

  [[nodiscard]] Result<void> load(std::span<const ObjectNumber> numbers) override;
  [[nodiscard]] std::size_t objects() const override { return all_.size(); }
  [[nodiscard]] const ObjectHistory* find(ObjectNumber number) const override;
  [[nodiscard]] const NameHistory* names(ObjectNumber number) const override;
  // Of one that was found: as it stands in its table at a moment of the stretch.
  [[nodiscard]] std::span<const std::byte> inode(ObjectNumber number, SequenceNumber at) const;

  [[nodiscard]] ObjectState state(ObjectNumber number, SequenceNumber at) const override;
  [[nodiscard]] Result<FileContents> contents(ObjectNumber number, SequenceNumber at) override;
  [[nodiscard]] Result<ObjectAttributes> attributes(ObjectNumber number,
                                                    SequenceNumber at) override;

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
  std::unordered_map<ObjectNumber, One> all_;
};

}  // namespace mariner::uvfs

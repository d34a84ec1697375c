// A file system (ext2, ext3, ext4) at one moment, as who mounts it read-only has it: the journal is
// replayed, for this reading alone; and what cannot be read is mended, if there is who does it.
//
// Directories that were read are kept, up to a bound. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ifsck/ext_layout.h"
#include "ifsck/moment.h"
#include "ifsck/overlay.h"
#include "ifsck/past.h"
#include "proto/error.h"
#include "uvfs/files_moment.h"
#include "uvfs/kept_names.h"
#include "uvfs/lazy_mender.h"
#include "uvfs/object_state.h"
#include "uvfs/overlaid_past.h"

namespace mariner::uvfs {

class MomentTree final : public FilesMoment {
 public:
  static constexpr std::size_t kBlocksMax = 256;  // that were read and are kept: 1 MiB

  struct Object {
    ifsck::InodeNumber number = 0;
    ObjectState state;
    std::vector<std::byte> inode;  // as it stands in its table
  };

  // `past` and `mender` (of the same past, or null: what is damaged is shown as far as it can be
  // read) outlive it. A journal that cannot be replayed is left as it is (see journal_error()).
  // Errors as of ifsck::ExtVolume::open(); here and below: of the past.
  [[nodiscard]] static Result<std::unique_ptr<MomentTree>> open(ifsck::Past& past,
                                                                SequenceNumber at,
                                                                LazyMender* mender = nullptr);

  [[nodiscard]] SequenceNumber at() const override { return at_; }
  [[nodiscard]] ObjectNumber root() const override;
  // Why what the journal had is missing; empty: nothing is.
  [[nodiscard]] const std::string& journal_error() const { return journal_error_; }
  // That the replay, or mending, has left.
  [[nodiscard]] std::size_t blocks_held() const override { return overlay_.size(); }
  [[nodiscard]] const ifsck::ExtContext& context() const { return moment_.context(); }
  // With the replay: for what reads at this moment (FileContents).
  [[nodiscard]] ifsck::Past& past() { return replayed_; }

  // kNotFound: there is no such object.
  [[nodiscard]] Result<Object> object(ObjectNumber number);
  [[nodiscard]] Result<ObjectState> state(ObjectNumber number) override;
  [[nodiscard]] Result<Names> names(ObjectNumber directory) override;
  [[nodiscard]] Result<FileContents> contents(ObjectNumber number) override;
  [[nodiscard]] Result<ObjectAttributes> attributes(ObjectNumber number) override;

 private:
  MomentTree(ifsck::Past& past, SequenceNumber at, LazyMender* mender)
      : at_(at),
        mender_(mender),
        replayed_(past, overlay_),
        moment_(past, at, overlay_, {.cached_blocks_max = kBlocksMax}) {}
  [[nodiscard]] Result<void> replay();
  [[nodiscard]] Result<void> mend();
  // What `read` has, or has when the moment is mended. `read` says kCorrupt where that may help.
  template <typename Read>
  [[nodiscard]] auto mended_if_needed(Read read) -> decltype(read());
  [[nodiscard]] Result<Object> object_as_it_is(ObjectNumber number);
  [[nodiscard]] Result<FileContents> contents_as_they_are(ObjectNumber number);
  [[nodiscard]] Result<std::vector<Name>> read_names(ObjectNumber directory);
  // False: one of its blocks is not one of a directory.
  [[nodiscard]] Result<bool> read_entries(const Object& directory, std::vector<Name>& names);
  [[nodiscard]] Result<void> fetch(std::span<const ifsck::FsBlock> blocks);

  const SequenceNumber at_;
  LazyMender* mender_ = nullptr;  // null, too: it has done what it can
  ifsck::Overlay overlay_;
  OverlaidPast replayed_;
  ifsck::Moment moment_;
  std::string journal_error_;
  KeptNames kept_;
};

}  // namespace mariner::uvfs

// A file system (ext2, ext3, ext4) at one moment, as who mounts it read-only has it: the journal is
// replayed, for this reading alone.
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
#include "uvfs/object_state.h"
#include "uvfs/overlaid_past.h"

namespace mariner::uvfs {

class MomentTree final : public FilesMoment {
 public:
  static constexpr std::size_t kBlocksMax = 2048;  // that were read and are kept: 8 MiB

  struct Object {
    ifsck::InodeNumber number = 0;
    ObjectState state;
    std::vector<std::byte> inode;  // as it stands in its table
  };

  // `past` outlives it. A journal that cannot be replayed is left as it is (see journal_error()).
  // Errors as of ifsck::ExtVolume::open(); here and below: of the past.
  [[nodiscard]] static Result<std::unique_ptr<MomentTree>> open(ifsck::Past& past,
                                                                SequenceNumber at);

  [[nodiscard]] SequenceNumber at() const override { return at_; }
  [[nodiscard]] ObjectNumber root() const override;
  // Why what the journal had is missing; empty: nothing is.
  [[nodiscard]] const std::string& journal_error() const { return journal_error_; }
  // That the replay has left.
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
  MomentTree(ifsck::Past& past, SequenceNumber at)
      : at_(at),
        replayed_(past, overlay_),
        moment_(past, at, overlay_, {.cached_blocks_max = kBlocksMax}) {}
  [[nodiscard]] Result<void> replay();
  [[nodiscard]] Result<std::vector<Name>> read_names(const Object& directory);
  [[nodiscard]] Result<void> fetch(std::span<const ifsck::FsBlock> blocks);

  const SequenceNumber at_;
  ifsck::Overlay overlay_;
  OverlaidPast replayed_;
  ifsck::Moment moment_;
  std::string journal_error_;
  KeptNames kept_;
};

}  // namespace mariner::uvfs

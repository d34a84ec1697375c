// A file system (ext2, ext3, ext4) at one moment, as who mounts it read-only has it: the journal is
// replayed, for this reading alone.
//
// Directories that were read are kept, up to a bound. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ifsck/ext_layout.h"
#include "ifsck/moment.h"
#include "ifsck/overlay.h"
#include "ifsck/past.h"
#include "proto/error.h"
#include "uvfs/object_state.h"
#include "uvfs/overlaid_past.h"

namespace mariner::uvfs {

class MomentTree {
 public:
  static constexpr std::size_t kBlocksMax = 2048;    // that were read and are kept: 8 MiB
  static constexpr std::size_t kNamesMax = 200'000;  // that are kept, of all directories

  struct Object {
    ifsck::InodeNumber number = 0;
    ObjectState state;
    std::vector<std::byte> inode;  // as it stands in its table
  };
  struct Name {
    std::string name;
    ifsck::InodeNumber inode = 0;
    std::uint8_t type = 0;  // EXT2_FT_*; 0: not known
  };
  using Names = std::shared_ptr<const std::vector<Name>>;

  // `past` outlives it. A journal that cannot be replayed is left as it is (see journal_error()).
  // Errors as of ifsck::ExtVolume::open(); here and below: of the past.
  [[nodiscard]] static Result<std::unique_ptr<MomentTree>> open(ifsck::Past& past,
                                                                SequenceNumber at);

  [[nodiscard]] SequenceNumber at() const { return at_; }
  // Why what the journal had is missing; empty: nothing is.
  [[nodiscard]] const std::string& journal_error() const { return journal_error_; }
  // Blocks that the replay has left: in memory as long as this.
  [[nodiscard]] std::size_t replayed_blocks() const { return overlay_.size(); }
  [[nodiscard]] const ifsck::ExtContext& context() const { return moment_.context(); }
  // With the replay: for what reads at this moment (FileContents).
  [[nodiscard]] ifsck::Past& past() { return replayed_; }

  // kNotFound: there is no such object.
  [[nodiscard]] Result<Object> object(ifsck::InodeNumber number);
  // Without "." and "..", by name, each once. kInvalidArgument: it is no directory.
  [[nodiscard]] Result<Names> names(ifsck::InodeNumber directory);
  // 0: there is none of that name.
  [[nodiscard]] Result<ifsck::InodeNumber> find(ifsck::InodeNumber directory,
                                                std::string_view name);

 private:
  MomentTree(ifsck::Past& past, SequenceNumber at)
      : at_(at),
        replayed_(past, overlay_),
        moment_(past, at, overlay_, {.cached_blocks_max = kBlocksMax}) {}
  [[nodiscard]] Result<void> replay();
  [[nodiscard]] Result<std::vector<Name>> read_names(const Object& directory);
  [[nodiscard]] Result<void> fetch(std::span<const ifsck::FsBlock> blocks);
  void keep(ifsck::InodeNumber directory, const Names& names);

  const SequenceNumber at_;
  ifsck::Overlay overlay_;
  OverlaidPast replayed_;
  ifsck::Moment moment_;
  std::string journal_error_;
  // The last one that was asked for is in front.
  std::list<std::pair<ifsck::InodeNumber, Names>> kept_;
  std::unordered_map<ifsck::InodeNumber, decltype(kept_)::iterator> places_;
  std::size_t names_kept_ = 0;
};

}  // namespace mariner::uvfs

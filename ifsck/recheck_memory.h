// What checks of one and the same moment tell each other while it is being mended: of what was not
// written to since the check before, all is as that one found it.
//
// Of one pair of moments: a known one, and one whose overlay is written to. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "ifsck/directory_change.h"
#include "ifsck/ext_context.h"
#include "ifsck/moment_change.h"

namespace mariner::ifsck {

class RecheckMemory {
 public:
  // Looks at what was written since the last check that was kept, and forgets what cannot be
  // believed any more.
  void begin(const ExtContext& now);
  // What a check has found that was begun.
  void keep(const MomentChange& change);

  // Nothing is known: all is to be looked at.
  [[nodiscard]] bool empty() const { return inodes_.empty(); }
  // Blocks of the file system, since what is known was found.
  [[nodiscard]] const BlockRanges& written() const { return written_; }
  // All that had changed; and null: it is to be looked at again.
  [[nodiscard]] const MomentChange::Inodes& inodes() const { return inodes_; }
  [[nodiscard]] std::shared_ptr<const MomentChange::Inode> find(const ExtContext& now,
                                                                InodeNumber number) const;

  // Directories, by number.
  std::map<InodeNumber, DirectoryChange> directories;

 private:
  void forget();

  std::size_t kept_ = 0;  // writes that what is known has
  std::size_t seen_ = 0;  // ... and those that were looked at
  BlockRanges written_;
  std::vector<std::byte> super_;  // as far as inodes depend on it
  std::vector<std::uint32_t> table_ends_;
  MomentChange::Inodes inodes_;
};

}  // namespace mariner::ifsck

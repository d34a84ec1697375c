// What checks of one and the same moment tell each other while it is being mended: of what was not
// written to since the check before, all is as that one found it.
//
// Of one pair of moments: a known one, and one whose overlay is written to. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_set>
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

  // A directory as it was found, if it is still like that; null: it is to be read.
  [[nodiscard]] const DirectoryChange* find_directory(
      const MomentChange& change, InodeNumber number,
      const std::unordered_set<InodeNumber>& also_changed) const;
  // (Not beyond kEntriesMax: then it is read each time.)
  void keep_directory(InodeNumber number, DirectoryChange directory);

 private:
  // Of all directories: 100 MB.
  static constexpr std::size_t kEntriesMax = 8'000'000;

  void forget();
  void forget_directory(InodeNumber number);

  std::size_t kept_ = 0;  // writes that what is known has
  std::size_t seen_ = 0;  // ... and those that were looked at
  BlockRanges written_;
  std::vector<std::byte> super_;  // as far as inodes depend on it
  GroupNumber groups_ = 0;
  std::map<GroupNumber, std::uint32_t> table_ends_;  // of those with inodes that are known
  MomentChange::Inodes inodes_;
  std::map<InodeNumber, DirectoryChange> directories_;
  std::size_t entries_ = 0;  // of these
};

}  // namespace mariner::ifsck

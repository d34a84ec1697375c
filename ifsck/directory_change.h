// The entries of one directory that are other ones at another moment: in the blocks that changed,
// those that were there and are not, and those that are there and were not.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ifsck/finding.h"
#include "ifsck/moment_change.h"
#include "ifsck/view.h"
#include "proto/error.h"

namespace mariner::ifsck {

struct DirectoryChange {
  struct Entry {
    InodeNumber inode = 0;
    std::uint8_t type = 0;
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };
  struct Dot {
    InodeNumber inode = 0;
    bool parent = false;  // it is ".."
  };

  std::shared_ptr<const MomentChange::Inode> of;
  std::vector<Dot> dots_then;
  std::vector<Dot> dots_now;
  std::vector<Finding> findings;  // now; of very many, the first
  bool told_all = true;           // these are all
  // Of inodes that have changed, too, all; in no order.
  std::vector<Entry> then;
  std::vector<Entry> now;
  // In both, of inodes that have not changed.
  std::vector<InodeNumber> same;

  // Tells `found` of all that is wrong now. Errors: of the past alone.
  [[nodiscard]] static Result<DirectoryChange> find(
      const MomentChange& change, InodeNumber number,
      std::shared_ptr<const MomentChange::Inode> inode,
      const std::function<void(const Finding&)>& found);

  // What find() reads of these, at both moments and in few questions.
  [[nodiscard]] static Result<void> prefetch(const MomentChange& change,
                                             const std::vector<InodeNumber>& numbers);

  [[nodiscard]] std::size_t entries() const { return then.size() + now.size() + same.size(); }

  // The same would be found again, now that blocks were written to and other inodes have changed,
  // too.
  [[nodiscard]] bool is_still(const MomentChange& change, InodeNumber number,
                              const BlockRanges& written,
                              const std::unordered_set<InodeNumber>& also_changed) const;
};

}  // namespace mariner::ifsck

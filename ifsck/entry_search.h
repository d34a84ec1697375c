// Which directories name some inodes, where nothing says so: those next to an inode are looked at
// first, then those of its group, where file systems put a file that is made in a directory, then
// ever farther ones: what it takes depends on how far away they are, not on how many there are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_set>
#include <vector>

#include "ifsck/mend_work.h"
#include "proto/error.h"

namespace mariner::ifsck {

class EntrySearch {
 public:
  // Of each inode, how many entries are looked for.
  using Wanted = std::map<InodeNumber, std::uint64_t>;

  // Ascending, each once. Errors: of the past alone. One thread.
  [[nodiscard]] static Result<std::vector<InodeNumber>> run(MendWork& work, Wanted wanted);

 private:
  EntrySearch(MendWork& work, Wanted wanted) : work_(work), wanted_(std::move(wanted)) {}

  // Of those that there may be.
  Result<std::vector<InodeNumber>> beside();
  // In the groups of those wanted, and so many on both sides.
  Result<std::vector<InodeNumber>> in_groups(std::uint64_t away);
  // Ascending.
  Result<std::vector<InodeNumber>> likely(GroupNumber first, GroupNumber end);
  Result<const std::vector<InodeNumber>*> possible();
  Result<void> look_in(const std::vector<InodeNumber>& numbers);
  Result<void> look_in(InodeNumber directory);

  MendWork& work_;
  Wanted wanted_;                                     // and not found so far
  std::optional<std::vector<InodeNumber>> possible_;  // once it was asked for
  std::unordered_set<InodeNumber> looked_;
  std::vector<InodeNumber> found_;
};

}  // namespace mariner::ifsck
